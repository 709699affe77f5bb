// Pictures without compression: BMP (Microsoft's bitmaps) and PNM (Netpbm's formats); and all formats by
// their first bytes.
#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/image/image.h"
#include "runtime/image/reader.h"

namespace tensormill::image {

namespace {

Image empty_image(int64_t width, int64_t height, int channels, int64_t max_pixels) {
  check_size(width, height, max_pixels);
  Image image{width, height, channels, {}};
  image.pixels.resize(static_cast<size_t>(width * height * channels));
  return image;
}

Image decode_bmp(std::span<const std::byte> file, int64_t max_pixels) {
  const Reader reader(file, "BMP");
  const uint64_t data = reader.number(10, 4), header = reader.number(14, 4);
  if (header < 40) reader.not_implemented("headers of " + std::to_string(header) + " bytes");
  const auto width = static_cast<int64_t>(static_cast<int32_t>(reader.number(18, 4)));
  const auto rows = static_cast<int64_t>(static_cast<int32_t>(reader.number(22, 4)));
  const uint64_t bits = reader.number(28, 2);
  if (reader.number(30, 4) != 0 || (bits != 8 && bits != 24 && bits != 32))
    reader.not_implemented("compression, or " + std::to_string(bits) + " bits a pixel");
  const int64_t height = rows < 0 ? -rows : rows;
  Image image = empty_image(width, height, 3, max_pixels);
  const uint64_t stride = (static_cast<uint64_t>(width) * bits / 8 + 3) / 4 * 4;
  for (int64_t y = 0; y < height; ++y) {
    const uint64_t line = static_cast<uint64_t>(rows < 0 ? y : height - 1 - y);
    const std::span<const std::byte> row = reader.range(data + line * stride, stride);
    for (int64_t x = 0; x < width; ++x) {
      uint8_t* pixel = &image.pixels[static_cast<size_t>((y * width + x) * 3)];
      const auto at = static_cast<uint64_t>(x);
      // Blue, green, red: in the row, or in the palette behind the header.
      const std::span<const std::byte> color =
          bits == 8 ? reader.range(14 + header + 4 * static_cast<uint64_t>(row[at]), 3)
                    : row.subspan(at * bits / 8, 3);
      for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(color[2 - c]);
    }
  }
  return image;
}

/// The text of a Netpbm file from its second byte on: numbers, between blanks and comments from # to the
/// line's end.
class PnmText {
public:
  explicit PnmText(std::span<const std::byte> file)
      : reader_(file, "PNM"), text_(reinterpret_cast<const char*>(file.data()), file.size()) {}

  const Reader& reader() const { return reader_; }
  size_t place() const { return at_; }

  /// The next number of at most `digits` digits.
  int64_t number(size_t digits = 9) {
    while (at_ < text_.size() && std::string_view("# \n\r\t").find(text_[at_]) != std::string_view::npos)
      at_ = text_[at_] == '#' ? std::min(text_.find('\n', at_), text_.size()) : at_ + 1;
    int64_t value = 0;
    const char* start = text_.data() + at_;
    const auto parsed = std::from_chars(start, start + std::min(digits, text_.size() - at_), value);
    if (parsed.ec != std::errc() || value < 0) reader_.refuse("a number is missing");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    return value;
  }

private:
  Reader reader_;
  std::string_view text_;
  size_t at_ = 2;
};

/// P1 to P3 write samples as numbers, P4 to P6 as bits or bytes; in P1 and P4 a one is black.
Image decode_pnm(std::span<const std::byte> file, int64_t max_pixels) {
  PnmText text(file);
  const Reader& reader = text.reader();
  const int kind = static_cast<int>(reader.number(1, 1)) - '0';
  const bool is_bits = kind == 1 || kind == 4;
  const int64_t width = text.number(), height = text.number(), largest = is_bits ? 1 : text.number();
  if (largest < 1 || largest > 65535) reader.refuse("samples up to " + std::to_string(largest));
  Image image = empty_image(width, height, kind % 3 == 0 ? 3 : 1, max_pixels);
  const uint64_t bytes = largest > 255 ? 2 : 1, data = text.place() + 1;
  const uint64_t line = static_cast<uint64_t>(width + 7) / 8 * 8;  // bits; whole bytes
  for (uint64_t i = 0; i < image.pixels.size(); ++i) {
    int64_t value = 0;
    if (kind < 4) {
      value = text.number(is_bits ? 1 : 9);
    } else if (is_bits) {
      const uint64_t bit = i / static_cast<uint64_t>(width) * line + i % static_cast<uint64_t>(width);
      value = static_cast<int64_t>(reader.number(data + bit / 8, 1) >> (7 - bit % 8) & 1);
    } else {
      value = static_cast<int64_t>(reader.number(data + i * bytes, static_cast<int>(bytes), true));
    }
    if (value > largest) reader.refuse("a sample is larger than the largest");
    const int64_t level = is_bits ? 1 - value : value;
    image.pixels[i] = static_cast<uint8_t>((level * 255 + largest / 2) / largest);
  }
  return image;
}

bool starts_with(std::span<const std::byte> file, std::string_view mark) {
  return file.size() >= mark.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), mark.size()) == mark;
}

}  // namespace

namespace {

bool is_tiff(std::span<const std::byte> file) {
  return starts_with(file, std::string_view("II*\0", 4)) || starts_with(file, std::string_view("MM\0*", 4));
}

bool is_webp(std::span<const std::byte> file) {
  return starts_with(file, "RIFF") && file.size() > 8 && starts_with(file.subspan(8), "WEBP");
}

bool is_jpeg2000(std::span<const std::byte> file) {
  return starts_with(file, "\xff\x4f\xff\x51") || starts_with(file, std::string_view("\0\0\0\x0cjP  ", 8));
}

}  // namespace

bool is_common(std::span<const std::byte> file) {
  return !is_tiff(file) && !is_webp(file) && !is_jpeg2000(file);
}

Image decode_any(std::span<const std::byte> file, int64_t max_pixels) {
  if (starts_with(file, "BM")) return decode_bmp(file, max_pixels);
  if (starts_with(file, "P") && file.size() > 1 && file[1] >= std::byte{'1'} && file[1] <= std::byte{'6'})
    return decode_pnm(file, max_pixels);
  if (is_tiff(file)) return decode_tiff(file, max_pixels);
  if (is_webp(file)) return decode_webp(file, max_pixels);
  if (is_jpeg2000(file)) return decode_jpeg2000(file, max_pixels);
  return decode(file, max_pixels);
}

}  // namespace tensormill::image
