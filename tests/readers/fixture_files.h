/// Fixtures as mappings, and broken copies of them.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "compiler/frontend/wire/zip.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::frontend {

inline std::string fixture_path(const std::string& name) {
  return std::string(TM_SOURCE_DIR) + "/tests/fixtures/" + name;
}
inline std::shared_ptr<const MappedFile> fixture(const std::string& name) {
  return MappedFile::open(fixture_path(name));
}
inline Json fixture_json(const std::string& name) { return parse_json(read_file(fixture_path(name))); }

/// The bytes as a mapping: aligned as a file is.
inline std::shared_ptr<const MappedFile> mapped(std::string_view bytes) {
  const FileDescriptor fd(::memfd_create("model", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "model");
  return MappedFile::map(fd.get(), "model");
}

/// A cut, or some bits, bytes or 32-bit numbers changed.
inline std::string broken_copy(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  if (below(4) == 0) return bytes.substr(0, below(bytes.size()));
  for (size_t i = 0; i <= below(4); ++i) {
    const size_t at = below(bytes.size());
    const size_t kind = below(3);
    if (kind == 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    if (kind == 1) bytes[at] = static_cast<char>(below(256));
    for (size_t j = 0; kind == 2 && j < 4 && at / 4 * 4 + j < bytes.size(); ++j)
      bytes[at / 4 * 4 + j] = static_cast<char>(below(2) == 0 ? 0xff : below(256));
  }
  return bytes;
}

/// A member of an archive.
inline std::string wire_member(std::string_view archive, const std::string& name) {
  wire::ZipFile zip(archive);
  return std::string(zip.read(name));
}

}  // namespace tensormill::frontend
