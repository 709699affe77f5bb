// Which program this is: the same for the same files, another for any other.
#include "server/services/program_id.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "runtime/base/error.h"
#include "tests/storage/support.h"

namespace tensormill::server {
namespace {

class ProgramId : public testing::Test {
protected:
  std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  storage::TemporaryFolder folder_;
};

template <typename T>
std::string bytes_of(const T& value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

/// An ELF file with one segment of notes, of another's and a build id, and `rest` behind them.
std::string elf(const std::string& build_id, const std::string& rest) {
  const auto note = [](const std::string& name, uint32_t type, std::string value) {
    const Elf64_Nhdr head{static_cast<uint32_t>(name.size()), static_cast<uint32_t>(value.size()), type};
    value.resize((value.size() + 3) / 4 * 4);
    return bytes_of(head) + name + value;
  };
  const std::string notes = note(std::string("XYZ\0", 4), NT_GNU_BUILD_ID, "another's") +
                            note(std::string("GNU\0", 4), NT_GNU_BUILD_ID, build_id);
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_phoff = sizeof(head);
  head.e_phnum = 1;
  head.e_phentsize = sizeof(Elf64_Phdr);
  Elf64_Phdr part{};
  part.p_type = PT_NOTE;
  part.p_offset = sizeof(head) + sizeof(part);
  part.p_filesz = notes.size();
  return bytes_of(head) + bytes_of(part) + notes + rest;
}

TEST_F(ProgramId, IsThatOfTheRunningProgramWheneverItIsAsked) {
  EXPECT_EQ(program_id(), program_id());
  EXPECT_NE(program_id(), id_of_files({"/proc/self/exe", file("module", "another module")}));
}

TEST_F(ProgramId, DiffersForTwoPrograms) {
  const std::string one = file("one", elf("build one", "x")), two = file("two", elf("build two", "x"));
  EXPECT_NE(id_of_files({one}), id_of_files({two}));
  EXPECT_EQ(id_of_files({one}), id_of_files({file("copy", elf("build one", "x"))}));
  EXPECT_EQ(id_of_files({one}), id_of_files({file("stripped", elf("build one", ""))}));
  EXPECT_NE(id_of_files({one}), id_of_files({one, two})) << "a module of it is another";
  EXPECT_NE(id_of_files({one, two}), id_of_files({two, one}));
}

TEST_F(ProgramId, IsOfAllBytesWhereThereIsNoBuildId) {
  EXPECT_NE(id_of_files({file("a", "no program")}), id_of_files({file("b", "no programs")}));
  EXPECT_NE(id_of_files({file("c", elf("", "x"))}), id_of_files({file("d", elf("", "y"))}));
  // Cut anywhere, it is a file like any other.
  const std::string whole = elf("build one", "x");
  for (size_t size = 0; size < whole.size() - 1; ++size)
    EXPECT_FALSE(id_of_files({file("cut", whole.substr(0, size))}).empty());
  EXPECT_ERROR((void)id_of_files({folder_.path() + "/none"}), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tensormill::server
