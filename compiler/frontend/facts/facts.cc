#include "compiler/frontend/facts/facts.h"

#include "runtime/base/json.h"

namespace tensormill::frontend {

namespace {

std::string shape_text(const FileValue& value) {
  if (!value.has_rank) return "[...]";
  std::string text = "[";
  for (const std::string& dim : value.shape) text += (text.size() > 1 ? "," : "") + dim;
  return text + "]";
}

Json values_json(const std::vector<FileValue>& values) {
  Json list = Json::array();
  for (const FileValue& value : values) {
    Json shape = Json::array();
    for (const std::string& dim : value.shape) {
      const bool is_number =
          !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos && dim.size() < 19;
      if (is_number) {
        shape.push_back(std::stoll(dim));
      } else if (dim == "?") {
        shape.push_back(-1);
      } else {
        shape.push_back(dim);
      }
    }
    Json json = {{"name", value.name}, {"dtype", value.type}, {"shape", value.has_rank ? shape : Json()}};
    if (!value.note.empty()) json["note"] = value.note;
    list.push_back(std::move(json));
  }
  return list;
}

/// Texts of a stranger's file in the form that every reader of JSON takes.
Json printable(const Json& json) {
  return parse_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

FileValue unshaped_value(std::string name, std::string type) {
  FileValue value;
  value.name = std::move(name);
  value.type = std::move(type);
  value.has_rank = false;
  return value;
}

std::optional<int64_t> count_elements(std::span<const int64_t> dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return std::nullopt;
  return elements;
}

void FileFacts::add_weight(std::optional<int64_t> elements, std::optional<int64_t> element_bytes) {
  int64_t bytes = 0;
  if (!elements || !element_bytes || __builtin_mul_overflow(*elements, *element_bytes, &bytes) ||
      __builtin_add_overflow(weight_bytes, bytes, &bytes))
    return;
  parameters += *elements;
  weight_bytes = bytes;
}

void FileFacts::add_weight(std::optional<int64_t> elements, std::optional<DType> dtype) {
  if (dtype) add_weight(elements, static_cast<int64_t>(dtype_bytes(*dtype)));
}

Json to_json(const FileFacts& facts) {
  Json notes = Json::object();
  for (const auto& [name, text] : facts.notes) notes[name] = text;
  return printable({{"format", facts.format},
                    {"version", facts.version},
                    {"inputs", values_json(facts.inputs)},
                    {"outputs", values_json(facts.outputs)},
                    {"operators", facts.ops},
                    {"parameters", facts.parameters},
                    {"weight_bytes", facts.weight_bytes},
                    {"notes", notes}});
}

std::string to_text(const FileFacts& facts) {
  std::string text;
  const auto line = [&](const std::string& words) { text += words + "\n"; };
  line("format " + facts.format + (facts.version.empty() ? "" : " (" + facts.version + ")"));
  const auto values = [&](const char* title, const std::vector<FileValue>& list) {
    for (const FileValue& value : list) {
      line(std::string(title) + " " + value.name + ": " + value.type + shape_text(value) +
           (value.note.empty() ? "" : " (" + value.note + ")"));
    }
  };
  values("input", facts.inputs);
  values("output", facts.outputs);
  line("parameters " + std::to_string(facts.parameters) + " (" + std::to_string(facts.weight_bytes) +
       " bytes)");
  for (const auto& [name, words] : facts.notes) line(name + ": " + words);
  return text;
}

}  // namespace tensormill::frontend
