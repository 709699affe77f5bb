/// The loop-IR interpreter: executes a function at any level exactly as code generation must (bit for bit on
/// equal loop IR). It checks every access against its buffer, reads of elements that were never written, and
/// data races of parallel loops (two iterations that touch one element, one of them writing): each is an
/// InternalError. Parallel loops run serially, in an order that `seed` permutes (0: in order). Of several
/// indices out of range the first of the lowest task is reported. Thread-safety: pure; each call has its own
/// state.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"
#include "runtime/base/tensor.h"

namespace tensormill::te {

/// As TM_INDEX_OUT_OF_RANGE of runtime/abi.
inline constexpr int32_t kIndexOutOfRange = 1;

struct InterpretResult {
  int32_t code = 0;         ///< what the kernel returns (tm_status)
  int64_t error_index = 0;  ///< as *tm_call::error_index
};

/// `arguments`: one tensor per parameter, outputs are written in place. `dims`: values of function.dims.
InterpretResult interpret(const Function& function, std::vector<tensormill::Tensor>& arguments,
                          const std::vector<int64_t>& dims = {}, uint64_t seed = 0);

/// Evaluates a program directly from its definition, without any schedule (float sums in index order, in the
/// tensor's own type): returns one tensor per program output.
std::vector<tensormill::Tensor> evaluate(const Program& program,
                                         const std::vector<tensormill::Tensor>& inputs);

}  // namespace tensormill::te
