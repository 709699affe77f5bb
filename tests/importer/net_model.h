/// Caffe2's nets as bytes, field by field, and models of both. Thread-safety: pure functions.
#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "tests/importer/mil_model.h"

namespace tensormill::frontend::nets {

using mil::message;
using mil::number;

inline std::string real(int field, float value) {
  std::string bytes = mil::varint(static_cast<uint64_t>(field) << 3 | 5);
  put_bytes(bytes, std::bit_cast<uint32_t>(value), 4);
  return bytes;
}

/// OperatorDef.arg
inline std::string integer(std::string_view name, int64_t value) {
  return message(5, message(1, name) + number(3, static_cast<uint64_t>(value)));
}
inline std::string text(std::string_view name, std::string_view value) {
  return message(5, message(1, name) + message(4, value));
}
inline std::string integers(std::string_view name, const std::vector<int64_t>& values) {
  std::string bytes = message(1, name);
  for (const int64_t value : values) bytes += number(6, static_cast<uint64_t>(value));
  return message(5, bytes);
}
inline std::string reals(std::string_view name, const std::vector<float>& values) {
  std::string bytes = message(1, name);
  for (const float value : values) bytes += real(5, value);
  return message(5, bytes);
}

using Names = std::vector<std::string>;
/// NetDef.op
inline std::string op(std::string_view type, const Names& inputs, const Names& outputs,
                      std::string_view arguments = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += message(1, input);
  for (const std::string& output : outputs) bytes += message(2, output);
  return message(2, bytes + message(3, "") + message(4, type) + std::string(arguments));
}
inline std::string fill(const std::string& name, const std::vector<int64_t>& shape,
                        const std::vector<float>& values) {
  return op("GivenTensorFill", {}, {name}, integers("shape", shape) + reals("values", values));
}
inline std::string net(std::string_view operators, const Names& inputs = {}, const Names& outputs = {}) {
  std::string bytes = message(1, "net") + std::string(operators);
  for (const std::string& input : inputs) bytes += message(7, input);
  for (const std::string& output : outputs) bytes += message(8, output);
  return bytes;
}

/// An archive of both nets, and of value_info.json where there is one.
inline std::string model(const std::string& init, const std::string& predict, const std::string& info = "") {
  std::vector<std::pair<std::string, std::string>> files = {{"m/init_net.pb", init},
                                                            {"m/predict_net.pb", predict}};
  if (!info.empty()) files.emplace_back("m/value_info.json", info);
  return stored_zip(files);
}

}  // namespace tensormill::frontend::nets
