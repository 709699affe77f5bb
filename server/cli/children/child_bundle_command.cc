#include <string>
#include <vector>

#include "compiler/bundle/bundle.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/package/archive_layout.h"
#include "runtime/package/metadata.h"
#include "server/cli/children/child_commands.h"

namespace tensormill::cli {

namespace {

constexpr int kRuntimeFd = jobs::kFirstInheritedFd + 4;
constexpr int kBundleFd = kRuntimeFd + 1;
constexpr int kFirstLibraryFd = kBundleFd + 1;

struct Members {
  std::shared_ptr<const MappedFile> metadata, plan, code, params;
};

Members map_members() {
  int fd = jobs::kFirstInheritedFd;
  const auto next = [&](std::string_view name) { return MappedFile::map(fd++, std::string(name)); };
  Members members;
  members.metadata = next(package::kMetadataMember);
  members.plan = next(package::kPlanMember);
  members.code = next(package::kCodeMember);
  members.params = next(package::kParamsMember);
  return members;
}

/// The package's bytes, as they stand in its file.
std::string archive_of(const Members& members) {
  const auto size_of = [](const MappedFile& file) { return static_cast<int64_t>(file.bytes().size()); };
  std::string archive;
  for (const package::ArchivePiece& piece :
       package::archive_layout({size_of(*members.metadata), size_of(*members.plan), size_of(*members.code),
                                size_of(*members.params)})) {
    if (piece.member.empty()) archive += piece.bytes;
    if (piece.member == package::kMetadataMember) archive += members.metadata->text();
    if (piece.member == package::kPlanMember) archive += members.plan->text();
    if (piece.member == package::kCodeMember) archive += members.code->text();
    if (piece.member == package::kParamsMember) archive += members.params->text();
  }
  return archive;
}

}  // namespace

std::string child_bundle(jobs::ChildChannel&, std::span<const std::string> arguments) {
  TM_CHECK(arguments.size() == 1, "child-bundle needs its request");
  const Json request = parse_json(arguments[0]);
  const auto form = request.at("form") == "so" ? bundle::Form::kShared : bundle::Form::kStatic;
  const auto name = request.at("name").get<std::string>();
  const Members members = map_members();
  const package::Metadata metadata = package::metadata_from_json(members.metadata->text());
  const std::string archive = archive_of(members);
  const auto runtime = MappedFile::map(kRuntimeFd, "runtime");
  const std::string file = name + (form == bundle::Form::kShared ? ".so" : ".a");
  std::vector<std::string> libraries;
  for (int i = 0; i < request.at("libraries").get<int>(); ++i)
    libraries.push_back("/proc/self/fd/" + std::to_string(kFirstLibraryFd + i));
  const bundle::Bundle made =
      bundle::make_bundle(form, {runtime->text(), std::as_bytes(std::span(archive)), metadata,
                                 target::parse_target(metadata.target, {}), file, std::move(libraries)});
  write_all(kBundleFd,
            package::plain_archive({{file, made.library},
                                    {name + ".h", made.header},
                                    {"tensormill.h", std::string(bundle::interface_header())}}),
            "the bundle");
  return "{}";
}

}  // namespace tensormill::cli
