// Pictures without compression: BMP (Microsoft's bitmaps), PNM (Netpbm's P5 and P6) and TIFF 6.0.
#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::kInvalidImage, what); }

/// Numbers of a file; those past its end are an error.
class Reader {
public:
  Reader(std::span<const std::byte> file, const char* format) : file_(file), format_(format) {}

  uint64_t number(uint64_t at, int bytes, bool big = false) const {
    const std::span<const std::byte> field = range(at, static_cast<uint64_t>(bytes));
    uint64_t value = 0;
    for (size_t i = 0; i < field.size(); ++i)
      value |= static_cast<uint64_t>(field[big ? field.size() - 1 - i : i]) << (8 * i);
    return value;
  }

  std::span<const std::byte> range(uint64_t at, uint64_t bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) refuse("it ends too soon");
    return file_.subspan(at, bytes);
  }

  [[noreturn]] void refuse(const std::string& what) const { fail(std::string(format_) + ": " + what); }

private:
  std::span<const std::byte> file_;
  const char* format_;
};

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

/// The next number of a PNM header; comments run from # to the line's end.
int64_t header_number(std::string_view text, size_t& at) {
  while (at < text.size() &&
         (text[at] == '#' || text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (parsed.ec != std::errc() || value < 0) fail("PNM: its header has no number");
  at = static_cast<size_t>(parsed.ptr - text.data());
  return value;
}

Image decode_pnm(std::span<const std::byte> file, int64_t max_pixels) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  size_t at = 2;
  const int64_t width = header_number(text, at), height = header_number(text, at);
  const int64_t largest = header_number(text, at);
  if (largest != 255) fail("PNM: samples up to " + std::to_string(largest) + " are not implemented");
  Image image = empty_image(width, height, text[1] == '6' ? 3 : 1, max_pixels);
  const std::span<const std::byte> samples = Reader(file, "PNM").range(at + 1, image.pixels.size());
  std::transform(samples.begin(), samples.end(), image.pixels.begin(),
                 [](std::byte sample) { return static_cast<uint8_t>(sample); });
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
  if (starts_with(file, "P5") || starts_with(file, "P6")) return decode_pnm(file, max_pixels);
  if (starts_with(file, std::string_view("II*\0", 4)) || starts_with(file, std::string_view("MM\0*", 4)))
    return decode_tiff(file, max_pixels);
  return decode(file, max_pixels);
}

}  // namespace tensormill::image
