#include "compiler/package/writer.h"

#include <algorithm>
#include <array>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/output_file.h"
#include "runtime/package/archive_layout.h"

namespace tensormill::package {

namespace {

using Sink = std::function<void(std::string_view)>;

void put_zeros(const Sink& sink, int64_t count) {
  static constexpr std::array<char, 4096> kZeros{};
  while (count > 0) {
    const int64_t part = std::min<int64_t>(count, static_cast<int64_t>(kZeros.size()));
    sink(std::string_view(kZeros.data(), static_cast<size_t>(part)));
    count -= part;
  }
}

void put_params(const Sink& sink, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes) {
  int64_t at = 0;
  for (const plan::ParamSegment& segment : segments) {
    put_zeros(sink, segment.offset - at);
    sink(std::string_view(static_cast<const char*>(segment.tensor.data()), segment.tensor.num_bytes()));
    at = segment.offset + static_cast<int64_t>(segment.tensor.num_bytes());
  }
  TM_CHECK(at <= total_bytes, "constants end behind mod.params");
  put_zeros(sink, total_bytes - at);
}

}  // namespace

MemberInfo params_member(const std::vector<plan::ParamSegment>& segments, int64_t total_bytes) {
  Hasher hasher;
  put_params([&](std::string_view bytes) { hasher.update(bytes); }, segments, total_bytes);
  return {hasher.finish(), total_bytes};
}

void write_params(int fd, const std::vector<plan::ParamSegment>& segments, int64_t total_bytes,
                  std::string_view name) {
  put_params([&](std::string_view bytes) { write_all(fd, bytes, name); }, segments, total_bytes);
}

void write_archive(const std::string& path, const ArchiveMembers& members) {
  OutputFile file(path);
  const Sink sink = [&](std::string_view bytes) { file.write(bytes); };
  const MemberSizes sizes{static_cast<int64_t>(members.metadata_json.size()),
                          static_cast<int64_t>(members.plan_json.size()),
                          static_cast<int64_t>(members.code.size()), members.params_bytes};
  for (const ArchivePiece& piece : archive_layout(sizes)) {
    if (piece.member == kMetadataMember) {
      sink(members.metadata_json);
    } else if (piece.member == kPlanMember) {
      sink(members.plan_json);
    } else if (piece.member == kCodeMember) {
      sink(members.code);
    } else if (piece.member == kParamsMember) {
      put_params(sink, *members.params, members.params_bytes);
    } else {
      sink(piece.bytes);
    }
  }
  file.commit();
}

}  // namespace tensormill::package
