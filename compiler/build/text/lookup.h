/// Tables that say a value for a key. Thread-safety: as the graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Places i64 of the integers or strings x among the keys, the first of equals; the number of keys where
/// there is none.
ir::ValueId found_integer(OpBuilder& builder, ir::ValueId x, const std::vector<int64_t>& keys);
ir::ValueId found_string(OpBuilder& builder, ir::ValueId x, const std::vector<std::string>& keys);

/// For each element of x, strings or integers, the value of its key; `otherwise` where it is no key. keys [n]
/// of the type of x are constant; values [n,...] and `otherwise` [...] have one type, strings any width.
/// Throws Error(kInvalidModel) for what does not fit.
ir::ValueId looked_up(OpBuilder& builder, ir::ValueId x, const Tensor& keys, ir::ValueId values,
                      ir::ValueId otherwise);

}  // namespace tensormill::build
