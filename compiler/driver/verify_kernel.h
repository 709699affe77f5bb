/// Checks a compiled kernel against the reference of the operators it came from.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compared_parts.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/seeded.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/abi/kernel_abi.h"

namespace tensormill::driver {

/// Whether all elements of outputs are compared, or of large ones those that parts_to_compare names.
enum class Compares : uint8_t { kAll, kParts };
inline Compares compares_of(VerifyMode mode) {
  return mode == VerifyMode::kFull ? Compares::kAll : Compares::kParts;
}

/// What the reference makes of a kernel's inputs: seeded ones or, where given, the model's own constants.
struct KernelReference {
  std::vector<Tensor> inputs;
  std::vector<ComparedPart> compared;
  std::vector<Tensor> outputs;  ///< one for each of `compared`; none when the reference refuses the data
  std::string refusal;          ///< why it does; "" when it does not
};
/// By input of a node's kernel: the graph's constant; null where there is none.
std::vector<const Tensor*> constants_of(const ir::Graph& graph, const std::vector<ir::ValueId>& inputs);
KernelReference make_reference(const plan::Kernel& kernel, const std::vector<const Tensor*>& constants,
                               Compares compares = Compares::kAll);
/// The same on smaller integers where the reference refuses those: indices of a table of one or two rows.
KernelReference make_accepted_reference(const plan::Kernel& kernel,
                                        const std::vector<const Tensor*>& constants,
                                        Compares compares = Compares::kAll);
/// A tensor for an output before its kernel runs, with bytes that say so.
Tensor unwritten_tensor(const ir::ValueType& type);
/// Calls a kernel on this thread; `dims` are its symbolic extents.
int32_t run_kernel(tm_kernel entry, const std::vector<void*>& buffers, const plan::KernelWorkspace& workspace,
                   const std::vector<int64_t>& dims = {});
/// Compares what a run returned and wrote with the reference; as verify_kernel.
void check_outputs(const plan::Kernel& kernel, const KernelReference& reference, int32_t code,
                   const std::vector<Tensor>& outputs);

/// Whether a reference is there in good time.
bool is_quick_to_verify(const plan::Kernel& kernel);

/// Runs `entry` on seeded inputs (or, where given, on the model's own constants) and compares the outputs'
/// elements, all or those of some parts, with the reference (where that refuses the data, of smaller
/// integers, too): within kernel.tolerance of the largest magnitude, and a few times what the reference
/// itself moves by when its inputs are off by a rounding; NaN and infinities at the same places, and errors
/// alike. What is rounded to whole numbers or compared behind inexact operators may lie on either side of a
/// step that their errors reach, and nowhere else (element_bounds.h). Throws Error(kWrongAnswer) naming the
/// kernel, the element and both values.
void verify_kernel(const plan::Kernel& kernel, tm_kernel entry, const plan::KernelWorkspace& workspace,
                   const std::vector<const Tensor*>& constants, Compares compares = Compares::kAll);

}  // namespace tensormill::driver
