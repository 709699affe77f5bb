/// numpy's .npz archives and .npy arrays: what numpy.savez and savez_compressed write (stored or deflate,
/// zip64 on reading, .npy 1.0 to 3.0, C or Fortran order, both byte orders). Never pickle. bf16 is numpy's
/// '|V2'. Strings are '<U' (read as UTF-8, runtime/base/text.h) or, on reading, '|S' of UTF-8.
///
/// The input is untrusted: every offset is checked, duplicate names are refused, and a member inflates to
/// exactly what its .npy header announces, which is checked against the limits before anything is allocated.
/// Errors: Error(kInvalidNpz) for the container and its members, Error(kInvalidTensor) for a shape that is
/// too large, Error(kTooLarge) for the caller's limits. Thread-safety: pure functions; a reader may be used
/// from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/tensor.h"

namespace tensormill::npz {

struct Limits {
  int64_t max_members = 65536;
  int64_t max_header_bytes = int64_t{16} << 20;  ///< names and .npy headers of all members together
  int64_t max_tensor_bytes = kMaxTensorBytes;
  int64_t max_total_bytes = kMaxTensorBytes;  ///< of all members together, inflated
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct Entry {
  std::string name;  ///< without ".npy"
  DType dtype;
  Shape shape;
  int64_t bytes;  ///< row-major, in memory
};

class Reader {
public:
  /// Reads the directory and every member's .npy header. `archive` must outlive the reader.
  explicit Reader(std::span<const std::byte> archive, const Limits& limits = {});
  ~Reader();
  Reader(Reader&&) noexcept;
  const std::vector<Entry>& entries() const { return entries_; }
  /// Index of `name`; nothing when there is none.
  std::optional<size_t> find(std::string_view name) const;
  /// Decodes into `target`, which has exactly entries()[index].bytes bytes: row-major, this machine's byte
  /// order. A bool that is neither 0 nor 1 is kInvalidTensor. After an error the content of `target` is
  /// unspecified.
  void read_into(size_t index, std::span<std::byte> target) const;
  Tensor read(size_t index) const;
  /// What read() needs beside the tensor, for a while.
  int64_t scratch_bytes(size_t index) const;
  /// The bytes inside the archive, when they lie there as memory wants them: stored, aligned to the element,
  /// C order, this byte order, not bool. The CRC is checked.
  std::optional<TensorView> view(size_t index) const;

private:
  struct Member;
  std::vector<Entry> entries_;
  std::vector<Member> members_;
};

/// All tensors in the archive's order.
std::vector<NamedTensor> read_npz(std::span<const std::byte> archive, const Limits& limits = {});
/// A single .npy file.
Tensor read_npy(std::span<const std::byte> file, const Limits& limits = {});

struct NamedView {
  std::string name;
  TensorView tensor;
};

/// A stored (not compressed) archive that numpy reads; equal tensors give equal bytes. The data of each
/// member is 64-byte aligned inside. Throws Error(kInvalidArgument) for duplicate or empty names.
std::string write_npz(const std::vector<NamedView>& tensors);
std::string write_npz(const std::vector<NamedTensor>& tensors);
/// The bytes of a .npy file up to the data, padded so that `prefix` bytes before it and the header end at a
/// multiple of 64. Strings: the last extent is 4 bytes a code point.
std::string npy_header(DType dtype, const Shape& shape, size_t prefix = 0);

}  // namespace tensormill::npz
