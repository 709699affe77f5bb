#include "runtime/package/code_image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/package/elf_admission.h"

namespace tensormill::package {
namespace {

template <typename T>
T& at(std::string& code, uint64_t offset) {
  return *reinterpret_cast<T*>(code.data() + offset);
}

/// The test's kernels with `relocations` at the end of their writable data, which is the last segment.
std::string with_relocations(const std::vector<Elf64_Rela>& relocations, uint64_t& address) {
  std::string code = read_file(TM_TEST_KERNELS);
  auto& header = at<Elf64_Ehdr>(code, 0);
  header.e_shoff = header.e_shnum = 0;
  Elf64_Phdr* data = nullptr;
  const Elf64_Phdr* dynamic = nullptr;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    auto& segment = at<Elf64_Phdr>(code, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0) data = &segment;
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
  }
  const uint64_t size = relocations.size() * sizeof(Elf64_Rela);
  address = data->p_vaddr + data->p_filesz;
  const uint64_t end = data->p_offset + data->p_filesz;
  data->p_memsz = data->p_filesz += size;
  auto* entry = &at<Elf64_Dyn>(code, dynamic->p_offset);
  while (entry->d_tag != DT_NULL) ++entry;
  *entry++ = {DT_RELA, {address}};
  *entry++ = {DT_RELASZ, {size}};
  *entry = {DT_NULL, {0}};
  code.resize(end);
  code.append(reinterpret_cast<const char*>(relocations.data()), size);
  return code;
}

TEST(CodeImage, ARelocationDoesNotChangeTheNextOne) {
  constexpr uint64_t kRelative = R_X86_64_RELATIVE;
  if (host_machine() != "x86_64") GTEST_SKIP() << "the relocations are those of x86_64";
  uint64_t address = 0;
  with_relocations({{}, {}}, address);
  // The first would make the second write to twice the base, far outside of the image.
  const std::string code =
      with_relocations({{address + sizeof(Elf64_Rela), kRelative, 0}, {address + 16, kRelative, 0}}, address);
  const CodeImage image(std::as_bytes(std::span(code)));
  EXPECT_NE(image.kernel("k_relu"), nullptr);
}

}  // namespace
}  // namespace tensormill::package
