#include "runtime/package/elf_admission.h"

#include <elf.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::package {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kInvalidPackage, "mod.so is not admitted: " + what);
}

class ElfAdmission {
public:
  explicit ElfAdmission(std::span<const std::byte> file) : file_(file) {}

  AdmittedElf run() {
    read_header();
    for (const Elf64_Phdr& segment : segments_) check_segment(segment);
    if (dynamic_.empty()) fail("no dynamic section");
    check_order();
    check_dynamic();
    read_symbols();
    check_relocations(DT_RELA, DT_RELASZ);
    check_relocations(DT_JMPREL, DT_PLTRELSZ);
    return std::move(result_);
  }

private:
  std::span<const std::byte> slice(uint64_t offset, uint64_t size) const {
    if (offset > file_.size() || size > file_.size() - offset) {
      fail("range of " + std::to_string(size) + " bytes at " + std::to_string(offset) + " passes the end, " +
           std::to_string(file_.size()));
    }
    return file_.subspan(offset, size);
  }

  template <typename T>
  T load(uint64_t offset) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }

  void read_header() {
    const auto header = load<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) fail("not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
      fail("not 64-bit little-endian");
    if (header.e_ident[EI_VERSION] != EV_CURRENT || header.e_version != EV_CURRENT)
      fail("unknown ELF version");
    if (header.e_ident[EI_OSABI] != ELFOSABI_NONE) fail("OS ABI " + std::to_string(header.e_ident[EI_OSABI]));
    if (header.e_type != ET_DYN) fail("not a shared object");
    if (header.e_machine == EM_X86_64) {
      result_.machine = "x86_64";
      relative_ = R_X86_64_RELATIVE;
    } else if (header.e_machine == EM_AARCH64) {
      result_.machine = "aarch64";
      relative_ = R_AARCH64_RELATIVE;
    } else {
      fail("machine " + std::to_string(header.e_machine));
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > 64) {
      fail(std::to_string(header.e_phnum) + " segments");
    }
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      segments_.push_back(load<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
    }
    if (header.e_phoff > file_.size()) fail("segment table is outside the file");
    slice(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize);
  }

  void check_segment(const Elf64_Phdr& segment) {
    switch (segment.p_type) {
      case PT_LOAD:
        check_load(segment);
        break;
      case PT_DYNAMIC:
        read_dynamic(segment);
        break;
      case PT_GNU_STACK:
        if ((segment.p_flags & PF_X) != 0) fail("executable stack");
        break;
      case PT_GNU_RELRO:
        check_relro(segment);
        break;
      case PT_NULL:
      case PT_NOTE:
      case PT_PHDR:
      case PT_GNU_EH_FRAME:
      case PT_GNU_PROPERTY:
        break;
      default:
        fail("segment type " + std::to_string(segment.p_type));
    }
    if (segment.p_type != PT_GNU_STACK) slice(segment.p_offset, segment.p_filesz);
  }

  static void check_load(const Elf64_Phdr& segment) {
    constexpr uint64_t kLimit = uint64_t{1} << 40;
    if ((segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0)
      fail("writable and executable segment");
    if (segment.p_memsz < segment.p_filesz || segment.p_memsz > kLimit || segment.p_vaddr > kLimit) {
      fail("segment of " + std::to_string(segment.p_memsz) + " bytes at " + std::to_string(segment.p_vaddr));
    }
    constexpr uint64_t kPage = 4096;
    if (segment.p_align < kPage || segment.p_align > (1u << 21) ||
        (segment.p_align & (segment.p_align - 1)) != 0 ||
        segment.p_vaddr % segment.p_align != segment.p_offset % segment.p_align) {
      fail("segment alignment " + std::to_string(segment.p_align));
    }
  }

  /// The loader makes this range read-only: it must be inside what it loaded.
  void check_relro(const Elf64_Phdr& relro) const {
    constexpr uint64_t kPage = 4096;
    for (const Elf64_Phdr& load : segments_) {
      if (load.p_type != PT_LOAD || relro.p_vaddr < load.p_vaddr) continue;
      const uint64_t end = (load.p_vaddr + load.p_memsz + kPage - 1) / kPage * kPage;
      if (relro.p_vaddr <= end && relro.p_memsz <= end - relro.p_vaddr) return;
    }
    fail("RELRO range is outside the loaded segments");
  }

  void check_order() const {
    uint64_t end = 0;
    bool any = false;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD) continue;
      if (any && segment.p_vaddr / 4096 * 4096 < end) fail("segments overlap or are out of order");
      end = segment.p_vaddr + segment.p_memsz;
      any = true;
    }
    if (!any) fail("nothing to load");
  }

  /// File offset of `size` bytes at virtual address `address`, which one segment must hold in the file.
  uint64_t file_offset(uint64_t address, uint64_t size) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      const uint64_t inside = address - segment.p_vaddr;
      if (inside > segment.p_filesz || size > segment.p_filesz - inside) continue;
      slice(segment.p_offset, segment.p_filesz);
      return segment.p_offset + inside;
    }
    fail("address " + std::to_string(address) + " is not loaded");
  }

  void read_dynamic(const Elf64_Phdr& segment) {
    if (!dynamic_.empty()) fail("two dynamic sections");
    // The loader reads it through its address, not through the file offset.
    if (file_offset(segment.p_vaddr, segment.p_filesz) != segment.p_offset)
      fail("dynamic section is not loaded");
    bool ended = false;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz && !ended; at += sizeof(Elf64_Dyn)) {
      const auto entry = load<Elf64_Dyn>(segment.p_offset + at);
      ended = entry.d_tag == DT_NULL;
      if (!ended && !dynamic_.emplace(entry.d_tag, entry.d_un.d_val).second) {
        fail("dynamic tag " + std::to_string(entry.d_tag) + " is there twice");
      }
    }
    if (!ended || dynamic_.empty()) fail("dynamic section does not end");
  }

  void check_dynamic() const {
    for (const auto& [tag, value] : dynamic_) {
      switch (tag) {
        case DT_SONAME:
        case DT_HASH:
        case DT_GNU_HASH:
        case DT_STRTAB:
        case DT_STRSZ:
        case DT_SYMTAB:
        case DT_SYMENT:
        case DT_RELA:
        case DT_RELASZ:
        case DT_RELAENT:
        case DT_RELACOUNT:
        case DT_JMPREL:
        case DT_PLTRELSZ:
        case DT_PLTREL:
        case DT_PLTGOT:
        case DT_BIND_NOW:
          break;
        case DT_FLAGS:
          if ((value & ~uint64_t{DF_BIND_NOW | DF_SYMBOLIC}) != 0)
            fail("dynamic flags " + std::to_string(value));
          break;
        case DT_FLAGS_1:
          if ((value & ~uint64_t{DF_1_NOW}) != 0) fail("dynamic flags_1 " + std::to_string(value));
          break;
        case DT_NEEDED:
          fail("it needs a library");
        case DT_INIT:
        case DT_INIT_ARRAY:
        case DT_PREINIT_ARRAY:
        case DT_FINI:
        case DT_FINI_ARRAY:
          fail("it has constructors or destructors");
        case DT_TEXTREL:
          fail("it has text relocations");
        default:
          // Entries that the loader might act on in ways that are not examined here.
          fail("dynamic tag " + std::to_string(tag));
      }
    }
  }

  uint64_t required(int64_t tag, const char* name) const {
    const auto found = dynamic_.find(tag);
    if (found == dynamic_.end()) fail(std::string("no ") + name);
    return found->second;
  }

  /// How many dynamic symbols there are: what DT_HASH says, or the end of the last chain of DT_GNU_HASH.
  uint64_t count_symbols() const {
    if (const auto hash = dynamic_.find(DT_HASH); hash != dynamic_.end()) {
      return load<uint32_t>(file_offset(hash->second, 8) + 4);
    }
    const uint64_t address = required(DT_GNU_HASH, "hash table");
    const uint64_t table = file_offset(address, 16);
    const uint64_t buckets = load<uint32_t>(table);
    const uint64_t first = load<uint32_t>(table + 4);
    const uint64_t bloom = load<uint32_t>(table + 8);
    const uint64_t bucket_address = address + 16 + bloom * 8;
    const uint64_t chains = bucket_address + buckets * 4;
    if (buckets == 0 || bloom == 0 || (bloom & (bloom - 1)) != 0) fail("hash table is broken");
    slice(file_offset(bucket_address, buckets * 4), buckets * 4);
    // The chains follow each other in the order of the buckets: the last symbol ends the one that begins
    // last.
    uint64_t last = 0;
    for (uint64_t i = 0; i < buckets; ++i) {
      const uint64_t symbol = load<uint32_t>(file_offset(bucket_address + i * 4, 4));
      if (symbol != 0 && symbol < first) fail("hash table is broken");
      last = std::max(last, symbol);
    }
    if (last == 0) return first;
    while ((load<uint32_t>(file_offset(chains + (last - first) * 4, 4)) & 1) == 0) ++last;
    return last + 1;
  }

  void read_symbols() {
    const uint64_t names_size = required(DT_STRSZ, "string table size");
    const auto names = slice(file_offset(required(DT_STRTAB, "string table"), names_size), names_size);
    if (required(DT_SYMENT, "symbol size") != sizeof(Elf64_Sym)) fail("symbol size");
    const uint64_t count = count_symbols();
    if (count > file_.size() / sizeof(Elf64_Sym)) fail(std::to_string(count) + " symbols");
    const uint64_t table = file_offset(required(DT_SYMTAB, "symbol table"), count * sizeof(Elf64_Sym));
    for (uint64_t i = 1; i < count; ++i) {
      const auto symbol = load<Elf64_Sym>(table + i * sizeof(Elf64_Sym));
      const void* end = symbol.st_name < names.size()
                            ? std::memchr(names.data() + symbol.st_name, 0, names.size() - symbol.st_name)
                            : nullptr;
      if (end == nullptr) fail("symbol name is outside its table");
      const std::string name(reinterpret_cast<const char*>(names.data()) + symbol.st_name);
      if (symbol.st_shndx == SHN_UNDEF) fail("undefined symbol \"" + name + "\"");
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_GNU_IFUNC) fail("IFUNC \"" + name + "\"");
      if (type == STT_TLS) fail("thread-local symbol \"" + name + "\"");
      if (type == STT_FUNC && is_executable(symbol.st_value)) result_.symbols[name] = symbol.st_value;
    }
  }

  bool is_executable(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return true;
      }
    }
    return false;
  }

  /// Only relative relocations into writable, loaded memory.
  void check_relocations(int64_t address_tag, int64_t size_tag) const {
    const auto address = dynamic_.find(address_tag);
    if (address == dynamic_.end()) return;
    const uint64_t size = required(size_tag, "relocation size");
    const uint64_t table = file_offset(address->second, size);
    if (size % sizeof(Elf64_Rela) != 0) fail("relocation table is broken");
    for (uint64_t at = 0; at < size; at += sizeof(Elf64_Rela)) {
      const auto relocation = load<Elf64_Rela>(table + at);
      if (ELF64_R_TYPE(relocation.r_info) != relative_) {
        fail("relocation type " + std::to_string(ELF64_R_TYPE(relocation.r_info)));
      }
      if (!is_writable(relocation.r_offset)) fail("relocation outside writable data");
    }
  }

  bool is_writable(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 && segment.p_memsz >= 8 &&
          address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_memsz - 8) {
        return true;
      }
    }
    return false;
  }

  std::span<const std::byte> file_;
  std::vector<Elf64_Phdr> segments_;
  std::map<int64_t, uint64_t> dynamic_;
  uint32_t relative_ = 0;
  AdmittedElf result_;
};

}  // namespace

AdmittedElf admit_elf(std::span<const std::byte> file) { return ElfAdmission(file).run(); }

std::string host_machine() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

}  // namespace tensormill::package
