/// Programs of PyTorch as JSON, and the file of one. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"

namespace tensormill::frontend {

inline constexpr int kFloat32 = 7, kInt64 = 5, kInt32 = 4, kInt8 = 2;

/// A size: a number, or an expression of the program's symbols.
inline Json extent(int64_t size) { return {{"as_int", size}}; }
inline Json symbol(const char* expr) { return {{"as_expr", {{"expr_str", expr}, {"hint", nullptr}}}}; }

inline Json meta_of(int dtype, const Json& sizes, const Json& strides) {
  return {{"dtype", dtype},
          {"sizes", sizes},
          {"strides", strides},
          {"storage_offset", extent(0)},
          {"layout", 7},
          {"requires_grad", false},
          {"device", {{"type", "cpu"}, {"index", nullptr}}}};
}

inline Json tensor_of(const char* name) { return {{"as_tensor", {{"name", name}}}}; }
inline Json sym_int_of(const char* name) { return {{"as_name", name}}; }

inline Json fx_node(const char* target, const std::vector<std::pair<const char*, Json>>& inputs,
                    const Json& output) {
  Json all = Json::array();
  for (const auto& [name, argument] : inputs) all.push_back({{"name", name}, {"arg", argument}, {"kind", 1}});
  return {
      {"target", target}, {"inputs", all}, {"outputs", Json::array({output})}, {"metadata", Json::object()}};
}

/// The file of a program from tensor x to tensor y, by other ones.
inline std::unique_ptr<Importer> program_of(const Json& x, const Json& y, const Json& nodes,
                                            const Json& numbers, Json tensors = Json::object()) {
  tensors["x"] = x;
  tensors["y"] = y;
  const Json graph = {{"inputs", Json::array({tensor_of("x")})},
                      {"outputs", Json::array({tensor_of("y")})},
                      {"nodes", nodes},
                      {"tensor_values", tensors},
                      {"sym_int_values", numbers},
                      {"sym_bool_values", Json::object()},
                      {"is_single_tensor_return", false},
                      {"custom_obj_values", Json::object()}};
  const Json signature = {{"input_specs", Json::array({{{"user_input", {{"arg", tensor_of("x")}}}}})},
                          {"output_specs", Json::array({{{"user_output", {{"arg", tensor_of("y")}}}}})}};
  const Json program = {
      {"graph_module", {{"graph", graph}, {"signature", signature}, {"module_call_graph", Json::array()}}},
      {"opset_version", {{"aten", 10}}},
      {"range_constraints", Json::object()},
      {"schema_version", {{"major", 8}, {"minor", 8}}}};
  const std::string none = R"({"config": {}})";
  return importer_of_bytes(stored_zip({{"net/data/weights/model_weights_config.json", none},
                                       {"net/data/constants/model_constants_config.json", none},
                                       {"net/models/model.json", program.dump()},
                                       {"net/archive_format", "pt2"},
                                       {"net/archive_version", "0"},
                                       {"net/.data/version", "6\n"},
                                       {"net/byteorder", "little"}}));
}

}  // namespace tensormill::frontend
