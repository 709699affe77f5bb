#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler/frontend/onnx/external_names.h"
#include "compiler/frontend/onnx/import.h"

namespace tensormill::frontend::onnx {

namespace {

/// Opens `name` beneath `folder`, following no link, not even in the middle; only regular files.
FileDescriptor open_beneath(int folder, const std::string& name) {
  struct open_how how {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof(how));
  if (fd < 0) {
    throw Error(ErrorCode::kInvalidModel,
                "external data file \"" + name + "\" cannot be opened: " + std::strerror(errno));
  }
  return FileDescriptor(static_cast<int>(fd));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Without external data the identity is the file's; with it, a list of all names and digests.
Digest source_digest(const ModelSource& source) {
  const Digest model = Digest::of(source.model->bytes());
  if (source.external.empty()) return model;
  Hasher hasher;
  hasher.update_field("onnx with external data");
  hasher.update_field(model.text());
  for (const auto& [name, file] : source.external) {
    hasher.update_field(name);
    hasher.update_field(Digest::of(file->bytes()).text());
  }
  return hasher.finish();
}

}  // namespace

ModelSource open_model(const std::string& path) {
  ModelSource source;
  source.model = MappedFile::open(path);
  const std::set<std::string> names = external_names(parse_model(source.model->text()));
  if (!names.empty()) {
    const std::string folder = folder_of(path);
    const FileDescriptor directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) throw_errno(errno, "cannot open folder " + folder);
    for (const std::string& name : names) {
      const FileDescriptor fd = open_beneath(directory.get(), name);
      try {
        source.external[name] = MappedFile::map(fd.get(), name);
      } catch (const Error& error) {
        throw Error(ErrorCode::kInvalidModel, "external data file " + error.message());
      }
    }
  }
  source.digest = source_digest(source);
  return source;
}

}  // namespace tensormill::frontend::onnx
