/// Tensors of strings. A tensor of kString has one axis more than its strings: the last one holds the bytes
/// of a string, UTF-8 (RFC 3629), zeros behind them, so that a string ends in no zero byte and has at most
/// the axis' extent of bytes, its width. Kernels move strings as bytes; host steps alone read them.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/narrow.h"
#include "runtime/base/tensor.h"

namespace tensormill {

/// Bytes that a string of a model's input may have, unless the compile has another number.
inline constexpr int64_t kTextWidth = 256;

/// Whether `bytes` are UTF-8: no surrogates, no overlong forms, nothing past U+10FFFF.
bool is_utf8(std::string_view bytes);
/// The code points of UTF-8. Throws Error(kInvalidTensor) for other bytes.
std::u32string code_points(std::string_view text);
/// Appends a code point in UTF-8. Throws Error(kInvalidTensor) when there is none such.
void append_utf8(std::string& text, char32_t point);

/// The strings of a tensor of kString, row-major. Holds no bytes: `view` outlives it.
class Texts {
public:
  explicit Texts(const TensorView& view);
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  std::string_view operator[](int64_t index) const;
  /// The shape of the strings: without the axis of the bytes.
  const Shape& shape() const { return shape_; }

private:
  const char* data_;
  Shape shape_;
  int64_t count_, width_;
};

/// Shape of a tensor as people see it: without the axis of a string's bytes.
template <typename Dims>
Dims shown_shape(DType dtype, Dims shape) {
  if (dtype == kString && !shape.empty()) shape.pop_back();
  return shape;
}

/// Strings as a tensor [shape..., width], as wide as the longest, at least 1. Throws Error(kInvalidTensor)
/// for a string that is not UTF-8 or ends in a zero byte, naming its number, and where the whole would have
/// more than 1 GiB.
Tensor text_tensor(Shape shape, const std::vector<std::string>& texts);
Tensor text_tensor(Shape shape, const std::vector<std::string_view>& texts);
/// The strings with `width` bytes each. Throws Error(kInvalidTensor) for one that is longer or not UTF-8.
Tensor fitted_text(const TensorView& view, int64_t width);

}  // namespace tensormill
