/// Shape arithmetic on symbolic integers: the elements of an operator's outputs, worked out of its tensor
/// expressions. Thread-safety: pure but for the guards of the operands' table.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/op_def.h"

namespace tensormill::ir {

/// What a comparison of symbolic integers that cannot be proven is answered with.
enum class Undecided : uint8_t {
  kUnknown,  ///< nothing: the outputs are not known
  kGuarded,  ///< as the hints have it, with a guard
};

/// Output i of the operator as a known value, from known operands (null where absent). Nothing where an
/// output is no tensor of integers or float32, has a symbolic extent, or needs what is not known. `types`: of
/// the outputs.
std::optional<std::vector<KnownValue>> evaluate_symbolic(const OpDef& op, const Attrs& attrs,
                                                         const std::vector<const KnownValue*>& inputs,
                                                         const std::vector<ValueType>& input_types,
                                                         const std::vector<ValueType>& types,
                                                         Undecided undecided);

}  // namespace tensormill::ir
