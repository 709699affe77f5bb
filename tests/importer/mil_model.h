/// Core ML models as bytes: messages of an ML Program field by field, weight files and packages.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/zip_bytes.h"

namespace tensormill::frontend::mil {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string number(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
inline std::string message(int field, std::string_view bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
/// An entry of a map.
inline std::string entry(int field, std::string_view key, std::string_view value) {
  return message(field, message(1, key) + message(2, value));
}

inline constexpr uint64_t kFp32 = 11, kInt32 = 23, kString = 2;

/// ValueType of a tensor; -1: a dim that is not known.
inline std::string tensor(uint64_t dtype, const std::vector<int64_t>& dims) {
  std::string type = number(1, dtype) + number(2, dims.size());
  for (const int64_t dim : dims)
    type += message(3, dim < 0 ? message(2, "") : message(1, number(1, static_cast<uint64_t>(dim))));
  return message(1, type);
}
inline std::string named(std::string_view name, std::string_view type) {
  return message(1, name) + message(2, type);
}

inline std::string text_value(std::string_view text) {
  return message(2, tensor(kString, {})) + message(3, message(1, message(4, message(1, text))));
}
inline std::string ints_value(const std::vector<int64_t>& ints) {
  std::string packed;
  for (const int64_t each : ints) packed += varint(static_cast<uint64_t>(each));
  return message(2, tensor(kInt32, {static_cast<int64_t>(ints.size())})) +
         message(3, message(1, message(2, message(1, packed))));
}
inline std::string blob_value(uint64_t dtype, const std::vector<int64_t>& dims, uint64_t offset) {
  return message(2, tensor(dtype, dims)) +
         message(5, message(1, "@model_path/weights/weight.bin") + number(2, offset));
}

/// Arguments: the name of a value, or a value.
inline std::string by_name(std::string_view name) { return message(1, message(1, name)); }
inline std::string by_value(std::string_view value) { return message(1, message(2, value)); }

struct Operand {
  std::string name, argument;
};
inline std::string operation(std::string_view type, std::string_view label,
                             const std::vector<Operand>& operands, const std::string& output) {
  std::string bytes = message(1, type);
  for (const auto& [name, argument] : operands) bytes += entry(2, name, argument);
  return bytes + message(3, output) + entry(5, "name", text_value(label));
}
inline std::string constant(std::string_view name, std::string_view type, std::string_view value) {
  return message(1, "const") + message(3, named(name, type)) + entry(5, "name", text_value(name)) +
         entry(5, "val", value);
}

/// Model of one function of one block.
inline std::string model(const std::vector<std::string>& inputs, const std::vector<std::string>& operations,
                         const std::vector<std::string>& outputs, std::string_view opset = "CoreML7",
                         std::string_view description = "") {
  std::string block, function;
  for (const std::string& each : operations) block += message(3, each);
  for (const std::string& each : outputs) block += message(2, each);
  for (const std::string& each : inputs) function += message(1, each);
  function += message(2, opset) + entry(3, opset, block);
  return number(1, 8) + message(2, description) + message(502, number(1, 1) + entry(2, "main", function));
}

/// A weight file of one blob of float32, at 64.
inline std::string weights(const std::vector<float>& elements) {
  std::string file;
  put_bytes(file, 1, 4);
  put_bytes(file, 2, 4);
  file.resize(64);
  put_bytes(file, 0xDEADBEEF, 4);
  put_bytes(file, 2, 4);
  put_bytes(file, elements.size() * 4, 8);
  put_bytes(file, 128, 8);
  file.resize(128);
  return file.append(reinterpret_cast<const char*>(elements.data()), elements.size() * 4);
}

inline std::string manifest(std::string_view path = "com.apple.CoreML/model.mlmodel") {
  return R"({"fileFormatVersion":"1.0.0","rootModelIdentifier":"A","itemInfoEntries":{"A":{"path":")" +
         std::string(path) + R"("}}})";
}
inline std::string package(const std::string& model, const std::string& weight_file,
                           const std::string& manifest_text = manifest()) {
  const std::string folder = "net.mlpackage/Data/com.apple.CoreML/";
  return stored_zip({{"net.mlpackage/Manifest.json", manifest_text},
                     {folder + "model.mlmodel", model},
                     {folder + "weights/weight.bin", weight_file}});
}

}  // namespace tensormill::frontend::mil
