#include "compiler/frontend/facts/file_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/json.h"

namespace tensormill::frontend {

namespace {

size_t bytes_of(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size() + 1;
  return bytes;
}

/// Reasons by path, in the order of the paths: those that begin alike stand together.
using Reasons = std::map<std::string_view, std::vector<std::string_view>>;

void add_reasons(const std::vector<std::string_view>& reasons, std::vector<std::string_view>& all) {
  for (const std::string_view reason : reasons)
    if (std::find(all.begin(), all.end(), reason) == all.end()) all.push_back(reason);
}

/// Of a node with a large body more reasons stand in the error itself.
constexpr size_t kMostReasons = 20;

std::vector<std::string_view> reasons_of(const FileNode& node, const Reasons& reasons) {
  std::vector<std::string_view> all;
  const auto own = reasons.find(node.path.empty() ? node.label : node.path);
  if (own != reasons.end()) add_reasons(own->second, all);
  for (const std::string& within : node.within) {
    for (auto next = reasons.lower_bound(within); next != reasons.end() && next->first.starts_with(within);
         ++next) {
      add_reasons(next->second, all);
      if (all.size() >= kMostReasons) break;
    }
  }
  if (all.size() > kMostReasons) all.resize(kMostReasons);
  return all;
}

}  // namespace

std::string shown_type(std::string_view dtype, const std::vector<std::string>& dims) {
  std::string text(dtype);
  for (const std::string& dim : dims) text += (&dim == dims.data() ? "[" : ",") + dim;
  return text + (dims.empty() ? "[]" : "]");
}

bool FileGraph::takes(size_t bytes) {
  bytes_ += bytes;
  is_full_ = is_full_ || bytes_ > kMostBytes;
  return !is_full_;
}

void FileGraph::add_value(std::string_view name, const std::string& type, bool is_constant) {
  if (values_.contains(name) || !takes(name.size() + type.size())) return;
  values_.emplace(name, Value{type, is_constant});
}

void FileGraph::add_input(std::string_view name, const std::string& type) {
  if (takes(name.size())) inputs_.emplace_back(name);
  add_value(name, type);
}

void FileGraph::add_output(std::string_view name, const std::string& type) {
  if (takes(name.size())) outputs_.emplace_back(name);
  add_value(name, type);
}

void FileGraph::add_node(FileNode node) {
  is_full_ = is_full_ || nodes_.size() >= kMostNodes;
  if (!takes(node.op.size() + node.label.size() + bytes_of(node.inputs) + bytes_of(node.outputs))) return;
  for (const std::string& output : node.outputs)
    if (!output.empty()) add_value(output, "");
  nodes_.push_back(std::move(node));
}

std::string FileGraph::json(const std::vector<ErrorDetail>& refused) const {
  if (is_full_ || nodes_.empty()) return {};
  Reasons reasons;
  for (const ErrorDetail& each : refused) reasons[each.pointer].push_back(each.detail);
  Json nodes = Json::array();
  std::set<std::string_view> constants;
  for (const FileNode& node : nodes_) {
    const std::vector<std::string_view> why = reasons_of(node, reasons);
    if (why.empty() && node.is_aside) {
      constants.insert(node.outputs.begin(), node.outputs.end());
      continue;
    }
    Json json = {
        {"op", node.op}, {"inputs", node.inputs}, {"outputs", node.outputs}, {"origins", {node.label}}};
    if (!why.empty()) json["refused"] = why;
    nodes.push_back(std::move(json));
  }
  Json values = Json::object();
  for (const auto& [name, value] : values_)
    values[name] = {{"type", value.type}, {"constant", value.is_constant || constants.contains(name)}};
  const Json json = {{"name", name_},
                     {"inputs", inputs_},
                     {"outputs", outputs_},
                     {"nodes", std::move(nodes)},
                     {"values", std::move(values)}};
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > kMostBytes ? std::string() : text;
}

}  // namespace tensormill::frontend
