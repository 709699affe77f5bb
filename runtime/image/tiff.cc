// TIFF 6.0: the first picture of a file, in strips or tiles, without compression or by PackBits, LZW or
// Deflate.
#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <memory>

#include "runtime/image/image.h"
#include "runtime/image/reader.h"

namespace tensormill::image {

namespace {

constexpr uint64_t kWidth = 256, kHeight = 257, kBits = 258, kCompression = 259, kColors = 262,
                   kFillOrder = 266, kStrips = 273, kSamples = 277, kStripRows = 278, kStripBytes = 279,
                   kPlanes = 284, kPredictor = 317, kColorMap = 320, kTileWidth = 322, kTileHeight = 323,
                   kTiles = 324, kTileBytes = 325, kSampleFormat = 339;
constexpr uint64_t kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2, kPalette = 3;
constexpr uint64_t kStored = 1, kLzw = 5, kDeflate = 8, kOldDeflate = 32946, kPackBits = 32773;

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
  bool is_big() const { return big_; }

  /// The values of a field; `fallback` alone when it is not there.
  std::vector<uint64_t> values(uint64_t tag, uint64_t fallback) const {
    for (uint64_t i = 0; i < count_; ++i) {
      const uint64_t entry = first_ + 12 * i;
      if (reader_.number(entry, 2, big_) != tag) continue;
      const uint64_t type = reader_.number(entry + 2, 2, big_), count = reader_.number(entry + 4, 4, big_);
      const int bytes = type == 3 ? 2 : type == 4 ? 4 : type == 1 ? 1 : 0;
      if (bytes == 0) reader_.not_implemented("fields of type " + std::to_string(type));
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

using Bytes = std::vector<uint8_t>;

/// Runs: a byte n, then n + 1 bytes as they are, or one that stands for 1 - n.
Bytes unpack_bits(const Reader& reader, std::span<const std::byte> data, size_t wanted) {
  Bytes out;
  for (size_t at = 0; out.size() < wanted;) {
    if (at >= data.size()) reader.refuse("its data end too soon");
    const int run = static_cast<int8_t>(data[at++]);
    if (run == -128) continue;
    const size_t count = static_cast<size_t>(run < 0 ? 1 - run : run + 1), read = run < 0 ? 1 : count;
    if (read > data.size() - at) reader.refuse("its data end too soon");
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<uint8_t>(data[at + (run < 0 ? 0 : i)]));
    at += read;
  }
  return out;
}

/// Lempel, Ziv and Welch (TIFF 6.0, section 13). A code's string is the one before it and a byte more, so it
/// stands in what was written already.
Bytes unpack_lzw(const Reader& reader, std::span<const std::byte> data, size_t wanted) {
  constexpr uint32_t kClear = 256, kEnd = 257, kFirst = 258, kMostCodes = 4096;
  struct Written {
    size_t start = 0, length = 0;
  };
  std::array<Written, kMostCodes> codes{};
  Bytes out;
  Written previous;
  uint32_t next = kFirst, width = 9, bits = 0, available = 0;
  for (size_t at = 0; out.size() < wanted;) {
    for (; available < width; available += 8) {
      if (at >= data.size()) reader.refuse("its data end too soon");
      bits = bits << 8 | static_cast<uint32_t>(data[at++]);
    }
    available -= width;
    const uint32_t code = bits >> available & ((1u << width) - 1);
    if (code == kEnd) break;
    if (code == kClear) {
      next = kFirst;
      width = 9;
      previous = {};
      continue;
    }
    if (previous.length != 0 && next < kMostCodes) codes[next++] = {previous.start, previous.length + 1};
    if (code >= next) reader.refuse("its data have a code that does not exist yet");
    const Written now{out.size(), code < kClear ? 1 : codes[code].length};
    if (code < kClear) out.push_back(static_cast<uint8_t>(code));
    for (size_t i = 0; code >= kFirst && i < now.length; ++i) {
      const uint8_t byte = out[codes[code].start + i];
      out.push_back(byte);
    }
    previous = now;
    if (next + 1 >= 1u << width && width < 12) ++width;
  }
  return out;
}

/// At most `most` bytes.
Bytes inflate(const Reader& reader, std::span<const std::byte> data, size_t most) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&::libdeflate_free_decompressor)> inflater(
      ::libdeflate_alloc_decompressor(), &::libdeflate_free_decompressor);
  Bytes out(most);
  size_t made = 0;
  if (inflater == nullptr ||
      ::libdeflate_zlib_decompress(inflater.get(), data.data(), data.size(), out.data(), out.size(), &made) !=
          LIBDEFLATE_SUCCESS)
    reader.refuse("its data are broken");
  out.resize(made);
  return out;
}

/// What is the same for all strips or tiles of a picture.
struct Layout {
  uint64_t width, height, bits, samples, colors, compression, predictor;
  bool is_tiled, is_planar;
  uint64_t part_width, part_height, across, down;
  std::vector<uint64_t> places, sizes;  ///< of the parts, plane by plane

  uint64_t samples_of_part() const { return is_planar ? 1 : samples; }
  uint64_t row_bytes() const { return (part_width * samples_of_part() * bits + 7) / 8; }
  uint64_t largest() const { return (uint64_t{1} << bits) - 1; }
};

uint64_t parts_of(uint64_t extent, uint64_t part) { return (extent + part - 1) / part; }

void read_parts(const TiffFields& fields, Layout& layout, int64_t max_pixels) {
  layout.is_tiled = fields.value(kTileWidth, 0) != 0;
  layout.part_width = layout.is_tiled ? fields.value(kTileWidth, 0) : layout.width;
  layout.part_height = layout.is_tiled ? fields.value(kTileHeight, 0)
                                       : std::min(fields.value(kStripRows, layout.height), layout.height);
  if (layout.part_height == 0) fields.reader().refuse("its parts have no rows");
  check_size(static_cast<int64_t>(layout.part_width), static_cast<int64_t>(layout.part_height), max_pixels);
  layout.across = parts_of(layout.width, layout.part_width);
  layout.down = parts_of(layout.height, layout.part_height);
  // Tiles may stand over the borders; overlapping data could make a small file long work.
  constexpr uint64_t kMostOver = uint64_t{1} << 22;
  if (layout.across * layout.part_width * layout.down * layout.part_height >
      4 * layout.width * layout.height + kMostOver)
    fields.reader().refuse("its tiles are larger than the picture");
  layout.places = fields.values(layout.is_tiled ? kTiles : kStrips, 0);
  layout.sizes = fields.values(layout.is_tiled ? kTileBytes : kStripBytes, 0);
  const uint64_t planes = layout.is_planar ? layout.samples : 1;
  if (layout.places.size() != layout.sizes.size() ||
      layout.places.size() < layout.across * layout.down * planes)
    fields.reader().refuse("it has other parts than its extents say");
}

Layout read_layout(const TiffFields& fields, int64_t max_pixels) {
  const Reader& reader = fields.reader();
  Layout layout{};
  layout.width = fields.value(kWidth, 0);
  layout.height = fields.value(kHeight, 0);
  check_size(static_cast<int64_t>(layout.width), static_cast<int64_t>(layout.height), max_pixels);
  const std::vector<uint64_t> bits = fields.values(kBits, 1);
  layout.bits = bits.front();
  layout.samples = fields.value(kSamples, 1);
  layout.colors = fields.value(kColors, kBlackIsZero);
  layout.compression = fields.value(kCompression, kStored);
  layout.predictor = fields.value(kPredictor, 1);
  layout.is_planar = fields.value(kPlanes, 1) == 2 && layout.samples > 1;
  const bool are_bits_good =
      (layout.bits == 1 || layout.bits == 2 || layout.bits == 4 || layout.bits == 8 || layout.bits == 16) &&
      std::all_of(bits.begin(), bits.end(), [&](uint64_t b) { return b == bits.front(); });
  if (!are_bits_good || fields.value(kSampleFormat, 1) != 1)
    reader.not_implemented("samples of " + std::to_string(layout.bits) + " bits of their kind");
  const bool is_gray = layout.colors == kWhiteIsZero || layout.colors == kBlackIsZero;
  const uint64_t needed = layout.colors == kRgb ? 3 : 1;
  if ((!is_gray && layout.colors != kRgb && (layout.colors != kPalette || layout.bits > 8)) ||
      layout.samples < needed || layout.samples > needed + 1)
    reader.not_implemented("colours of kind " + std::to_string(layout.colors) + " with " +
                           std::to_string(layout.samples) + " samples");
  if (layout.predictor > 2 || (layout.predictor == 2 && layout.bits < 8))
    reader.not_implemented("predictor " + std::to_string(layout.predictor));
  if (fields.value(kFillOrder, 1) != 1) reader.not_implemented("the last bit first");
  read_parts(fields, layout, max_pixels);
  return layout;
}

/// The samples of one strip or tile of `rows` rows as bytes.
Bytes unpacked(const TiffFields& fields, const Layout& layout, size_t index, uint64_t rows) {
  const Reader& reader = fields.reader();
  const std::span<const std::byte> data = reader.range(layout.places[index], layout.sizes[index]);
  const size_t wanted = layout.row_bytes() * rows;
  Bytes bytes;
  if (layout.compression == kPackBits) {
    bytes = unpack_bits(reader, data, wanted);
  } else if (layout.compression == kLzw) {
    bytes = unpack_lzw(reader, data, wanted);
  } else if (layout.compression == kDeflate || layout.compression == kOldDeflate) {
    // The last strip may have rows past the picture.
    bytes = inflate(reader, data, layout.row_bytes() * layout.part_height);
  } else if (layout.compression == kStored) {
    const auto* first = reinterpret_cast<const uint8_t*>(data.data());
    bytes.assign(first, first + data.size());
  } else {
    reader.not_implemented("compression " + std::to_string(layout.compression));
  }
  if (bytes.size() < wanted) reader.refuse("its data end too soon");
  return bytes;
}

/// Sample `index` of a row.
uint64_t sample_of(const uint8_t* row, uint64_t index, uint64_t bits, bool is_big) {
  if (bits == 8) return row[index];
  if (bits == 16) {
    const uint64_t first = row[2 * index], second = row[2 * index + 1];
    return is_big ? first << 8 | second : second << 8 | first;
  }
  const uint64_t bit = index * bits;
  return row[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
}

/// The samples of a row, from differences to the pixel before where the predictor says so.
void read_row(const uint8_t* row, const Layout& layout, bool is_big, std::vector<uint64_t>& samples) {
  const uint64_t step = layout.samples_of_part();
  for (uint64_t i = 0; i < samples.size(); ++i) {
    samples[i] = sample_of(row, i, layout.bits, is_big);
    if (layout.predictor == 2 && i >= step) samples[i] = (samples[i] + samples[i - step]) & layout.largest();
  }
}

/// Puts samples into the picture: `plane` is the first sample of a pixel that the row has.
class Painter {
public:
  Painter(const TiffFields& fields, const Layout& layout, Image& image)
      : layout_(layout), image_(image), channels_(static_cast<uint64_t>(image.channels)) {
    if (layout.colors != kPalette) return;
    map_ = fields.values(kColorMap, 0);
    if (map_.size() < 3 * (layout.largest() + 1)) fields.reader().refuse("its palette is too short");
  }

  void paint(const std::vector<uint64_t>& samples, uint64_t x, uint64_t y, uint64_t plane) {
    const uint64_t step = layout_.samples_of_part();
    const uint64_t count = std::min(samples.size() / step, layout_.width - x);
    for (uint64_t i = 0; i < count; ++i) {
      uint8_t* pixel = &image_.pixels[(y * layout_.width + x + i) * channels_];
      // What is behind the colours says how much of the pixel there is.
      const uint64_t first = samples[i * step];
      if (layout_.colors == kPalette && plane == 0) {
        for (uint64_t c = 0; c < 3; ++c)
          pixel[c] = static_cast<uint8_t>(map_[c * (layout_.largest() + 1) + first] >> 8);
      } else if (layout_.colors != kPalette) {
        for (uint64_t s = 0; s < step && plane + s < channels_; ++s)
          pixel[plane + s] = level(samples[i * step + s]);
      }
    }
  }

private:
  uint8_t level(uint64_t sample) const {
    const uint64_t largest = layout_.largest();
    if (layout_.colors == kWhiteIsZero) sample = largest - sample;
    return static_cast<uint8_t>((sample * 255 + largest / 2) / largest);
  }

  const Layout& layout_;
  Image& image_;
  uint64_t channels_;
  std::vector<uint64_t> map_;
};

}  // namespace

Image decode_tiff(std::span<const std::byte> file, int64_t max_pixels) {
  const TiffFields fields(file);
  const Layout layout = read_layout(fields, max_pixels);
  Image image{static_cast<int64_t>(layout.width),
              static_cast<int64_t>(layout.height),
              layout.colors == kRgb || layout.colors == kPalette ? 3 : 1,
              {}};
  image.pixels.resize(layout.width * layout.height * static_cast<uint64_t>(image.channels));
  Painter painter(fields, layout, image);
  std::vector<uint64_t> samples(layout.part_width * layout.samples_of_part());
  const uint64_t parts = layout.across * layout.down, planes = layout.is_planar ? layout.samples : 1;
  for (uint64_t index = 0; index < parts * planes; ++index) {
    const uint64_t part = index % parts, x = part % layout.across * layout.part_width,
                   y = part / layout.across * layout.part_height;
    const uint64_t inside = std::min(layout.part_height, layout.height - y);
    const Bytes bytes = unpacked(fields, layout, index, layout.is_tiled ? layout.part_height : inside);
    for (uint64_t row = 0; row < inside; ++row) {
      read_row(bytes.data() + row * layout.row_bytes(), layout, fields.is_big(), samples);
      painter.paint(samples, x, y + row, index / parts);
    }
  }
  return image;
}

}  // namespace tensormill::image
