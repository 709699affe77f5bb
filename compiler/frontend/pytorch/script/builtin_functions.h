/// What functions of TorchScript's code have in common. Thread-safety: as the graph.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/frontend/pytorch/script/operators.h"

namespace tensormill::frontend::pytorch::script {

/// What a function gives; nothing where it is an operator for these arguments.
using Result = std::optional<Value>;
using Builtin = Result (*)(Operators& operators, const Call& call);

/// Those on lists, dictionaries and texts; null for any other name.
Builtin list_builtin(std::string_view name);

inline Value integer(int64_t value) { return {ir::SymInt(value)}; }
/// Throws Error(kInvalidModel).
[[noreturn]] void invalid_call(const Call& call, const std::string& what);
const Value& argument(const Call& call, size_t index);
Items& list_in(const Call& call);
/// Place `index` of `count`, from the end where it is below 0.
size_t place_in(const Value& index, size_t count);

}  // namespace tensormill::frontend::pytorch::script
