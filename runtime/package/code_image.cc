#include "runtime/package/code_image.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/package/elf_admission.h"

namespace tensormill::package {

namespace {

template <typename T>
T load_at(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return value;
}

std::vector<Elf64_Phdr> segments_of(std::span<const std::byte> file) {
  const auto header = load_at<Elf64_Ehdr>(file.data());
  std::vector<Elf64_Phdr> result;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    result.push_back(load_at<Elf64_Phdr>(file.data() + header.e_phoff + i * sizeof(Elf64_Phdr)));
  }
  return result;
}

void append_relocations(std::vector<Elf64_Rela>& relocations, const std::byte* base,
                        const std::map<int64_t, uint64_t>& dynamic, int64_t address_tag, int64_t size_tag) {
  const auto address = dynamic.find(address_tag);
  if (address == dynamic.end()) return;
  const uint64_t size = dynamic.at(size_tag);
  for (uint64_t at = 0; at < size; at += sizeof(Elf64_Rela)) {
    relocations.push_back(load_at<Elf64_Rela>(base + address->second + at));
  }
}

/// Applies the relative relocations; admission has checked every address. All are read before the first is
/// applied: a table may lie in writable data, where one could turn the next into something unchecked.
void relocate_all(std::byte* base, const Elf64_Phdr& segment) {
  std::map<int64_t, uint64_t> dynamic;
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz; at += sizeof(Elf64_Dyn)) {
    const auto entry = load_at<Elf64_Dyn>(base + segment.p_vaddr + at);
    if (entry.d_tag == DT_NULL) break;
    dynamic[entry.d_tag] = entry.d_un.d_val;
  }
  std::vector<Elf64_Rela> relocations;
  append_relocations(relocations, base, dynamic, DT_RELA, DT_RELASZ);
  append_relocations(relocations, base, dynamic, DT_JMPREL, DT_PLTRELSZ);
  for (const Elf64_Rela& relocation : relocations) {
    const uint64_t value = reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(relocation.r_addend);
    std::memcpy(base + relocation.r_offset, &value, sizeof(value));
  }
}

}  // namespace

CodeImage::CodeImage(std::span<const std::byte> file) {
  AdmittedElf admitted = admit_elf(file);
  if (admitted.machine != host_machine()) {
    throw Error(ErrorCode::kNotSupported,
                "package holds code for " + admitted.machine + ", this machine is " + host_machine());
  }
  symbols_ = std::move(admitted.symbols);
  try {
    load(file);
  } catch (const Error&) {
    if (base_ != nullptr) ::munmap(base_, span_);
    throw;
  }
}

void CodeImage::load(std::span<const std::byte> file) {
  const uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::vector<Elf64_Phdr> segments = segments_of(file);
  uint64_t end = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_align % page != 0) {
      throw Error(ErrorCode::kNotSupported, "code is aligned to " + std::to_string(segment.p_align) +
                                                " bytes, pages here have " + std::to_string(page));
    }
    end = std::max(end, segment.p_vaddr + segment.p_memsz);
  }
  span_ = (end + page - 1) / page * page;
  void* memory =
      ::mmap(nullptr, span_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ErrorCode::kMemoryBudget, "cannot map " + std::to_string(span_) + " bytes for code");
  }
  base_ = static_cast<std::byte*>(memory);
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    std::memcpy(base_ + segment.p_vaddr, file.data() + segment.p_offset, segment.p_filesz);
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) relocate_all(base_, segment);
  }
  const auto protect = [&](uint64_t address, uint64_t size, int protection) {
    const uint64_t first = address / page * page;
    const uint64_t last = (address + size + page - 1) / page * page;
    if (::mprotect(base_ + first, last - first, protection) != 0) throw_errno(errno, "cannot protect code");
  };
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    const int protection = (segment.p_flags & PF_R ? PROT_READ : 0) |
                           (segment.p_flags & PF_W ? PROT_WRITE : 0) |
                           (segment.p_flags & PF_X ? PROT_EXEC : 0);
    protect(segment.p_vaddr, segment.p_memsz, protection);
  }
  __builtin___clear_cache(reinterpret_cast<char*>(base_), reinterpret_cast<char*>(base_) + span_);
}

CodeImage::~CodeImage() {
  if (base_ != nullptr) ::munmap(base_, span_);
}

tm_kernel CodeImage::kernel(const std::string& symbol) const {
  const auto found = symbols_.find(symbol);
  if (found == symbols_.end()) {
    throw Error(ErrorCode::kInvalidPackage, "mod.so has no function \"" + symbol + "\"");
  }
  return reinterpret_cast<tm_kernel>(base_ + found->second);
}

}  // namespace tensormill::package
