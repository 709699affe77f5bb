#include "compiler/frontend/wire/archive_files.h"

#include <archive.h>
#include <archive_entry.h>

#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

constexpr int kMostMembers = 10'000;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, FreeReader>;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::kInvalidModel, "archive: " + what); }

std::string plain_name(const std::string& name) { return name.starts_with("./") ? name.substr(2) : name; }

/// The bytes of the current member: where they lie in the archive in one piece, there.
std::string_view member_bytes(archive* reader, const std::string& name, uint64_t size, std::string_view all,
                              std::vector<std::unique_ptr<const std::string>>& made) {
  const void* block = nullptr;
  size_t length = 0;
  la_int64_t offset = 0;
  std::string whole;
  while (true) {
    const int code = archive_read_data_block(reader, &block, &length, &offset);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) fail("member \"" + name + "\" cannot be read");
    const auto* bytes = static_cast<const char*>(block);
    const bool is_inside = bytes >= all.data() && bytes + length <= all.data() + all.size();
    if (is_inside && offset == 0 && length == size) return {bytes, length};
    // A sparse member may say that it has more than the archive.
    if (static_cast<uint64_t>(offset) != whole.size() || whole.size() + length > all.size())
      fail("member \"" + name + "\" is sparse");
    whole.append(bytes, length);
  }
  if (whole.size() != size) fail("member \"" + name + "\" is cut off");
  made.push_back(std::make_unique<const std::string>(std::move(whole)));
  return *made.back();
}

}  // namespace

// The mark of POSIX, which all tars have that anybody writes today.
bool begins_as_tar(std::string_view bytes) { return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar"; }
bool is_archive(std::string_view bytes) { return begins_as_zip(bytes) || begins_as_tar(bytes); }

ArchiveFiles::ArchiveFiles(std::string_view bytes, const std::string& mark) {
  if (begins_as_zip(bytes)) {
    // Weights pack to a half at best; small models may be all zeros.
    const uint64_t most = std::max<uint64_t>(uint64_t{64} << 20, bytes.size() * 4);
    zip_ = std::make_unique<ZipFile>(bytes, ZipLimits{.members = kMostMembers, .inflated_bytes = most});
    for (const npz::ZipMember& member : zip_->members()) set_root(member.name, mark);
  } else {
    read_tar(bytes);
    for (const auto& [name, member] : members_) set_root(name, mark);
  }
  if (!root_) fail("there is no " + mark + " in it");
}

void ArchiveFiles::set_root(const std::string& name, const std::string& mark) {
  if (!name.ends_with(mark)) return;
  const std::string root = name.substr(0, name.size() - mark.size());
  if (!root.empty() && root.back() != '/') return;
  if (root_) fail("\"" + *root_ + mark + "\" and \"" + name + "\" are two models");
  root_ = root;
}

void ArchiveFiles::read_tar(std::string_view bytes) {
  const Reader reader(archive_read_new());
  TM_CHECK(reader != nullptr, "libarchive has no memory");
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK)
    fail("neither a tar nor a zip");
  archive_entry* entry = nullptr;
  for (int members = 0;; ++members) {
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) fail("a member cannot be read");
    if (members == kMostMembers) fail("more than " + std::to_string(kMostMembers) + " members");
    const char* raw = archive_entry_pathname_utf8(entry);
    if (raw == nullptr) fail("a member has no name in UTF-8");
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) continue;
    const std::string name = plain_name(raw);
    const la_int64_t size = archive_entry_size(entry);
    if (size < 0) fail("member \"" + name + "\" has no size");
    const std::string_view data =
        size == 0 ? std::string_view()
                  : member_bytes(reader.get(), name, static_cast<uint64_t>(size), bytes, made_);
    if (!members_.emplace(name, data).second) fail("member \"" + name + "\" stands twice");
  }
}

std::optional<std::string_view> ArchiveFiles::find(const std::string& name) {
  const std::string whole = *root_ + name;
  if (zip_ != nullptr) {
    if (!zip_->has(whole)) return std::nullopt;
    return zip_->read(whole);
  }
  const auto found = members_.find(whole);
  return found == members_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tensormill::frontend::wire
