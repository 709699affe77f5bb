/// A minimal strict USTAR reader: regular files with plain names, and empty pax comments that
/// align what follows them; nothing else.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tensormill::package {

struct TarMember {
  std::string name;
  size_t offset = 0;  ///< of the data in the archive
  size_t size = 0;
};

/// Throws Error(kInvalidPackage) for links, folders, devices, other extended headers, duplicate names, names
/// with a slash, wrong checksums, and bytes that are not there.
std::vector<TarMember> read_tar(std::span<const std::byte> archive, size_t max_members = 64);

}  // namespace tensormill::package
