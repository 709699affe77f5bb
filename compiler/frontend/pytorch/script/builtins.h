/// Functions of TorchScript that are no operators of tensors: on numbers, lists, texts, and on what is known
/// of a tensor. Thread-safety: as the graph.
#pragma once

#include <optional>

#include "compiler/frontend/pytorch/script/operators.h"

namespace tensormill::frontend::pytorch::script {

/// What the function gives; nothing where it is an operator for these arguments. Throws Error(kInvalidModel),
/// and Error(kNotSupported) where the code raises an exception.
std::optional<Value> call_builtin(Operators& operators, const Call& call);
/// Whether there is a function of that name, "aten.len", "prim.NumToTensor".
bool has_builtin(const std::string& name);

/// Element `index` of a list, a tuple or a text; the value of a dictionary's key.
Value element_of(const Value& holder, const Value& index);
/// A number of Python: int(x), float(x), bool(x).
Value cast_number(Operators& operators, const std::string& to, const Value& value, const Call& call);

}  // namespace tensormill::frontend::pytorch::script
