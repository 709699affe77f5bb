/// Overloads of operators by the kinds of their arguments. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/pytorch/schema.h"

namespace tensormill::frontend::pytorch::script {

struct Schema {
  const OpRow* row = nullptr;
  /// "T", "[i]?" ... of each argument; empty: one that has no other overload.
  std::vector<std::string> arguments;
  std::vector<std::string> results = {"T"};
};
/// All of an operator, "aten.max"; empty where none is imported.
const std::vector<Schema>& schemas_of(std::string_view name);
/// That of a row.
const Schema& schema_of(const OpRow& row);

}  // namespace tensormill::frontend::pytorch::script
