#include "compiler/frontend/onnx/model/external_names.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::frontend::onnx {

namespace {

void collect(const TensorProto& tensor, std::set<std::string>& names) {
  if (!tensor.external) return;
  names.insert(external_name(tensor));
}

void collect(const GraphProto& graph, std::set<std::string>& names) {
  for (const TensorProto& tensor : graph.initializers) collect(tensor, names);
  for (const NodeProto& node : graph.nodes) {
    for (const AttributeProto& attribute : node.attributes) {
      if (attribute.t) collect(*attribute.t, names);
      for (const auto& inner : attribute.graphs) collect(*inner, names);
    }
  }
}

}  // namespace

void check_relative_name(const std::string& name) {
  const auto refuse = [&](const char* why) {
    throw Error(ErrorCode::kInvalidModel, "external file name \"" + name + "\" " + why);
  };
  if (name.empty() || name.size() > 1024) refuse("is empty or longer than 1024 bytes");
  if (name.front() == '/') refuse("is absolute");
  for (char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7f)
      refuse("has a control character or a backslash");
  }
  size_t start = 0;
  while (start <= name.size()) {
    const size_t end = std::min(name.find('/', start), name.size());
    const std::string part = name.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") refuse("has a part that is empty, \".\" or \"..\"");
    start = end + 1;
  }
}

std::string external_name(const TensorProto& tensor) {
  const auto location = tensor.external_data.find("location");
  if (location == tensor.external_data.end()) {
    throw Error(ErrorCode::kInvalidModel, "tensor \"" + tensor.name + "\": external data has no location");
  }
  const std::string& given = location->second;
  // What stands for the folder itself names no file, and an absolute name is refused below.
  if (given.empty() || given.front() == '/' || given.back() == '/') check_relative_name(given);
  std::string name;
  for (size_t start = 0; start < given.size();) {
    const size_t end = std::min(given.find('/', start), given.size());
    const std::string part = given.substr(start, end - start);
    if (!part.empty() && part != ".") name += (name.empty() ? "" : "/") + part;
    start = end + 1;
  }
  check_relative_name(name);
  return name;
}

std::set<std::string> external_names(const ModelProto& model) {
  std::set<std::string> names;
  collect(model.graph, names);
  return names;
}

}  // namespace tensormill::frontend::onnx
