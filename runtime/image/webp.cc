#include <webp/decode.h>

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

Image decode_webp(std::span<const std::byte> file, int64_t max_pixels) {
  const auto fail = [](const char* what) {
    throw Error(ErrorCode::kInvalidImage, std::string("WebP: ") + what);
  };
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  if (::WebPGetFeatures(bytes, file.size(), &features) != VP8_STATUS_OK) fail("its header is broken");
  if (features.has_animation != 0) fail("animations are not supported");
  check_size(features.width, features.height, max_pixels);
  Image image{features.width, features.height, 3, {}};
  const int stride = features.width * 3;
  image.pixels.resize(static_cast<size_t>(stride) * static_cast<size_t>(features.height));
  if (::WebPDecodeRGBInto(bytes, file.size(), image.pixels.data(), image.pixels.size(), stride) == nullptr)
    fail("its data are broken, or end too soon");
  return image;
}

}  // namespace tensormill::image
