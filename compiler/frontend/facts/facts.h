/// What is known of a model's file without compiling it, whatever its format: for people, as lines, and
/// for programs, as JSON. Each frontend fills it. Thread-safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::frontend {

/// Extents as words: "?" for one that is free, which is less than 0.
template <typename Dims>
std::vector<std::string> shown_dims(const Dims& dims) {
  std::vector<std::string> words;
  for (const auto dim : dims) words.push_back(dim < 0 ? "?" : std::to_string(dim));
  return words;
}

/// The product of extents; nothing where it is too large or one of them is less than 0.
std::optional<int64_t> count_elements(std::span<const int64_t> dims);

/// An input or output. Types and dims are words: formats have types that no tensor here has.
struct FileValue {
  std::string name;
  std::string type;                ///< "float32", "int8", "string"
  std::vector<std::string> shape;  ///< "1", "224", "N"; "?" for a free dim without a name
  bool has_rank = true;
  std::string note = {};  ///< "scale 0.0078 zero point -1"
};
/// One of which the file does not say how many dims it has.
FileValue unshaped_value(std::string name, std::string type = {});

struct FileFacts {
  std::string format;   ///< a row of formats.def: "tflite"
  std::string version;  ///< of format and writer: "schema 3, 2 subgraphs"
  std::vector<FileValue> inputs, outputs;
  std::map<std::string, int64_t> ops;  ///< operator or layer -> count
  int64_t parameters = 0;              ///< elements of all weights
  int64_t weight_bytes = 0;
  /// What else is worth knowing, in order: {"quantization", "int8 weights and activations"}.
  std::vector<std::pair<std::string, std::string>> notes;

  /// A weight; nothing: it is not known how many elements it has, or of how many bytes.
  void add_weight(std::optional<int64_t> elements, std::optional<int64_t> element_bytes);
  void add_weight(std::optional<int64_t> elements, std::optional<DType> dtype);
};

/// {"format","version","inputs","outputs","operators","parameters","weight_bytes","notes"}: text that is not
/// UTF-8 has U+FFFD.
Json to_json(const FileFacts& facts);
/// The facts as lines, each with its end.
std::string to_text(const FileFacts& facts);

}  // namespace tensormill::frontend
