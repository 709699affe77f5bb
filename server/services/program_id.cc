#include "server/services/program_id.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/module.h"

namespace tensormill::server {

namespace {

using Bytes = std::span<const std::byte>;

template <typename T>
std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// The next `size` bytes, which are padded to four; empty where there are fewer.
Bytes take_padded(Bytes& rest, uint32_t size) {
  if (size > rest.size()) return {};
  const Bytes taken = rest.first(size);
  rest = rest.subspan(std::min<size_t>(rest.size(), (uint64_t{size} + 3) / 4 * 4));
  return taken;
}

/// "" where none of the notes is a build id.
std::string_view build_id_in(Bytes notes) {
  while (const auto head = read_at<Elf64_Nhdr>(notes, 0)) {
    notes = notes.subspan(sizeof(Elf64_Nhdr));
    const Bytes name = take_padded(notes, head->n_namesz), value = take_padded(notes, head->n_descsz);
    const bool is_gnu = name.size() == sizeof(ELF_NOTE_GNU) &&
                        std::memcmp(name.data(), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0;
    if (is_gnu && head->n_type == NT_GNU_BUILD_ID)
      return {reinterpret_cast<const char*>(value.data()), value.size()};
  }
  return "";
}

std::string_view build_id_of(Bytes file) {
  const auto head = read_at<Elf64_Ehdr>(file, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
    return "";
  for (uint64_t i = 0; i < head->e_phnum; ++i) {
    const auto part = read_at<Elf64_Phdr>(file, head->e_phoff + i * head->e_phentsize);
    if (!part) return "";
    const bool is_there = part->p_offset <= file.size() && part->p_filesz <= file.size() - part->p_offset;
    if (part->p_type != PT_NOTE || !is_there) continue;
    const std::string_view id = build_id_in(file.subspan(part->p_offset, part->p_filesz));
    if (!id.empty()) return id;
  }
  return "";
}

}  // namespace

std::string id_of_files(const std::vector<std::string>& paths) {
  Hasher hasher;
  for (const std::string& path : paths) {
    const auto file = MappedFile::open(path);
    const std::string_view id = build_id_of(file->bytes());
    hasher.update_field(id.empty() ? Digest::of(file->text()).text() : std::string(id));
  }
  return hasher.finish().text();
}

std::string program_id() {
  std::vector<std::string> paths = {"/proc/self/exe"};
  for (std::string& module : installed_modules()) paths.push_back(std::move(module));
  return id_of_files(paths);
}

}  // namespace tensormill::server
