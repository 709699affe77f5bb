/// The zip container, as far as .npz needs it: directory, stored and deflated members, zip64.
/// Thread-safety: a directory is read-only; a stream belongs to one thread.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tensormill::npz {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  std::span<const std::byte> data;  ///< as it lies in the archive
  uint64_t size = 0;                ///< inflated, as the directory says
};

/// Throws Error(kInvalidNpz) for anything that is not a whole, plain, unencrypted archive.
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> archive, int64_t max_members);

/// The inflated bytes of a member in order.
class MemberStream {
public:
  explicit MemberStream(const ZipMember& member);
  ~MemberStream();
  MemberStream(const MemberStream&) = delete;
  MemberStream& operator=(const MemberStream&) = delete;
  /// Fills `target`; throws Error(kInvalidNpz) when the member ends before.
  void read(std::span<std::byte> target);
  /// Checks that the member ends here and that its CRC is right.
  void finish();

private:
  size_t read_some(std::span<std::byte> target);

  const ZipMember& member_;
  z_stream inflater_{};
  size_t consumed_ = 0;
  uint64_t produced_ = 0;
  uint32_t crc_ = 0;
  bool ended_ = false;
};

}  // namespace tensormill::npz
