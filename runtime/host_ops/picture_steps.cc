#include "runtime/host_ops/picture_steps.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"

#ifdef TENSORMILL_PICTURES
#include "runtime/image/image.h"
#endif

namespace tensormill::host_ops {

#ifdef TENSORMILL_PICTURES

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kInvalidPackage, "a host step decodes what is no row of bytes");
}

/// The file's bytes.
std::span<const std::byte> file_of(const HostCall& call) {
  const TensorView& file = call.inputs[0];
  if (file.dtype != DType::kUInt8 || file.shape.size() != 1) refuse();
  return {static_cast<const std::byte*>(file.data), static_cast<size_t>(file.shape[0])};
}

image::PictureFiles files_of(const HostCall& call) {
  return call.common_pictures ? image::PictureFiles::kCommon : image::PictureFiles::kAny;
}

}  // namespace

void picture_extents(const HostCall& call) {
  expect(call, 1, 1);
  const image::Image picture = image::decode_or_empty(file_of(call), 3, false, files_of(call));
  int64_t* extents = integers(call, 0, 2);
  extents[0] = picture.height;
  extents[1] = picture.width;
}

void decode_picture(const HostCall& call) {
  expect(call, 2, 1);
  const TensorView& canvas = call.inputs[1];
  const bool is_canvas = canvas.dtype == DType::kUInt8 && canvas.shape.size() == 3 &&
                         (canvas.shape[2] == 1 || canvas.shape[2] == 3);
  if (!is_canvas) refuse();
  const auto bytes = static_cast<size_t>(num_elements(canvas.shape));
  auto* target = static_cast<uint8_t*>(storage(call, 0, bytes, 1));
  const image::Image picture = image::decode_or_empty(file_of(call), static_cast<int>(canvas.shape[2]),
                                                      Attributes(call).flag("reversed"), files_of(call));
  if (bytes == 0) return;
  std::memmove(target, canvas.data, bytes);
  const int64_t rows = std::min(picture.height, canvas.shape[0]);
  const int64_t columns = std::min(picture.width, canvas.shape[1]);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(picture.pixels.data() + row * picture.width * canvas.shape[2], columns * canvas.shape[2],
                target + row * canvas.shape[1] * canvas.shape[2]);
}

#else

void picture_extents(const HostCall&) {
  throw Error(ErrorCode::kNotSupported, "this build decodes no pictures");
}

void decode_picture(const HostCall& call) { picture_extents(call); }

#endif

}  // namespace tensormill::host_ops
