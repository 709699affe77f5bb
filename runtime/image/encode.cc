#include "runtime/image/encode.h"

#include <png.h>

#include "runtime/base/error.h"

namespace tensormill::image {

std::string encode_png(const Image& image) {
  png_image head = {};
  head.version = PNG_IMAGE_VERSION;
  head.width = static_cast<png_uint_32>(image.width);
  head.height = static_cast<png_uint_32>(image.height);
  head.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const auto fail = [&] {
    throw Error(ErrorCode::kInvalidArgument, std::string("no PNG can be made: ") + head.message);
  };
  if (png_image_write_get_memory_size(head, size, 0, image.pixels.data(), 0, nullptr) == 0) fail();
  std::string file(size, '\0');
  if (png_image_write_to_memory(&head, file.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0) fail();
  file.resize(size);
  return file;
}

}  // namespace tensormill::image
