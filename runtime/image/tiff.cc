#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "runtime/image/image.h"
#include "runtime/image/reader.h"

namespace tensormill::image {

namespace {

/// Without the library's old JPEG, and those that Debian's has and others may not have.
constexpr std::array<uint16_t, 9> kCompressions{
    COMPRESSION_NONE, COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,     COMPRESSION_CCITTFAX4, COMPRESSION_LZW,
    COMPRESSION_JPEG, COMPRESSION_PACKBITS, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE};
/// Four inks or colours and how much there is of them.
constexpr uint16_t kMostSamples = 5;

/// The file in memory, and what the library says of it. Its functions are called from C: none throws.
struct TiffSource {
  std::span<const std::byte> file;
  uint64_t at = 0;
  std::array<char, 256> error{};  ///< the first
  bool warned = false;

  static tmsize_t read(thandle_t source, void* to, tmsize_t bytes) {
    auto& self = *static_cast<TiffSource*>(source);
    if (bytes < 0 || self.at >= self.file.size()) return 0;
    const size_t count = std::min(static_cast<size_t>(bytes), self.file.size() - self.at);
    std::memcpy(to, self.file.data() + self.at, count);
    self.at += count;
    return static_cast<tmsize_t>(count);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t source, toff_t offset, int from) {
    auto& self = *static_cast<TiffSource*>(source);
    return self.at = offset + (from == SEEK_CUR ? self.at : from == SEEK_END ? self.file.size() : 0);
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t source) { return static_cast<TiffSource*>(source)->file.size(); }
  /// The library reads in place what it would copy else; it expects memory that cannot be written.
  static int map(thandle_t source, void** start, toff_t* bytes) {
    const std::span<const std::byte> file = static_cast<TiffSource*>(source)->file;
    *start = const_cast<std::byte*>(file.data());
    *bytes = file.size();
    return 1;
  }
  static void unmap(thandle_t, void*, toff_t) {}
  static int on_error(TIFF*, void* source, const char*, const char* format, va_list arguments) {
    std::array<char, 256>& error = static_cast<TiffSource*>(source)->error;
    if (error[0] == 0) std::vsnprintf(error.data(), error.size(), format, arguments);
    return 1;
  }
  static int on_warning(TIFF*, void* source, const char*, const char*, va_list) {
    static_cast<TiffSource*>(source)->warned = true;
    return 1;
  }
};

using File = std::unique_ptr<TIFF, decltype(&::TIFFClose)>;

/// The library takes no piece of memory that is larger than the samples of a picture.
File open(TiffSource& source, int64_t max_pixels) {
  constexpr tmsize_t kOther = 1 << 20;
  const std::unique_ptr<TIFFOpenOptions, decltype(&::TIFFOpenOptionsFree)> options(::TIFFOpenOptionsAlloc(),
                                                                                   &::TIFFOpenOptionsFree);
  if (options == nullptr) throw Error(ErrorCode::kMemoryBudget, "cannot set up the TIFF decoder");
  ::TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), 2 * kMostSamples * max_pixels + kOther);
  ::TIFFOpenOptionsSetErrorHandlerExtR(options.get(), &TiffSource::on_error, &source);
  ::TIFFOpenOptionsSetWarningHandlerExtR(options.get(), &TiffSource::on_warning, &source);
  return {::TIFFClientOpenExt("TIFF", "r", &source, &TiffSource::read, &TiffSource::write, &TiffSource::seek,
                              &TiffSource::close, &TiffSource::size, &TiffSource::map, &TiffSource::unmap,
                              options.get()),
          &::TIFFClose};
}

template <typename T>
T value(const File& file, uint32_t tag) {
  T found{};
  ::TIFFGetFieldDefaulted(file.get(), tag, &found);
  return found;
}

/// What the picture claims, before there is room for it.
void check_extents(const Reader& reader, const File& file, int64_t max_pixels) {
  const auto width = value<uint32_t>(file, TIFFTAG_IMAGEWIDTH),
             height = value<uint32_t>(file, TIFFTAG_IMAGELENGTH);
  check_size(width, height, max_pixels);
  if (::TIFFIsTiled(file.get()) == 0) return;
  const auto across = value<uint32_t>(file, TIFFTAG_TILEWIDTH),
             down = value<uint32_t>(file, TIFFTAG_TILELENGTH);
  check_size(across, down, max_pixels);
  // Tiles may stand over the borders; overlapping data could make a small file long work.
  constexpr uint64_t kMostOver = uint64_t{1} << 22;
  const bool is_planar = value<uint16_t>(file, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  const uint64_t planes = is_planar ? value<uint16_t>(file, TIFFTAG_SAMPLESPERPIXEL) : 1;
  if (uint64_t{::TIFFNumberOfTiles(file.get())} * across * down >
      planes * (4 * uint64_t{width} * height + kMostOver))
    reader.refuse("its tiles are larger than the picture");
}

void check_form(const Reader& reader, const File& file) {
  const auto compression = value<uint16_t>(file, TIFFTAG_COMPRESSION);
  if (std::find(kCompressions.begin(), kCompressions.end(), compression) == kCompressions.end())
    reader.not_implemented("compression " + std::to_string(compression));
  const auto samples = value<uint16_t>(file, TIFFTAG_SAMPLESPERPIXEL);
  if (samples > kMostSamples) reader.not_implemented(std::to_string(samples) + " samples");
  if (value<uint16_t>(file, TIFFTAG_SAMPLEFORMAT) != SAMPLEFORMAT_UINT)
    reader.not_implemented("samples that are no whole numbers from 0");
  std::array<char, 1024> why{};
  if (::TIFFRGBAImageOK(file.get(), why.data()) == 0) reader.not_implemented(why.data());
}

/// How much of a pixel there is is not looked at: colours are taken as already multiplied by it.
void ignore_alpha(const File& file) {
  uint16_t count = 0;
  uint16_t* kinds = nullptr;
  if (::TIFFGetField(file.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) == 0 || count == 0) return;
  std::vector<uint16_t> ignored(count, EXTRASAMPLE_UNSPECIFIED);
  ignored[0] = EXTRASAMPLE_ASSOCALPHA;
  ::TIFFSetField(file.get(), TIFFTAG_EXTRASAMPLES, count, ignored.data());
}

/// Rounds gray samples of 16 bits, of which the library's own function takes the upper half.
void put_deep_gray(TIFFRGBAImage* image, uint32_t* to, uint32_t, uint32_t, uint32_t width, uint32_t height,
                   int32_t skip_from, int32_t skip_to, unsigned char* from) {
  const auto step = static_cast<ptrdiff_t>(2 * image->samplesperpixel);
  for (; height > 0; --height, from += skip_from * step, to += skip_to) {
    for (uint32_t x = 0; x < width; ++x, from += step, ++to) {
      uint16_t sample = 0;
      std::memcpy(&sample, from, sizeof sample);
      const uint32_t level = (sample + 128u) / 257;
      *to = image->photometric == PHOTOMETRIC_MINISWHITE ? 255 - level : level;
    }
  }
}

/// The rows as they are stored, from top to bottom; a pixel's red is in its lowest byte.
std::vector<uint32_t> read_pixels(const Reader& reader, const File& file, TiffSource& source) {
  TIFFRGBAImage image;
  std::array<char, 1024> why{};
  if (::TIFFRGBAImageBegin(&image, file.get(), 1, why.data()) == 0) reader.not_implemented(why.data());
  const std::unique_ptr<TIFFRGBAImage, decltype(&::TIFFRGBAImageEnd)> end(&image, &::TIFFRGBAImageEnd);
  image.req_orientation = image.orientation;
  const bool is_gray =
      image.photometric == PHOTOMETRIC_MINISBLACK || image.photometric == PHOTOMETRIC_MINISWHITE;
  if (is_gray && image.bitspersample == 16 && image.isContig != 0) image.put.contig = &put_deep_gray;
  std::vector<uint32_t> pixels(size_t{image.width} * image.height);
  // Fields that the library does not know are warned of before, data that end too soon are now.
  source.warned = false;
  if (::TIFFRGBAImageGet(&image, pixels.data(), image.width, image.height) == 0 || source.warned)
    reader.refuse(source.error[0] == 0 ? "its data are broken, or end too soon" : source.error.data());
  return pixels;
}

}  // namespace

Image decode_tiff(std::span<const std::byte> bytes, int64_t max_pixels) {
  const Reader reader(bytes, "TIFF");
  TiffSource source{bytes};
  const File file = open(source, max_pixels);
  if (file == nullptr) reader.refuse(source.error.data());
  check_extents(reader, file, max_pixels);
  check_form(reader, file);
  ignore_alpha(file);
  const std::vector<uint32_t> pixels = read_pixels(reader, file, source);
  const auto color = value<uint16_t>(file, TIFFTAG_PHOTOMETRIC);
  Image image{value<uint32_t>(file, TIFFTAG_IMAGEWIDTH),
              value<uint32_t>(file, TIFFTAG_IMAGELENGTH),
              color == PHOTOMETRIC_MINISBLACK || color == PHOTOMETRIC_MINISWHITE ? 1 : 3,
              {}};
  image.pixels.reserve(pixels.size() * static_cast<size_t>(image.channels));
  for (const uint32_t pixel : pixels) {
    for (int channel = 0; channel < image.channels; ++channel)
      image.pixels.push_back(static_cast<uint8_t>(pixel >> (8 * channel)));
  }
  return image;
}

}  // namespace tensormill::image
