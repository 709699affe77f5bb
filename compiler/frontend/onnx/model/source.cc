#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/external_names.h"

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

/// Where beneath `folder` a file is, both without links; "" where it is not.
std::string place_beneath(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const std::filesystem::path place = file.lexically_relative(folder);
  return place.empty() || *place.begin() == ".." ? std::string() : place.string();
}

FileDescriptor open_folder(const std::string& folder) {
  FileDescriptor directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) throw_errno(errno, "cannot open folder " + folder);
  return directory;
}

/// Opens `name` in the folder of `model` as Links::kFollowed says. What a link is exchanged for meanwhile is
/// none.
FileDescriptor open_linked(const std::string& model, const std::string& folder, const std::string& name) {
  namespace fs = std::filesystem;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidModel, "external data file \"" + name + "\" " + why);
  };
  std::error_code error;
  const fs::path given = fs::path(folder) / name, file = fs::canonical(given, error);
  if (error) {
    std::error_code ignored;
    const fs::path to = fs::read_symlink(given, ignored);
    refuse("cannot be opened: " + (to.empty() ? std::string() : "it is a link to " + to.string() + ": ") +
           error.message());
  }
  const fs::path own = fs::canonical(folder), linked = fs::canonical(model).parent_path();
  for (const fs::path& root : {own, linked}) {
    const std::string place = place_beneath(root, file);
    if (!place.empty()) return open_beneath(open_folder(root.string()).get(), place);
  }
  refuse("cannot be opened: it is a link to " + file.string() + ", which is outside of the model's folder " +
         own.string() +
         (linked == own ? ""
                        : " and of " + linked.string() + ", where the file is that the model is a link to"));
  return FileDescriptor();
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

ModelSource open_model(const std::string& path, Links links) {
  ModelSource source;
  source.model = MappedFile::open(path);
  const std::set<std::string> names = external_names(parse_model(source.model->text()));
  if (!names.empty()) {
    const std::string folder = folder_of(path);
    const FileDescriptor directory = open_folder(folder);
    for (const std::string& name : names) {
      const FileDescriptor fd =
          links == Links::kFollowed ? open_linked(path, folder, name) : open_beneath(directory.get(), name);
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
