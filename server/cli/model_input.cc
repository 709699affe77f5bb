#include "server/cli/model_input.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::cli {

namespace {

[[noreturn]] void bad_shapes(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kUsage,
              "input shapes \"" + text + "\": " + why + "; write \"data:[1,3,224,224] x:[N,3,H,W]\"");
}

Dim parse_dim(const std::string& text, const std::string& word) {
  int64_t extent = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), extent);
  if (parsed.ec == std::errc() && parsed.ptr == word.data() + word.size()) {
    if (extent < -1) bad_shapes(text, "extent " + word);
    if (extent == -1) return std::string();
    return extent;
  }
  if (word.empty() || !std::all_of(word.begin(), word.end(),
                                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; })) {
    bad_shapes(text, "dim \"" + word + "\" is neither a number nor a name");
  }
  return word;
}

/// The JSON target `text` with members for options "-name=value".
std::string with_members(const std::string& text, const std::vector<std::string>& options) {
  Json json = parse_json(text, 8);
  for (const std::string& option : options) {
    const size_t equals = option.find('=');
    const std::string name = option.substr(1, equals - 1);
    if (json.contains(name)) throw Error(ErrorCode::kUsage, "target option -" + name + ": given twice");
    json[name] = option.substr(equals + 1);
  }
  return json.dump();
}

}  // namespace

std::map<std::string, DimShape> parse_input_shapes(const std::string& text) {
  std::map<std::string, DimShape> shapes;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string::npos) {
    const size_t open = text.find(":[", at);
    const size_t close = open == std::string::npos ? open : text.find(']', open);
    if (close == std::string::npos) bad_shapes(text, "expected NAME:[DIMS]");
    DimShape shape;
    std::string word;
    const std::string dims = text.substr(open + 2, close - open - 2);
    for (size_t i = 0; i <= dims.size() && !(dims.empty()); ++i) {
      if (i < dims.size() && dims[i] != ',') {
        if (dims[i] != ' ') word += dims[i];
        continue;
      }
      shape.push_back(parse_dim(text, word));
      word.clear();
    }
    if (!shapes.emplace(text.substr(at, open - at), std::move(shape)).second) {
      bad_shapes(text, "input " + text.substr(at, open - at) + " stands twice");
    }
    at = close + 1;
  }
  return shapes;
}

namespace {

[[noreturn]] void bad_value(const std::string& input, const std::string& why) {
  throw Error(ErrorCode::kUsage,
              "input values: \"" + input + "\" " + why + "; write {\"sr\":16000,\"axes\":[0,1]}");
}

/// Numbers of nested arrays in row-major order; arrays beside each other have one size.
void flatten_values(const std::string& input, const Json& json, size_t depth, Shape& shape,
                    std::vector<Json>& values) {
  if (!json.is_array()) {
    if (depth != shape.size() || !(json.is_number() || json.is_boolean())) bad_value(input, "is no tensor");
    values.push_back(json);
    return;
  }
  const auto size = static_cast<int64_t>(json.size());
  if (depth == shape.size() && values.empty()) shape.push_back(size);
  if (depth >= shape.size() || shape[depth] != size) bad_value(input, "has rows of several sizes");
  for (const Json& item : json) flatten_values(input, item, depth + 1, shape, values);
}

}  // namespace

std::map<std::string, Tensor> parse_input_values(const std::string& text,
                                                 const frontend::onnx::ModelFacts& facts) {
  std::map<std::string, Tensor> tensors;
  if (text.empty()) return tensors;
  const Json json = parse_json(text);
  if (!json.is_object()) bad_value(text, "is no object");
  for (const auto& [name, value] : json.items()) {
    const auto input = std::find_if(facts.inputs.begin(), facts.inputs.end(),
                                    [&name = name](const auto& candidate) { return candidate.name == name; });
    if (input == facts.inputs.end()) bad_value(name, "is no input of the model");
    Shape shape;
    std::vector<Json> values;
    flatten_values(name, value, 0, shape, values);
    Tensor tensor(input->dtype, shape);
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_float(input->dtype)) {
        tensor.set_element(static_cast<int64_t>(i), values[i].get<double>());
      } else if (values[i].is_number_float()) {
        bad_value(name, "takes whole numbers");
      } else {
        tensor.set_element_int(static_cast<int64_t>(i), values[i].get<int64_t>());
      }
    }
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find(',', start), text.size());
    if (end > start) items.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return items;
}

target::Target resolve_target(const std::string& text, const std::vector<std::string>& overrides,
                              const target::Target& host) {
  std::string full = text;
  if (text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0) full = read_file(text);
  const size_t first = full.find_first_not_of(" \t\r\n");
  if (!overrides.empty() && first != std::string::npos && full[first] == '{') {
    full = with_members(full, overrides);
  } else {
    for (const std::string& option : overrides) full += " " + option;
  }
  return target::parse_target(full, host);
}

bool host_runs(const target::Target& target, const target::Target& host) {
  if (target.is_x86() != host.is_x86()) return false;
  const std::vector<std::string> have = host.required_features();
  const std::vector<std::string> need = target.required_features();
  return std::includes(have.begin(), have.end(), need.begin(), need.end());
}

frontend::onnx::ModelSource open_model_file(const std::string& path, const std::string& format) {
  if (format != "onnx") {
    throw Error(ErrorCode::kNotSupported, "model format \"" + format + "\" is not implemented; known: onnx");
  }
  return in_context(path, [&] { return frontend::onnx::open_model(path); });
}

void check_output(const std::string& option, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kUsage, option + " " + path + ": " + why);
  };
  const std::filesystem::path target(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(target, ignored)) refuse("is a folder, expected the name of a file");
  if (!std::filesystem::is_directory(folder, ignored)) refuse("there is no folder " + folder.string());
  if (std::filesystem::exists(target, ignored) && !std::filesystem::is_regular_file(target, ignored)) return;
  if (::access(folder.c_str(), W_OK) != 0) refuse("the folder " + folder.string() + " is not writable");
}

}  // namespace tensormill::cli
