// Pictures without compression: BMP (Microsoft's bitmaps), PNM (Netpbm's formats) and TIFF 6.0.
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
  if (header < 40) reader.refuse("its header is not implemented");
  const auto width = static_cast<int64_t>(static_cast<int32_t>(reader.number(18, 4)));
  const auto rows = static_cast<int64_t>(static_cast<int32_t>(reader.number(22, 4)));
  const uint64_t bits = reader.number(28, 2);
  if (reader.number(30, 4) != 0 || (bits != 8 && bits != 24 && bits != 32))
    reader.refuse("compression and " + std::to_string(bits) + " bits a pixel are not implemented");
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

/// The fields of a TIFF's first picture.
class TiffFields {
public:
  explicit TiffFields(std::span<const std::byte> file)
      : reader_(file, "TIFF"), big_(file[0] == std::byte{'M'}) {
    const uint64_t start = reader_.number(4, 4, big_);
    count_ = reader_.number(start, 2, big_);
    first_ = start + 2;
  }

  const Reader& reader() const { return reader_; }

  /// The values of a field; `fallback` alone when it is not there.
  std::vector<uint64_t> values(uint64_t tag, uint64_t fallback) const {
    for (uint64_t i = 0; i < count_; ++i) {
      const uint64_t entry = first_ + 12 * i;
      if (reader_.number(entry, 2, big_) != tag) continue;
      const uint64_t type = reader_.number(entry + 2, 2, big_), count = reader_.number(entry + 4, 4, big_);
      const int bytes = type == 3 ? 2 : type == 4 ? 4 : type == 1 ? 1 : 0;
      if (bytes == 0) reader_.refuse("a field's type is not implemented");
      const uint64_t size = count * static_cast<uint64_t>(bytes);
      const uint64_t at = size <= 4 ? entry + 8 : reader_.number(entry + 8, 4, big_);
      reader_.range(at, size);
      std::vector<uint64_t> found;
      for (uint64_t k = 0; k < count; ++k)
        found.push_back(reader_.number(at + k * static_cast<uint64_t>(bytes), bytes, big_));
      if (!found.empty()) return found;
    }
    return {fallback};
  }

  uint64_t value(uint64_t tag, uint64_t fallback) const { return values(tag, fallback).front(); }

private:
  Reader reader_;
  bool big_;
  uint64_t count_ = 0, first_ = 0;
};

Image decode_tiff(std::span<const std::byte> file, int64_t max_pixels) {
  constexpr uint64_t kWidth = 256, kHeight = 257, kBits = 258, kCompression = 259, kColors = 262,
                     kStrips = 273, kSamples = 277, kStripBytes = 279, kPlanes = 284;
  const TiffFields fields(file);
  const uint64_t colors = fields.value(kColors, 1), samples = fields.value(kSamples, 1);
  const bool is_gray = colors == 1 && samples == 1, is_color = colors == 2 && (samples == 3 || samples == 4);
  if (fields.value(kCompression, 1) != 1 || fields.value(kBits, 1) != 8 || fields.value(kPlanes, 1) != 1 ||
      (!is_gray && !is_color))
    fields.reader().refuse("only gray and colour of 8 bits, without compression, are implemented");
  Image image = empty_image(static_cast<int64_t>(fields.value(kWidth, 0)),
                            static_cast<int64_t>(fields.value(kHeight, 0)), is_gray ? 1 : 3, max_pixels);
  const std::vector<uint64_t> strips = fields.values(kStrips, 0), sizes = fields.values(kStripBytes, 0);
  if (strips.size() != sizes.size()) fields.reader().refuse("its strips have no sizes");
  const auto channels = static_cast<uint64_t>(image.channels);
  const uint64_t needed = image.pixels.size() / channels * samples;
  uint64_t place = 0;  // of the sample in all strips
  for (size_t strip = 0; strip < strips.size() && place < needed; ++strip) {
    for (const std::byte sample : fields.reader().range(strips[strip], sizes[strip])) {
      const uint64_t pixel = place / samples, channel = place++ % samples;
      const uint64_t to = pixel * channels + channel;
      // A fourth sample says how much of the pixel there is.
      if (channel < channels && to < image.pixels.size()) image.pixels[to] = static_cast<uint8_t>(sample);
    }
  }
  if (place < needed) fields.reader().refuse("it ends too soon");
  return image;
}

bool starts_with(std::span<const std::byte> file, std::string_view mark) {
  return file.size() >= mark.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), mark.size()) == mark;
}

}  // namespace

Image decode_any(std::span<const std::byte> file, int64_t max_pixels) {
  if (starts_with(file, "BM")) return decode_bmp(file, max_pixels);
  if (starts_with(file, "P") && file.size() > 1 && file[1] >= std::byte{'1'} && file[1] <= std::byte{'6'})
    return decode_pnm(file, max_pixels);
  if (starts_with(file, std::string_view("II*\0", 4)) || starts_with(file, std::string_view("MM\0*", 4)))
    return decode_tiff(file, max_pixels);
  if (starts_with(file, "RIFF") && file.size() > 8 && starts_with(file.subspan(8), "WEBP"))
    return decode_webp(file, max_pixels);
  if (starts_with(file, "\xff\x4f\xff\x51") || starts_with(file, std::string_view("\0\0\0\x0cjP  ", 8)))
    return decode_jpeg2000(file, max_pixels);
  return decode(file, max_pixels);
}

}  // namespace tensormill::image
