/// Models in onnx.proto's wire format by hand.
#pragma once

#include <sys/mman.h>

#include <string>
#include <variant>
#include <vector>

#include "compiler/frontend/onnx/import.h"
#include "runtime/base/file.h"

namespace tensormill::frontend::onnx {

/// A field with a length, a field with a number.
inline std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
inline std::string field(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

/// Of 128 bytes and more.
inline std::string long_field(int number, const std::string& bytes) {
  std::string length;
  for (size_t rest = bytes.size(); rest > 0 || length.empty(); rest >>= 7)
    length += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  return static_cast<char>(number << 3 | 2) + length + bytes;
}

/// Dims that are no numbers are names.
inline std::string tensor_value(const std::string& name, int dtype,
                                const std::vector<std::variant<int, std::string>>& shape) {
  std::string dims;
  for (const auto& dim : shape) {
    const int* extent = std::get_if<int>(&dim);
    dims += field(1, extent != nullptr ? field(1, *extent) : field(2, std::get<std::string>(dim)));
  }
  return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)));
}

/// A whole file.
inline ModelSource file_of(const std::string& bytes) {
  const FileDescriptor fd(::memfd_create("model", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "model");
  ModelSource source;
  source.model = MappedFile::map(fd.get(), "model");
  source.digest = Digest::of(bytes);
  return source;
}

/// Of opset 13.
inline ModelSource source_of(const std::string& graph) {
  return file_of(field(1, 8) + long_field(7, graph) + field(8, field(1, "") + field(2, 13)));
}

}  // namespace tensormill::frontend::onnx
