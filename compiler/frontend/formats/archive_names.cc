#include "compiler/frontend/formats/archive_names.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include "compiler/frontend/wire/zip.h"

namespace tensormill::frontend {

namespace {

constexpr size_t kMaxTarMembers = 10'000;

struct FreeReader {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

}  // namespace

std::vector<std::string> tar_names(std::string_view bytes) {
  std::vector<std::string> names;
  const std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  if (reader == nullptr) return names;
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) return names;
  archive_entry* entry = nullptr;
  while (names.size() < kMaxTarMembers && archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    const char* name = archive_entry_pathname_utf8(entry);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> archive_names(std::string_view bytes) {
  if (!wire::begins_as_zip(bytes)) return tar_names(bytes);
  std::vector<std::string> names;
  const wire::ZipFile zip(bytes);
  for (const npz::ZipMember& member : zip.members()) names.push_back(member.name);
  return names;
}

}  // namespace tensormill::frontend
