#include "server/services/store/package_bundle.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "compiler/bundle/bundle.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/child_run.h"

namespace tensormill::server {

namespace {

/// As memory: the child may not open a file of the disk again, which its linker does.
FileDescriptor copied(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw_errno(errno, "cannot open " + path);
  return memory_file("library", MappedFile::map(file.get(), path)->text());
}

/// On the disk, since it is as large as the package; it has no name, and goes with its last reader.
FileDescriptor bundle_file(const std::string& folder) {
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "cannot create a file in " + folder);
  return file;
}

uint64_t bytes_of_bundle(const FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(errno, "cannot look at the bundle");
  return static_cast<uint64_t>(status.st_size);
}

/// `given`: the runtime, then the libraries.
jobs::ChildSpec bundle_spec(const MemberBlobs& members, const services::BundleOptions& options,
                            const std::vector<FileDescriptor>& given, const FileDescriptor& made) {
  const bool is_shared = options.form == services::BundleForm::kShared;
  jobs::ChildSpec spec;
  spec.command = "child-bundle";
  spec.arguments = {
      Json{{"form", is_shared ? "so" : "static"}, {"name", options.name}, {"libraries", given.size() - 1}}
          .dump()};
  spec.descriptors = descriptors_of(members);
  spec.descriptors.push_back(given.front().get());
  spec.descriptors.push_back(made.get());
  for (size_t i = 1; i < given.size(); ++i) spec.descriptors.push_back(given[i].get());
  spec.limits.kind = jobs::ChildKind::kCompile;
  spec.limits.nice = jobs::kRunNice;
  return spec;
}

}  // namespace

std::shared_ptr<http::Content> make_bundle_archive(ChildRunner& children, const MemberBlobs& members,
                                                   const services::BundleOptions& options,
                                                   const BundleLimits& limits,
                                                   const std::stop_token& cancelled) {
  const bool is_shared = options.form == services::BundleForm::kShared;
  const auto metadata_member = members.find(package::kMetadataMember);
  TM_CHECK(metadata_member != members.end(), "a package without metadata");
  const package::Metadata metadata = package::metadata_from_json(metadata_member->second->text());
  // Refuses before anybody waits.
  const bundle::Runtime runtime(target::parse_target(metadata.target, {}),
                                is_shared ? bundle::Form::kShared : bundle::Form::kStatic);
  FileDescriptor made = bundle_file(limits.folder);
  // The child opens no files: what it links with it is given.
  std::vector<FileDescriptor> given;
  const auto make = [&] {
    given.push_back(memory_file("runtime", runtime.bytes()));
    if (is_shared)
      for (const std::string& path : bundle::c_libraries()) given.push_back(copied(path));
    jobs::ChildSpec spec = bundle_spec(members, options, given, made);
    spec.limits.data_bytes = limits.memory;
    spec.time_limit = limits.timeout;
    return spec;
  };
  children.run(limits.memory, make, cancelled);
  const uint64_t size = bytes_of_bundle(made);
  return std::make_shared<http::FileContent>(std::move(made), 0, size);
}

}  // namespace tensormill::server
