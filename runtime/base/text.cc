#include "runtime/base/text.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

/// The code point at the front of `bytes`, which it leaves; nothing when that is no UTF-8.
bool take_point(std::string_view& bytes, char32_t& point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80   ? 1
                      : lead < 0xc2 ? 0
                      : lead < 0xe0 ? 2
                      : lead < 0xf0 ? 3
                      : lead < 0xf5 ? 4
                                    : 0;
  if (size == 0 || bytes.size() < size) return false;
  point = size == 1 ? lead : lead & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0u) != 0x80) return false;
    point = point << 6 | (byte(i) & 0x3fu);
  }
  // Overlong forms of two bytes have leads below 0xc2.
  if ((size == 3 && point < 0x800) || (size == 4 && point < 0x10000) || point > 0x10ffff) return false;
  if (point >= 0xd800 && point < 0xe000) return false;
  bytes.remove_prefix(size);
  return true;
}

void check_text(std::string_view text, size_t index) {
  if (is_utf8(text) && !text.ends_with('\0')) return;
  throw Error(ErrorCode::kInvalidTensor, "string " + std::to_string(index) + " " +
                                             (is_utf8(text) ? "ends in a zero byte" : "is not UTF-8"));
}

template <typename Text>
Tensor made_tensor(Shape shape, const std::vector<Text>& texts) {
  TM_CHECK(num_elements(shape) == static_cast<int64_t>(texts.size()), "strings for " + to_string(shape));
  size_t width = 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], i);
    width = std::max(width, texts[i].size());
  }
  // One long string makes all of them wide.
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (width > kMostBytes / std::max<size_t>(texts.size(), 1))
    throw Error(ErrorCode::kInvalidTensor,
                std::to_string(texts.size()) + " strings of up to " + std::to_string(width) +
                    " bytes are more than a tensor holds, " + std::to_string(kMostBytes));
  shape.push_back(static_cast<int64_t>(width));
  Tensor tensor = Tensor::zeros(kString, std::move(shape));
  auto* target = static_cast<char*>(tensor.data());
  for (size_t i = 0; i < texts.size(); ++i) texts[i].copy(target + i * width, texts[i].size());
  return tensor;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  char32_t point = 0;
  while (!bytes.empty()) {
    if (!take_point(bytes, point)) return false;
  }
  return true;
}

std::u32string code_points(std::string_view text) {
  std::u32string points;
  char32_t point = 0;
  while (!text.empty()) {
    if (!take_point(text, point)) throw Error(ErrorCode::kInvalidTensor, "a string is not UTF-8");
    points += point;
  }
  return points;
}

void append_utf8(std::string& text, char32_t point) {
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
    throw Error(ErrorCode::kInvalidTensor,
                std::to_string(static_cast<uint32_t>(point)) + " is no code point");
  const auto put = [&](uint32_t bits) { text += static_cast<char>(bits); };
  const auto tail = [&](int shift) { put(0x80u | (point >> shift & 0x3fu)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0u | point >> 6);
  } else if (point < 0x10000) {
    put(0xe0u | point >> 12);
    tail(6);
  } else {
    put(0xf0u | point >> 18);
    tail(12);
    tail(6);
  }
  tail(0);
}

Texts::Texts(const TensorView& view)
    : data_(static_cast<const char*>(view.data)), shape_(shown_shape(view.dtype, view.shape)) {
  TM_CHECK(view.dtype == kString && !view.shape.empty(), "a tensor of strings");
  count_ = num_elements(shape_);
  width_ = view.shape.back();
}

std::string_view Texts::operator[](int64_t index) const {
  std::string_view text(data_ + index * width_, static_cast<size_t>(width_));
  while (text.ends_with('\0')) text.remove_suffix(1);
  return text;
}

Tensor text_tensor(Shape shape, const std::vector<std::string>& texts) {
  return made_tensor(std::move(shape), texts);
}

Tensor text_tensor(Shape shape, const std::vector<std::string_view>& texts) {
  return made_tensor(std::move(shape), texts);
}

Tensor fitted_text(const TensorView& view, int64_t width) {
  const Texts texts(view);
  Shape shape = texts.shape();
  shape.push_back(width);
  Tensor result = Tensor::zeros(kString, std::move(shape));
  auto* target = static_cast<char*>(result.data());
  for (int64_t i = 0; i < texts.count(); ++i) {
    const std::string_view text = texts[i];
    check_text(text, static_cast<size_t>(i));
    if (static_cast<int64_t>(text.size()) > width)
      throw Error(ErrorCode::kInvalidTensor, "string " + std::to_string(i) + " has " +
                                                 std::to_string(text.size()) + " bytes, at most " +
                                                 std::to_string(width) + " are allowed");
    text.copy(target + i * width, text.size());
  }
  return result;
}

}  // namespace tensormill
