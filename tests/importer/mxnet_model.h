/// Models of MXNet as bytes. Thread-safety: pure functions.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "tests/zip_bytes.h"

namespace tensormill::frontend::mxnet_model {

struct Array {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> elements;
};

/// Of the versions in which arrays are kept: 3, 2, 1, or 0, which has no mark.
inline std::string array_bytes(const Array& array, int version) {
  std::string bytes;
  if (version > 0) put_bytes(bytes, 0xF993FAC7 + static_cast<uint64_t>(version), 4);
  if (version > 1) put_bytes(bytes, 0, 4);
  put_bytes(bytes, array.dims.size(), 4);
  for (const int64_t dim : array.dims) put_bytes(bytes, static_cast<uint64_t>(dim), version > 0 ? 8 : 4);
  // A processor, and float32.
  put_bytes(bytes, 1, 4);
  put_bytes(bytes, 0, 4);
  put_bytes(bytes, 0, 4);
  for (const float element : array.elements) {
    uint32_t word = 0;
    std::memcpy(&word, &element, sizeof(word));
    put_bytes(bytes, word, 4);
  }
  return bytes;
}

inline std::string parameters(const std::vector<Array>& arrays, int version = 2) {
  std::string bytes;
  put_bytes(bytes, 0x112, 8);
  put_bytes(bytes, 0, 8);
  put_bytes(bytes, arrays.size(), 8);
  for (const Array& array : arrays) bytes += array_bytes(array, version);
  put_bytes(bytes, arrays.size(), 8);
  for (const Array& array : arrays) {
    put_bytes(bytes, array.name.size(), 8);
    bytes += array.name;
  }
  return bytes;
}

/// A node of the symbol; `rest`: members behind the inputs' list, ,"attrs":{...}.
inline std::string node(const std::string& op, const std::string& name, const std::string& inputs = "[]",
                        const std::string& rest = "") {
  return R"({"op":")" + op + R"(","name":")" + name + R"(","inputs":)" + inputs + rest + "}";
}

inline std::string symbol(const std::vector<std::string>& nodes, const std::string& heads) {
  std::string all;
  for (const std::string& each : nodes) all += (all.empty() ? "" : ",") + each;
  return R"({"nodes":[)" + all + R"(],"arg_nodes":[0],"heads":)" + heads +
         R"(,"attrs":{"mxnet_version":["int",10901]}})";
}

inline std::string archive(const std::string& symbol_json, const std::string& params) {
  return stored_zip({{"net/net-symbol.json", symbol_json}, {"net/net-0000.params", params}});
}

}  // namespace tensormill::frontend::mxnet_model
