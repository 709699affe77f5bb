#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/external_names.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr int kMaxMembers = 10000;
/// Weights pack to a half at best; what unpacks to much more than the archive's size is a bomb. Small
/// archives may be all zeros.
constexpr int64_t kMaxExpansion = 50;
constexpr int64_t kAnyExpansion = int64_t{32} << 20;

struct FreeArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using ArchiveReader = std::unique_ptr<archive, FreeArchive>;

[[noreturn]] void invalid_archive(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "archive: " + what);
}

ArchiveReader open_reader(int fd) {
  ArchiveReader reader(archive_read_new());
  TM_CHECK(reader != nullptr, "libarchive has no memory");
  // Plain tar and zip only: a compressed tar would be a second place to hide a bomb in.
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  if (::lseek(fd, 0, SEEK_SET) != 0) throw_errno(errno, "cannot rewind the archive");
  if (archive_read_open_fd(reader.get(), fd, 1 << 16) != ARCHIVE_OK) {
    invalid_archive("neither a tar nor a zip");
  }
  return reader;
}

void make_folders(const std::string& folder, const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const std::string path = folder + "/" + name.substr(0, slash);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) throw_errno(errno, "cannot create " + path);
  }
}

/// Unpacks the current member; returns its bytes.
int64_t unpack_member(archive* reader, const std::string& folder, const std::string& name, int64_t budget) {
  make_folders(folder, name);
  const std::string path = folder + "/" + name;
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    if (errno == EEXIST) invalid_archive("member \"" + name + "\" stands twice");
    throw_errno(errno, "cannot create " + path);
  }
  std::array<char, 1 << 16> buffer{};
  int64_t total = 0;
  for (;;) {
    const la_ssize_t count = archive_read_data(reader, buffer.data(), buffer.size());
    if (count < 0) invalid_archive("member \"" + name + "\" cannot be read");
    if (count == 0) return total;
    total += count;
    if (total > budget) invalid_archive("it unpacks to more bytes than the limit, or than its size can hold");
    write_all(fd.get(), std::string_view(buffer.data(), static_cast<size_t>(count)), path);
  }
}

/// How many bytes the archive may unpack to.
int64_t unpacked_limit(int fd, int64_t max_bytes) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) throw_errno(errno, "cannot look at the archive");
  const int64_t plausible =
      facts.st_size > max_bytes / kMaxExpansion ? max_bytes : facts.st_size * kMaxExpansion;
  return std::min(max_bytes, std::max(plausible, kAnyExpansion));
}

bool ends_with(const std::string& text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

}  // namespace

ModelSource open_archive(const std::string& path, const std::string& folder, int64_t max_bytes) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_errno(errno, "cannot open " + path);
  return open_archive(fd.get(), folder, max_bytes);
}

ModelSource open_archive(int fd, const std::string& folder, int64_t max_bytes) {
  const ArchiveReader reader = open_reader(fd);
  std::string model;
  int64_t left = unpacked_limit(fd, max_bytes);
  int members = 0;
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) invalid_archive("a member cannot be read");
    if (++members > kMaxMembers) invalid_archive("more than " + std::to_string(kMaxMembers) + " members");
    const char* raw_name = archive_entry_pathname_utf8(entry);
    if (raw_name == nullptr) invalid_archive("a member has no name in UTF-8");
    std::string name = raw_name;
    if (name.rfind("./", 0) == 0) name = name.substr(2);
    if (archive_entry_filetype(entry) == AE_IFDIR) continue;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr ||
        archive_entry_symlink(entry) != nullptr) {
      invalid_archive("member \"" + name + "\" is not a regular file");
    }
    check_relative_name(name);
    left -= unpack_member(reader.get(), folder, name, left);
    if (!ends_with(name, ".onnx")) continue;
    if (!model.empty()) invalid_archive("more than one .onnx: \"" + model + "\" and \"" + name + "\"");
    model = name;
  }
  if (model.empty()) invalid_archive("no .onnx in it");
  return open_model(folder + "/" + model);
}

}  // namespace tensormill::frontend::onnx
