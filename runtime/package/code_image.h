/// Machine code in memory: an admitted mod.so, mapped by hand. The system's loader is not asked: it would
/// need a path, and it runs what a file tells it to. Nothing of the file is mapped: segments are private
/// copies of bytes that were hashed, relocated, and then made read-only or executable, never both writable
/// and executable. Thread-safety: immutable after construction.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "runtime/abi/kernel_abi.h"

namespace tensormill::package {

class CodeImage {
public:
  /// `file` must not change during the call (own copy, or sealed). Throws Error(kInvalidPackage) as
  /// admit_elf, Error(kNotSupported) for another machine's code.
  explicit CodeImage(std::span<const std::byte> file);
  ~CodeImage();
  CodeImage(const CodeImage&) = delete;
  CodeImage& operator=(const CodeImage&) = delete;
  /// Throws Error(kInvalidPackage) when there is no such function.
  tm_kernel kernel(const std::string& symbol) const;

private:
  void load(std::span<const std::byte> file);

  std::map<std::string, uint64_t> symbols_;
  std::byte* base_ = nullptr;
  size_t span_ = 0;
};

}  // namespace tensormill::package
