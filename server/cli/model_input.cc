#include "server/cli/model_input.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "compiler/frontend/formats/detect.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/services/deployments/input_values.h"

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
  // What is written as a number is none of a name, however large.
  const size_t digits = word.find_first_not_of("+-");
  if (digits != std::string::npos && word.find_first_not_of("0123456789", digits) == std::string::npos)
    bad_shapes(text, "extent " + word + " is outside the range of 64 bits");
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

std::vector<services::TensorSpec> specs_of(const std::vector<frontend::SignatureValue>& values) {
  using frontend::ValueKind;
  const std::map<ValueKind, std::string> kinds = {{ValueKind::kSequence, "sequence"},
                                                  {ValueKind::kOptional, "optional"},
                                                  {ValueKind::kOptionalSequence, "optional sequence"},
                                                  {ValueKind::kMap, "map"},
                                                  {ValueKind::kOther, "other"}};
  std::vector<services::TensorSpec> specs;
  for (const frontend::SignatureValue& value : values) {
    const auto kind = kinds.find(value.kind);
    specs.push_back({value.name, value.dtype, value.shape, kind == kinds.end() ? std::string() : kind->second,
                     value.quantization});
  }
  return specs;
}

void bind_input_values(const std::string& text, const frontend::Importer& model,
                       frontend::ImportOptions& options) {
  if (text.empty()) return;
  const Json json = parse_json(text);
  if (!json.is_object()) throw Error(ErrorCode::kUsage, "input_values is no object: " + text);
  try {
    server::bind_input_values(json, specs_of(model.facts().inputs), options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw Error(ErrorCode::kUsage, error.message());
  }
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

void add_model_options(CLI::App& app, std::string& format, std::string& signature) {
  std::string names;
  for (const std::string& name : frontend::importable_formats()) names += (names.empty() ? "" : ", ") + name;
  app.add_option("--model-format", format, "one of " + names + "; found out when absent");
  app.add_option("--signature", signature, "which of the model's signatures; its first when absent");
}

std::unique_ptr<frontend::Importer> open_model_file(const std::string& path, const std::string& format,
                                                    const std::string& signature) {
  return in_context(path, [&] {
    const frontend::FileFormat found = frontend::detect_path(path);
    const frontend::FormatRow& row = frontend::format_row(found);
    if (found == frontend::FileFormat::kOnnxArchive)
      throw Error(ErrorCode::kNotSupported,
                  "this is an archive of an ONNX model: unpack it, and take the .onnx file in it");
    if (found != frontend::FileFormat::kUnknown && !row.is_importable) throw frontend::not_importable(found);
    std::unique_ptr<frontend::Importer> model;
    try {
      model = frontend::open_importer(path, frontend::Links::kFollowed, signature);
    } catch (const Error& error) {
      // A signature that the model does not have.
      if (signature.empty() || error.code() != ErrorCode::kInvalidArgument) throw;
      throw Error(ErrorCode::kUsage, error.message());
    }
    if (!format.empty() && model->format() != format)
      throw Error(ErrorCode::kNotSupported, "model format \"" + format +
                                                "\" was asked for; this is a file of format \"" +
                                                model->format() + "\"");
    return model;
  });
}

std::vector<tune::Record> read_record_file(const std::string& path) {
  constexpr int kMostTold = 8;
  int skipped = 0;
  const auto tell = [&](const std::string& why) {
    if (++skipped <= kMostTold)
      std::cerr << "warning: " << path << ": " << why << "; the record is left out\n";
  };
  std::vector<tune::Record> records =
      in_context(path, [&] { return tune::readable_records(read_file(path), tell); });
  if (skipped > kMostTold)
    std::cerr << "warning: " << path << ": " << skipped - kMostTold << " more lines are no records\n";
  return records;
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
