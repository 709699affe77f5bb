/// Numbers of fewer than 8 bits in bytes. Thread-safety: pure functions.
#pragma once

#include "runtime/base/tensor.h"

namespace tensormill::frontend::onnx {

/// Number `index` of a row of bytes that holds 8 / bits of them a byte, low bits first.
inline int64_t unpacked(const Tensor& bytes, int64_t row_start, int64_t index, int64_t bits) {
  const int64_t a_byte = 8 / bits;
  const int64_t byte = bytes.element_as_int(row_start + index / a_byte);
  return (byte >> (index % a_byte * bits)) & ((int64_t{1} << bits) - 1);
}

}  // namespace tensormill::frontend::onnx
