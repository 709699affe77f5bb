/// Where everything stands in a package's archive: one place for the compiler, which writes archives, and the
/// store, which puts them together from members. USTAR, fixed owner and time; mod.params starts at a page
/// boundary. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::package {

/// A stretch of the archive: fixed bytes, or all bytes of a member.
struct ArchivePiece {
  std::string bytes;        ///< when `member` is empty
  std::string_view member;  ///< one of the names in metadata.h
  int64_t size = 0;         ///< of this stretch
};

struct MemberSizes {
  int64_t metadata = 0;
  int64_t plan = 0;
  int64_t code = 0;
  int64_t params = 0;
};

/// The pieces in order; the archive is their concatenation.
std::vector<ArchivePiece> archive_layout(const MemberSizes& sizes);

/// A USTAR archive of these files alone, by name and bytes; a name has 99 letters at most.
std::string plain_archive(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace tensormill::package
