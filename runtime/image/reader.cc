#include "runtime/image/reader.h"

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

uint64_t Reader::number(uint64_t at, int bytes, bool big) const {
  const std::span<const std::byte> field = range(at, static_cast<uint64_t>(bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < field.size(); ++i)
    value |= static_cast<uint64_t>(field[big ? field.size() - 1 - i : i]) << (8 * i);
  return value;
}

std::span<const std::byte> Reader::range(uint64_t at, uint64_t bytes) const {
  if (at > file_.size() || bytes > file_.size() - at) refuse("it ends too soon");
  return file_.subspan(at, bytes);
}

void Reader::refuse(const std::string& what) const {
  throw Error(ErrorCode::kInvalidImage, std::string(format_) + ": " + what);
}

void Reader::not_implemented(const std::string& what) const {
  throw RefusedPicture(ErrorCode::kInvalidImage, std::string(format_) + ": not implemented: " + what);
}

}  // namespace tensormill::image
