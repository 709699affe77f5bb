/// Numbers and ranges of a picture's file. Thread-safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tensormill::image {

/// What lies past the file's end is Error(kInvalidImage), which names the format.
class Reader {
public:
  Reader(std::span<const std::byte> file, const char* format) : file_(file), format_(format) {}

  uint64_t size() const { return file_.size(); }
  /// Of up to 8 bytes, the last one first or, `big`, the first one.
  uint64_t number(uint64_t at, int bytes, bool big = false) const;
  std::span<const std::byte> range(uint64_t at, uint64_t bytes) const;
  /// Error(kInvalidImage) for a broken file.
  [[noreturn]] void refuse(const std::string& what) const;
  /// RefusedPicture for a form of the format.
  [[noreturn]] void not_implemented(const std::string& what) const;

private:
  std::span<const std::byte> file_;
  const char* format_;
};

}  // namespace tensormill::image
