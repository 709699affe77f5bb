#include <png.h>
#include <turbojpeg.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

namespace {

constexpr int64_t kMaxSide = 65535;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::kInvalidImage, what); }

/// Owns libpng's structure for the simplified interface.
class PngImage {
public:
  PngImage() {
    std::memset(&image_, 0, sizeof(image_));
    image_.version = PNG_IMAGE_VERSION;
  }
  ~PngImage() { ::png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  png_image* get() { return &image_; }
  png_image* operator->() { return &image_; }

private:
  png_image image_;
};

}  // namespace

void check_size(int64_t width, int64_t height, int64_t max_pixels) {
  const std::string size = "picture is " + std::to_string(width) + "×" + std::to_string(height);
  if (width < 1 || height < 1) fail(size);
  if (width > kMaxSide || height > kMaxSide || width * height > max_pixels)
    throw RefusedPicture(ErrorCode::kInvalidImage,
                         size + ", at most " + std::to_string(max_pixels) + " pixels are allowed");
}

Image decode_jpeg(std::span<const std::byte> file, int64_t max_pixels) {
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(::tjInitDecompress(), &::tjDestroy);
  if (decoder == nullptr) throw Error(ErrorCode::kMemoryBudget, "cannot set up the JPEG decoder");
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int color = 0;
  if (::tjDecompressHeader3(decoder.get(), bytes, file.size(), &width, &height, &subsampling, &color) != 0) {
    fail(std::string("JPEG: ") + ::tjGetErrorStr2(decoder.get()));
  }
  check_size(width, height, max_pixels);
  if (color == TJCS_CMYK || color == TJCS_YCCK)
    throw RefusedPicture(ErrorCode::kInvalidImage, "JPEG: CMYK pictures are not supported");
  Image image;
  image.width = width;
  image.height = height;
  image.channels = color == TJCS_GRAY ? 1 : 3;
  image.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) *
                      static_cast<size_t>(image.channels));
  const int format = image.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  // A cut-off file decodes to a picture with gray rows: that is an error here, not a guess. A progressive
  // file with thousands of scans would keep the decoder busy; the flag limits them.
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;
  if (::tjDecompress2(decoder.get(), bytes, file.size(), image.pixels.data(), width, 0, height, format,
                      flags) != 0) {
    fail(std::string("JPEG: ") + ::tjGetErrorStr2(decoder.get()));
  }
  return image;
}

Image decode_png(std::span<const std::byte> file, int64_t max_pixels) {
  PngImage png;
  if (::png_image_begin_read_from_memory(png.get(), file.data(), file.size()) == 0) {
    fail(std::string("PNG: ") + png->message);
  }
  check_size(png->width, png->height, max_pixels);
  const bool color = (png->format & PNG_FORMAT_FLAG_COLOR) != 0;
  // 16-bit samples are cut to 8 bits; without a gamma in the file they are taken as sRGB, as 8-bit ones are.
  png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  png->format = color ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  Image image;
  image.width = png->width;
  image.height = png->height;
  image.channels = color ? 3 : 1;
  image.pixels.resize(PNG_IMAGE_SIZE(*png.get()));
  const png_color white{255, 255, 255};
  if (::png_image_finish_read(png.get(), &white, image.pixels.data(), 0, nullptr) == 0 ||
      PNG_IMAGE_FAILED(*png.get())) {
    fail(std::string("PNG: ") + png->message);
  }
  return image;
}

Image decode(std::span<const std::byte> file, int64_t max_pixels) {
  const std::string_view head(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 8));
  if (head.starts_with("\xff\xd8\xff")) return decode_jpeg(file, max_pixels);
  if (head == std::string_view("\x89PNG\r\n\x1a\n", 8)) return decode_png(file, max_pixels);
  throw Error(ErrorCode::kUnsupportedMediaType, "the picture is neither JPEG nor PNG");
}

namespace {

/// Nothing where the file is no picture that could be decoded.
std::optional<Image> decoded(std::span<const std::byte> file, PictureFiles files) {
  try {
    if (files == PictureFiles::kCommon && !is_common(file))
      throw RefusedPicture(
          ErrorCode::kUnsupportedMediaType,
          "the picture is WebP, JPEG 2000 or TIFF, which a deployment does not decode: JPEG, "
          "PNG, BMP or Netpbm");
    return decode_any(file);
  } catch (const RefusedPicture&) {
    throw;
  } catch (const Error& error) {
    const bool is_broken =
        error.code() == ErrorCode::kInvalidImage || error.code() == ErrorCode::kUnsupportedMediaType;
    if (!is_broken) throw;
    return std::nullopt;
  }
}

}  // namespace

Image decode_or_empty(std::span<const std::byte> file, int channels, bool reversed, PictureFiles files) {
  const std::optional<Image> found = decoded(file, files);
  Image picture = found ? convert_channels(*found, channels) : Image{0, 0, channels, {}};
  const auto step = static_cast<size_t>(channels);
  for (size_t i = 0; reversed && i + step <= picture.pixels.size(); i += step)
    std::swap(picture.pixels[i], picture.pixels[i + step - 1]);
  return picture;
}

}  // namespace tensormill::image
