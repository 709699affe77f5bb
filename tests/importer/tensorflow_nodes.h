/// Nodes of TensorFlow's graphs as JSON, as graph models of TensorFlow.js have them. Thread-safety: pure
/// functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tensormill::frontend {

inline Json type_of(const char* type) { return {{"type", type}}; }
inline Json called(const char* function) { return {{"func", {{"name", function}}}}; }

inline Json node_of(const char* name, const char* op, const std::vector<std::string>& inputs,
                    const Json& attributes = Json::object()) {
  return {{"name", name}, {"op", op}, {"input", inputs}, {"attr", attributes}};
}

/// A number, or with `has_axis` a row of one.
inline Json number_of(const char* name, int64_t value, bool has_axis = false) {
  Json shape = Json::object();
  if (has_axis) shape["dim"] = Json::array({{{"size", "1"}}});
  const Json tensor = {{"dtype", "DT_INT32"}, {"tensorShape", shape}, {"intVal", Json::array({value})}};
  return node_of(name, "Const", {}, {{"dtype", type_of("DT_INT32")}, {"value", {{"tensor", tensor}}}});
}

inline Json argument(const char* name, const char* type) { return {{"name", name}, {"type", type}}; }

}  // namespace tensormill::frontend
