// NAME-symbol.json.
#include <algorithm>

#include "compiler/frontend/mxnet/interface.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr size_t kMostJsonBytes = size_t{64} << 20;
constexpr size_t kMostNodes = size_t{1} << 17;

[[noreturn]] void wrong(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "the symbol: " + what);
}

const Json& list(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_array())
    wrong("\"" + std::string(key) + "\" is missing, or no list");
  return *found;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string())
    wrong("\"" + std::string(key) + "\" is missing, or no text");
  return found->get<std::string>();
}

/// [node, output] or [node, output, version]; `count`: nodes that it may name.
Entry entry(const Json& json, size_t count) {
  const auto place = [&](size_t i) {
    const int64_t number = json[i].is_number_integer() ? json[i].get<int64_t>() : -1;
    if (number < 0) wrong("an entry is no list of two or three numbers");
    return static_cast<uint64_t>(number);
  };
  if (!json.is_array() || json.size() < 2 || json.size() > 3)
    wrong("an entry is no list of two or three numbers");
  const uint64_t node = place(0), index = place(1);
  if (node >= count)
    wrong("an entry names node " + std::to_string(node) + ", of which there are " + std::to_string(count) +
          " before it");
  if (index > kMostNodes) wrong("an entry names output " + std::to_string(index));
  return {static_cast<size_t>(node), static_cast<size_t>(index)};
}

/// What one of the members "attrs", "attr" and "param" says; files of several versions have one or two.
void add_attributes(const Json& json, const char* key, Node& to) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  if (!found->is_object()) wrong("\"" + std::string(key) + "\" is no object");
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) wrong("attribute \"" + name.substr(0, 200) + "\" is no text");
    to.attributes.insert_or_assign(name, value.get<std::string>());
  }
}

Node node_of(const Json& json, size_t index) {
  if (!json.is_object()) wrong("it is no object");
  Node node;
  node.op = text(json, "op");
  node.name = text(json, "name");
  for (const char* key : {"attr", "param", "attrs"}) add_attributes(json, key, node);
  for (const Json& input : list(json, "inputs")) node.inputs.push_back(entry(input, index));
  node.outputs = num_outputs(node);
  return node;
}

/// {"mxnet_version": ["int", 10901]}
int64_t version_of(const Json& json) {
  const auto attributes = json.find("attrs");
  if (attributes == json.end() || !attributes->is_object()) return 0;
  const auto version = attributes->find("mxnet_version");
  if (version == attributes->end() || !version->is_array() || version->size() != 2) return 0;
  return (*version)[1].is_number_integer() ? (*version)[1].get<int64_t>() : 0;
}

Json parsed(std::string_view bytes) {
  if (bytes.size() > kMostJsonBytes)
    throw Error(ErrorCode::kTooLarge, "the symbol has more than 64 MiB; parameters lie in a file beside it");
  try {
    return parse_json(bytes, 128);
  } catch (const Error& error) {
    wrong(error.message());
  }
}

}  // namespace

Symbol read_symbol(std::string_view bytes) {
  const Json json = parsed(bytes);
  const Json& nodes = list(json, "nodes");
  if (nodes.size() > kMostNodes) wrong("it has " + std::to_string(nodes.size()) + " nodes");
  Symbol symbol;
  for (size_t i = 0; i < nodes.size(); ++i) {
    try {
      symbol.nodes.push_back(node_of(nodes[i], i));
    } catch (Error& error) {
      error.add_context("node " + std::to_string(i));
      throw;
    }
  }
  for (const Json& head : list(json, "heads")) symbol.heads.push_back(entry(head, symbol.nodes.size()));
  if (symbol.heads.empty()) wrong("it has no heads");
  symbol.version = version_of(json);
  return symbol;
}

}  // namespace tensormill::frontend::mxnet
