#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "runtime/base/cpu_features.h"
#include "runtime/base/error.h"
#include "runtime/package/tar_reader.h"
#include "tests/expect_error.h"
#include "tests/runtime/test_package.h"

namespace tensormill::package {
namespace {

TEST(Package, OpensAndLoads) {
  auto archive = relu_add_archive();
  const std::string bytes = archive.bytes();
  const auto package = Package::from_archive_bytes(as_bytes(bytes));
  EXPECT_EQ(package->id(), Digest::of(package->metadata_text()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(package->member("mod.params").data()) % 64, 0u);
  const auto loaded = LoadedPackage::load(package);
  const auto bound = loaded->bind(loaded->first_dims());
  const std::vector<tm_kernel>& kernels = bound->kernels;
  EXPECT_NE(kernels.at(0), nullptr);
  EXPECT_NE(kernels.at(0), kernels.at(1));
}

TEST(Package, RefusesWhatDoesNotFitTogether) {
  auto archive = relu_add_archive();
  const std::string good = archive.bytes();
  expect_error(ErrorCode::kInvalidPackage, "digest", [&] {
    std::string bytes = good;
    bytes[bytes.size() - 1024 - 512] ^= 1;  // a byte of mod.params
    Package::from_archive_bytes(as_bytes(bytes));
  });
  expect_error(ErrorCode::kInvalidPackage, "no member", [] {
    Package::from_archive_bytes(as_bytes(tar_member("mod.json", "{}") + std::string(1024, '\0')));
  });
  expect_error(ErrorCode::kInvalidPackage, "kernel ABI 2", [&] {
    auto other = relu_add_archive();
    other.metadata.abi_version = 2;
    Package::from_archive_bytes(as_bytes(other.bytes()));
  });
  expect_error(ErrorCode::kCpuFeatureMissing, "no-such-feature", [&] {
    auto other = relu_add_archive();
    other.metadata.cpu_features = {"no-such-feature"};
    load_archive(other.bytes());
  });
  expect_error(ErrorCode::kInvalidPackage, "no function \"k_missing\"", [&] {
    auto other = relu_add_archive();
    other.plan.steps[0].function = "k_missing";
    load_archive(other.bytes());
  });
}

TEST(CpuFeatures, KnowsTheMachine) {
#if defined(__x86_64__)
  EXPECT_EQ(host_has_cpu_feature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(host_has_cpu_feature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
#endif
  EXPECT_THAT(missing_cpu_features({"nonsense"}), testing::ElementsAre("nonsense"));
}

TEST(Tar, RefusesWhatIsNotAPlainFile) {
  const std::string end(1024, '\0');
  const std::string file = tar_member("a", "x");
  EXPECT_EQ(read_tar(as_bytes(file + end)).size(), 1u);
  EXPECT_EQ(read_tar(as_bytes(file + end))[0].offset, 512u);
  expect_error(ErrorCode::kInvalidPackage, "used twice", [&] { read_tar(as_bytes(file + file + end)); });
  expect_error(ErrorCode::kInvalidPackage, "not allowed",
               [&] { read_tar(as_bytes(tar_member("../a", "x") + end)); });
  expect_error(ErrorCode::kInvalidPackage, "cut off", [&] { read_tar(as_bytes(file)); });
  expect_error(ErrorCode::kInvalidPackage, "cut off",
               [&] { read_tar(as_bytes(file + std::string(512, '\0'))); });
  expect_error(ErrorCode::kInvalidPackage, "after the end", [&] { read_tar(as_bytes(file + end + "x")); });
  const std::string filler = "512 comment=" + std::string(499, ' ') + "\n";
  const auto members = read_tar(as_bytes(tar_member("align", filler, 'x') + file + end));
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0].offset, 1536u);
  expect_error(ErrorCode::kInvalidPackage, "extended header",
               [&] { read_tar(as_bytes(tar_member("align", "21 path=../etc/x/y/z\n", 'x') + file + end)); });
  expect_error(ErrorCode::kInvalidPackage, "not a regular file",
               [&] { read_tar(as_bytes(tar_member("l", "", '2') + end)); });
  std::string wrong = file + end;
  wrong[0] = 'b';
  expect_error(ErrorCode::kInvalidPackage, "checksum", [&] { read_tar(as_bytes(wrong)); });
}

/// Changes a copy of the good code and says why it must be refused.
struct CodeChange {
  const char* message;
  std::function<void(std::string&)> change;
};

Elf64_Phdr& segment(std::string& code, uint32_t type, uint32_t flags = 0) {
  auto* header = reinterpret_cast<Elf64_Ehdr*>(code.data());
  auto* segments = reinterpret_cast<Elf64_Phdr*>(code.data() + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == type && (segments[i].p_flags & flags) == flags) return segments[i];
  }
  throw InternalError("no such segment");
}

Elf64_Dyn& dynamic(std::string& code, int64_t tag) {
  auto* entry = reinterpret_cast<Elf64_Dyn*>(code.data() + segment(code, PT_DYNAMIC).p_offset);
  while (entry->d_tag != tag) ++entry;
  return *entry;
}

TEST(ElfAdmission, EachRuleIsEnforced) {
  const std::string good = read_file(TM_TEST_KERNELS);
  const AdmittedElf admitted = admit_elf(as_bytes(good));
  EXPECT_EQ(admitted.machine, host_machine());
  EXPECT_TRUE(admitted.symbols.contains("k_relu"));
  const CodeChange changes[] = {
      {"not an ELF", [](std::string& c) { c[0] = 'x'; }},
      {"not a shared object",
       [](std::string& c) { reinterpret_cast<Elf64_Ehdr*>(c.data())->e_type = ET_EXEC; }},
      {"machine", [](std::string& c) { reinterpret_cast<Elf64_Ehdr*>(c.data())->e_machine = EM_386; }},
      {"writable and executable", [](std::string& c) { segment(c, PT_LOAD, PF_X).p_flags |= PF_W; }},
      {"executable stack", [](std::string& c) { segment(c, PT_GNU_STACK).p_flags |= PF_X; }},
      {"segment type", [](std::string& c) { segment(c, PT_GNU_STACK).p_type = PT_INTERP; }},
      {"needs a library", [](std::string& c) { dynamic(c, DT_GNU_HASH).d_tag = DT_NEEDED; }},
      {"constructors", [](std::string& c) { dynamic(c, DT_STRSZ).d_tag = DT_INIT; }},
      {"text relocations", [](std::string& c) { dynamic(c, DT_STRSZ).d_tag = DT_TEXTREL; }},
      {"dynamic tag", [](std::string& c) { dynamic(c, DT_STRSZ).d_tag = DT_AUDIT; }},
      {"is not loaded", [](std::string& c) { dynamic(c, DT_SYMTAB).d_un.d_ptr = 1 << 30; }},
      {"passes the end", [](std::string& c) { c.resize(c.size() / 2); }},
      {"segment", [](std::string& c) { segment(c, PT_LOAD, PF_X).p_memsz = 0; }},
  };
  for (const CodeChange& change : changes) {
    SCOPED_TRACE(change.message);
    std::string code = good;
    change.change(code);
    expect_error(ErrorCode::kInvalidPackage, change.message, [&] { admit_elf(as_bytes(code)); });
  }
}

TEST(ElfAdmission, RefusesUndefinedAndSpecialSymbols) {
  std::string code = read_file(TM_TEST_KERNELS);
  // Every dynamic symbol in turn becomes what must not be there.
  const uint64_t table = dynamic(code, DT_SYMTAB).d_un.d_ptr;  // the first segment maps the file from 0
  auto& symbol = reinterpret_cast<Elf64_Sym*>(code.data() + table)[1];
  const Elf64_Sym before = symbol;
  symbol.st_shndx = SHN_UNDEF;
  expect_error(ErrorCode::kInvalidPackage, "undefined symbol", [&] { admit_elf(as_bytes(code)); });
  symbol = before;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
  expect_error(ErrorCode::kInvalidPackage, "IFUNC", [&] { admit_elf(as_bytes(code)); });
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS);
  expect_error(ErrorCode::kInvalidPackage, "thread-local", [&] { admit_elf(as_bytes(code)); });
}

/// Flips bits, cuts, and writes special values.
std::string mutate(std::string bytes, std::mt19937& random) {
  switch (random() % 3) {
    case 0:
      bytes.resize(random() % bytes.size());
      break;
    case 1: {
      const uint64_t special[] = {0, UINT64_MAX, INT64_MAX, 1, 0xffffffff};
      std::memcpy(bytes.data() + random() % (bytes.size() - 8), &special[random() % 5],
                  size_t{1} << random() % 4);
      break;
    }
    default:
      for (unsigned n = 1 + random() % 4; n > 0; --n) {
        bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      }
  }
  return bytes;
}

template <typename Action>
int count_rejected(const std::string& good, unsigned seed, Action action) {
  std::mt19937 random(seed);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = mutate(good, random);
    try {
      action(bytes);
    } catch (const Error& error) {
      ++rejected;
      EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::kInvalidPackage, ErrorCode::kInvalidTensor,
                                               ErrorCode::kMemoryBudget, ErrorCode::kNotSupported))
          << error.message();
    }
  }
  return rejected;
}

TEST(PackageMutations, OfTheArchiveAreRefused) {
  const std::string good = relu_add_archive().bytes();
  EXPECT_GT(
      count_rejected(good, 1, [](const std::string& bytes) { Package::from_archive_bytes(as_bytes(bytes)); }),
      1500);
}

TEST(PackageMutations, OfThePlanAreErrorsOrValidPlans) {
  const std::string good = plan_to_json([] {
    auto archive = relu_add_archive();
    archive.bytes();
    return archive.plan;
  }());
  const int rejected = count_rejected(good, 2, [](const std::string& bytes) {
    const ExecPlan plan = plan_from_json(bytes);
    plan_memory(plan);
  });
  EXPECT_GT(rejected, 1200);
}

TEST(PackageMutations, OfTheMetadataAreErrorsOrMetadata) {
  auto archive = relu_add_archive();
  archive.bytes();
  const std::string good = metadata_to_json(archive.metadata);
  EXPECT_GT(count_rejected(good, 3, [](const std::string& bytes) { metadata_from_json(bytes); }), 1000);
}

TEST(PackageMutations, OfTheCodeAreRefusedOrMap) {
  const std::string good = read_file(TM_TEST_KERNELS);
  // Headers and tables are hit as often as the rest; nothing is called, only mapped and relocated.
  const int rejected =
      count_rejected(good, 4, [](const std::string& bytes) { CodeImage image(as_bytes(bytes)); });
  EXPECT_GT(rejected, 600);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    const size_t at = random() % 1024;
    bytes[at] = static_cast<char>(random());
    try {
      CodeImage image(as_bytes(bytes));
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal);
    }
  }
}

}  // namespace
}  // namespace tensormill::package
