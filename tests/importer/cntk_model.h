/// CNTK's dictionaries as bytes, and models of variables and functions. Thread-safety: pure functions.
#pragma once

#include <bit>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/importer/mil_model.h"

namespace tensormill::frontend::cntk_model {

using mil::message;
using mil::number;
using mil::varint;

/// DictionaryValue.
inline std::string value(uint64_t type, std::string_view held) {
  return number(1, 1) + number(2, type) + std::string(held);
}
inline std::string flag(bool is_set) { return value(1, number(3, is_set ? 1 : 0)); }
inline std::string size(uint64_t held) { return value(3, number(5, held)); }
inline std::string integer(int64_t held) { return value(2, number(4, static_cast<uint64_t>(held))); }
inline std::string real(double held) {
  std::string bytes = varint(uint64_t{7} << 3 | 1);
  put_bytes(bytes, std::bit_cast<uint64_t>(held), 8);
  return value(5, bytes);
}
inline std::string text(std::string_view held) { return value(6, message(8, held)); }
/// NDShape, in CNTK's order.
inline std::string shape(const std::vector<int64_t>& dims) {
  std::string packed;
  for (const int64_t dim : dims) packed += varint(static_cast<uint64_t>(dim));
  return message(1, packed);
}
inline std::string dims(const std::vector<int64_t>& held) { return value(7, message(9, shape(held))); }
inline std::string axis(int64_t index, std::string_view name = "") {
  return value(8, message(10, number(1, static_cast<uint64_t>(index)) + message(2, name)));
}
using Values = std::vector<std::string>;
inline std::string list(const Values& held) {
  std::string bytes;
  for (const std::string& each : held) bytes += message(1, each);
  return value(9, message(11, bytes));
}
using Entries = std::vector<std::pair<std::string, std::string>>;
/// Dictionary.
inline std::string entries(const Entries& held) {
  std::string bytes = number(1, 2);
  for (const auto& [key, each] : held) bytes += mil::entry(2, key, each);
  return bytes;
}
inline std::string dictionary(const Entries& held) { return value(10, message(12, entries(held))); }
inline std::string floats(const std::vector<float>& held) {
  std::string bytes;
  for (const float each : held) put_bytes(bytes, std::bit_cast<uint32_t>(each), 4);
  return bytes;
}
inline std::string array(const std::vector<int64_t>& dims, const std::vector<float>& held,
                         uint64_t dtype = 1) {
  const std::string elements = held.empty() ? std::string() : message(4, message(1, floats(held)));
  return value(11, message(13, number(1, dtype) + message(3, shape(dims)) + elements));
}

using Names = std::vector<std::string>;
inline std::string texts(const Names& names) {
  Values all;
  for (const std::string& each : names) all.push_back(text(each));
  return list(all);
}

inline constexpr int64_t kBatchAxis = 2147483647;

/// Kinds: 0 an input, 2 a parameter, 3 a constant, 4 a place holder.
inline std::string variable(uint64_t kind, const std::string& uid, const std::vector<int64_t>& extents,
                            const Entries& more = {}) {
  Entries all = {{"kind", size(kind)}, {"data_type", size(1)}, {"uid", text(uid)}, {"shape", dims(extents)}};
  all.insert(all.end(), more.begin(), more.end());
  return dictionary(all);
}
inline std::string input(const std::string& uid, const std::vector<int64_t>& extents,
                         const Names& axes = {"batch"}, const std::string& name = "") {
  Values dynamic;
  for (const std::string& each : axes) dynamic.push_back(axis(kBatchAxis, each));
  Entries more = {{"dynamic_axis", list(dynamic)}};
  if (!name.empty()) more.emplace_back("name", text(name));
  return variable(0, uid, extents, more);
}
inline std::string parameter(const std::string& uid, const std::vector<int64_t>& extents,
                             const std::vector<float>& elements) {
  return variable(2, uid, extents, {{"value", array(extents, elements)}});
}

inline std::string function(uint64_t op, const std::string& uid, const Names& inputs,
                            const Entries& attributes = {}, const Entries& more = {}) {
  Entries all = {{"type", text("PrimitiveFunction")},
                 {"op", size(op)},
                 {"uid", text(uid)},
                 {"inputs", texts(inputs)},
                 {"attributes", dictionary(attributes)}};
  all.insert(all.end(), more.begin(), more.end());
  return dictionary(all);
}
/// A block called `name` whose last function is `root`, with place holders and what stands for them.
inline std::string block(const std::string& uid, const std::string& name, const std::string& root,
                         const Names& holders, const Names& values, const Entries& attributes = {}) {
  return function(57, uid, values, attributes,
                  {{"block_function_op_name", text(name)},
                   {"block_function_composite", dictionary({{"root", text(root)}})},
                   {"block_function_composite_arguments_map_keys", texts(holders)},
                   {"block_function_composite_arguments_map_values", texts(values)}});
}
inline std::string model(const Values& variables, const Values& functions, const std::string& root) {
  return entries({{"version", size(3)},
                  {"type", text("CompositeFunction")},
                  {"root", text(root)},
                  {"uid", text("CompositeFunction9")},
                  {"inputs", list(variables)},
                  {"primitive_functions", list(functions)}});
}

}  // namespace tensormill::frontend::cntk_model
