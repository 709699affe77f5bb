/// Writes packages: the members, and the deterministic archive (USTAR, fixed owner and time) in which
/// mod.params starts at a page boundary. Thread-safety: each call is its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan_builder.h"
#include "runtime/package/metadata.h"
#include "runtime/package/package_reader.h"

namespace tensormill::package {

/// Digest and size of a member.
inline MemberInfo member_of(std::string_view bytes) {
  return {Digest::of(bytes), static_cast<int64_t>(bytes.size())};
}
/// The same of mod.params, without writing it.
MemberInfo params_member(const std::vector<plan::ParamSegment>& segments, int64_t total_bytes);
/// Writes mod.params to `fd`: segments at their offsets, zeros between. Throws Error(kIo) or
/// Error(kDiskFull).
void write_params(int fd, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes,
                  std::string_view name);

struct ArchiveMembers {
  std::string_view metadata_json;
  std::string_view plan_json;
  std::string_view code;
  const std::vector<plan::ParamSegment>* params = nullptr;
  int64_t params_bytes = 0;
};
/// The package as a reader of the members has it, without mod.params: it reads constants where they are,
/// which outlive it, or copies of those that are not aligned and padded. Throws Error(kInvalidPackage).
std::shared_ptr<const Package> open_written(const ArchiveMembers& members);
/// The bytes of PACKAGE.tar.
std::string archive_bytes(const ArchiveMembers& members);
/// Writes PACKAGE.tar through a temporary file beside it, so that a reader sees all or nothing.
void write_archive(const std::string& path, const ArchiveMembers& members);

}  // namespace tensormill::package
