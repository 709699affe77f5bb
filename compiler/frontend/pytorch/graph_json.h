/// Graphs and signatures of an exported program out of its JSON. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/pytorch/model.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::pytorch {

/// Members of JSON objects, whose absence or other type is Error(kInvalidModel) naming `of`.
const Json& json_member(const Json& object, const char* name, const std::string& of);
std::string json_text(const Json& object, const char* name, const std::string& of);
/// Nothing for a member that is absent or null.
std::optional<int64_t> json_integer(const Json& object, const char* name, const std::string& of);

/// {"as_int": 4} or {"as_expr": {"expr_str", "hint"}}.
SymDim read_sym_dim(const Json& json, const std::string& of);
TensorMeta read_tensor_meta(const Json& json, const std::string& of);
/// `values`: how many more arguments and values there may be in the file.
Graph read_graph(const Json& json, wire::WorkBudget& values);
/// {"input_specs", "output_specs"}, which must be those of the graph.
void read_signature(const Json& json, Program& program);

}  // namespace tensormill::frontend::pytorch
