/// The header of a .npy file: a Python dict literal of three known keys, read by a parser that knows nothing
/// else of Python.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill::npz {

/// As numpy has it: real ones have some hundred bytes.
inline constexpr size_t kMaxNpyHeader = 10000;

struct NpyHeader {
  DType dtype = DType::kFloat32;
  /// Strings: 4 bytes a code point ("U"), or UTF-8 ("S"); the shape's last extent is the bytes of one.
  bool wide_text = false;
  bool swap_bytes = false;
  bool fortran_order = false;
  Shape shape;
};

/// Parses the dict. Throws Error(kInvalidNpz).
NpyHeader parse_npy_dict(std::string_view dict);

}  // namespace tensormill::npz
