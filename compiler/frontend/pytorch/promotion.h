/// Which type operands of several types are computed in, as torch has it (torch.result_type). Thread-safety:
/// pure functions.
#pragma once

#include <optional>
#include <vector>

#include "runtime/base/dtype.h"

namespace tensormill::frontend::pytorch {

/// What an operand is: those of a later row give way to those of an earlier one of the same category (bool,
/// integer, float).
enum class OperandKind : uint8_t {
  kTensor,  ///< of one dim or more
  kScalar,  ///< a tensor without dims
  kNumber,  ///< of Python: bool, int (kInt64) or float (kFloat64, which counts as float32)
};
struct OperandType {
  DType dtype = DType::kFloat32;
  OperandKind kind = OperandKind::kTensor;
};

/// Of two types of tensors (torch.promote_types); nothing where there is none.
std::optional<DType> promote_types(DType a, DType b);
/// Of all operands; nothing where two have no common type, or there are none.
std::optional<DType> result_type(const std::vector<OperandType>& operands);
/// What torch computes elements of a type in: float32 for shorter floats, of which results alone are rounded.
DType computed_in(DType dtype);

}  // namespace tensormill::frontend::pytorch
