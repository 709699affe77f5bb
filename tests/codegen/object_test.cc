#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <cstring>
#include <future>
#include <span>

#include "compiler/codegen/bundle.h"
#include "compiler/codegen/version.h"
#include "compiler/target/features.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/package/code_image.h"
#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Buffer;
using te::Expr;
using te::Stmt;
using te::Var;
using testing::HasSubstr;
using testing::Not;

/// One output tile of a matrix product: `rows` x `vectors` accumulators of `lanes` f32 in registers, over a
/// packed panel of b; one element of a is broadcast for each row and step.
te::Function tile(std::string name, int rows, int vectors, int lanes, int64_t depth) {
  const int64_t width = int64_t{vectors} * lanes;
  const Buffer a = flat("a", DType::kFloat32, rows * depth);
  const Buffer b = flat("b", DType::kFloat32, depth * width);
  const Buffer out = flat("out", DType::kFloat32, rows * width);
  const Buffer sums = flat("sums", DType::kFloat32, rows * width, te::Scope::kRegister);
  const Var k = te::make_var("k");
  std::vector<Stmt> begin;
  std::vector<Stmt> step;
  std::vector<Stmt> end;
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) {
      const Expr place = te::ramp(Expr(r * width + v * lanes), Expr(1), lanes);
      const Expr weight = te::load(b, {te::ramp(Expr(k) * Expr(width) + Expr(v * lanes), Expr(1), lanes)});
      const Expr element = te::broadcast(te::load(a, {Expr(r * depth) + Expr(k)}), lanes);
      begin.push_back(te::make_store(sums, {place}, te::float_imm(DType::kFloat32, 0, lanes)));
      step.push_back(te::make_store(sums, {place}, te::fma(element, weight, te::load(sums, {place}))));
      end.push_back(te::make_store(out, {place}, te::load(sums, {place})));
    }
  }
  begin.push_back(te::make_for(k, Expr(0), Expr(depth), te::ForKind::kSerial, te::make_seq(step)));
  begin.insert(begin.end(), end.begin(), end.end());
  return make_function(std::move(name), {a, b, out}, 1, te::make_allocate(sums, te::make_seq(begin)));
}

codegen::Object emit(const te::Function& function, const target::Target& target) {
  return codegen::make_llvm_backend()->emit(function, target, {true, true});
}

size_t count(const std::string& text, const std::string& what) {
  size_t result = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++result;
  return result;
}

TEST(Objects, AssemblyHasALabelWhereverABranchLeads) {
  for (const char* cpu : {"skylake", "neoverse-n1"}) {
    const std::string target = std::string("llvm -mcpu=") + cpu;
    const std::string text = emit(tile("tile", 2, 2, 4, 256), parse(target)).assembly_text;
    EXPECT_THAT(text, HasSubstr("\ntile:\n")) << text;
    size_t branches = 0;
    for (size_t at = text.find("\t.L"); at != std::string::npos; at = text.find("\t.L", at + 1)) {
      const std::string label = text.substr(at + 1, text.find('\n', at) - at - 1);
      EXPECT_THAT(text, HasSubstr("\n" + label + ":\n"));
      ++branches;
    }
    EXPECT_GE(branches, 1u) << text;
  }
}

TEST(Objects, AccumulatorsStayInRegistersAndBroadcastsAreMemoryOperands) {
  const std::string wide =
      emit(tile("tile", 14, 2, 16, 256), parse("llvm -mcpu=skylake-avx512")).assembly_text;
  EXPECT_THAT(wide, HasSubstr("vfmadd"));
  EXPECT_THAT(wide, Not(HasSubstr("(%rsp)"))) << wide;
  EXPECT_THAT(wide, Not(HasSubstr("vperm")));
  EXPECT_THAT(wide, Not(HasSubstr("vmulps")));
  EXPECT_EQ(count(wide, "vbroadcastss"), 14u);  // one for each row, used twice
  const std::string tall =
      emit(tile("tile", 28, 1, 16, 256), parse("llvm -mcpu=skylake-avx512")).assembly_text;
  EXPECT_EQ(count(tall, "{1to16}"), 28u) << tall;
  EXPECT_THAT(tall, Not(HasSubstr("(%rsp)")));
  const std::string narrow = emit(tile("tile", 6, 2, 8, 256), parse("llvm -mcpu=haswell")).assembly_text;
  EXPECT_THAT(narrow, HasSubstr("vfmadd"));
  EXPECT_THAT(narrow, Not(HasSubstr("(%rsp)"))) << narrow;
  EXPECT_THAT(narrow, Not(HasSubstr("zmm")));
}

TEST(Objects, TileComputesTheProduct) {
  const te::Function function = tile("tile", 6, 2, 8, 64);
  std::vector<Tensor> arguments = {Tensor::zeros(DType::kFloat32, {6 * 64}),
                                   Tensor::zeros(DType::kFloat32, {64 * 16}),
                                   Tensor::zeros(DType::kFloat32, {6 * 16})};
  for (int64_t i = 0; i < 6 * 64; ++i) arguments[0].set_element(i, static_cast<double>(i % 7) - 3);
  for (int64_t i = 0; i < 64 * 16; ++i) arguments[1].set_element(i, static_cast<double>(i % 5) - 2);
  ASSERT_EQ(Kernel(function, host()).run(arguments).code, 0);
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t c = 0; c < 16; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < 64; ++k) {
        sum += arguments[0].element_as_double(r * 64 + k) * arguments[1].element_as_double(k * 16 + c);
      }
      ASSERT_EQ(arguments[2].element_as_double(r * 16 + c), sum) << r << "," << c;
    }
  }
}

TEST(Objects, NothingIsContractedOrReassociated) {
  const Buffer a = flat("a", DType::kFloat32, 64);
  const Buffer out = flat("out", DType::kFloat32, 64);
  const Var i = te::make_var("i");
  const Expr x = te::load(a, {te::ramp(Expr(i) * Expr(16), Expr(1), 16)});
  const Stmt body = te::make_for(i, Expr(0), Expr(4), te::ForKind::kSerial,
                                 te::make_store(out, {te::ramp(Expr(i) * Expr(16), Expr(1), 16)}, x * x + x));
  const codegen::Object object =
      emit(make_function("f", {a, out}, 1, body), parse("llvm -mcpu=skylake-avx512"));
  EXPECT_THAT(object.assembly_text, HasSubstr("vmulps"));
  EXPECT_THAT(object.assembly_text, Not(HasSubstr("vfmadd")));
  for (const char* flag : {" fast ", " contract ", " reassoc ", " nnan ", " nsz ", " afn "}) {
    EXPECT_THAT(object.ir_text, Not(HasSubstr(flag)));
  }
}

/// Loops that fill and copy must not become calls of memset and memcpy.
TEST(Objects, AreClosedWithoutLibraryCalls) {
  const Buffer a = flat("a", DType::kUInt8, 100000);
  const Buffer out = flat("out", DType::kUInt8, 100000);
  const Var i = te::make_var("i");
  const Var j = te::make_var("j");
  const Stmt body =
      te::make_seq({te::make_for(i, Expr(0), Expr(50000), te::ForKind::kSerial,
                                 te::make_store(out, {Expr(i)}, te::int_imm(DType::kUInt8, 0))),
                    te::make_for(j, Expr(0), Expr(50000), te::ForKind::kSerial,
                                 te::make_store(out, {Expr(j) + Expr(50000)}, te::load(a, {Expr(j)})))});
  for (const char* text : {"llvm -mcpu=x86-64", "llvm -mcpu=haswell", "llvm -mcpu=cortex-a72"}) {
    const codegen::Object object = emit(make_function("copy", {a, out}, 1, body), parse(text));
    EXPECT_THAT(object.assembly_text, Not(HasSubstr("memset")));
    EXPECT_THAT(object.assembly_text, Not(HasSubstr("memcpy")));
  }
}

TEST(Objects, AreEqualForEqualInputOnAnyThread) {
  const te::Function function = tile("tile", 4, 3, 8, 100);
  const target::Target target = parse("llvm -mcpu=haswell");
  const codegen::Object first = emit(function, target);
  std::vector<std::future<codegen::Object>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::async(std::launch::async, [&] { return emit(function, target); }));
  }
  for (auto& other : others) {
    const codegen::Object object = other.get();
    EXPECT_EQ(object.bytes, first.bytes);
    EXPECT_EQ(object.ir_text, first.ir_text);
    EXPECT_EQ(object.assembly_text, first.assembly_text);
  }
  EXPECT_NE(emit(function, parse("llvm -mcpu=skylake-avx512")).bytes, first.bytes);
}

/// Tags of the dynamic section, and the machine.
struct ElfFacts {
  uint16_t machine = 0;
  std::vector<int64_t> dynamic_tags;
  bool writable_code = false;
  bool executable_stack = false;
};

ElfFacts read_elf(const std::string& bytes) {
  ElfFacts facts;
  Elf64_Ehdr header;
  TM_CHECK(bytes.size() > sizeof(header), "a short file");
  std::memcpy(&header, bytes.data(), sizeof(header));
  facts.machine = header.e_machine;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      facts.writable_code = true;
    if (segment.p_type == PT_GNU_STACK && (segment.p_flags & PF_X)) facts.executable_stack = true;
    if (segment.p_type != PT_DYNAMIC) continue;
    for (size_t offset = 0; offset < segment.p_filesz; offset += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, bytes.data() + segment.p_offset + offset, sizeof(entry));
      if (entry.d_tag != DT_NULL) facts.dynamic_tags.push_back(entry.d_tag);
    }
  }
  return facts;
}

void expect_admissible(const std::string& bytes, uint16_t machine) {
  const ElfFacts facts = read_elf(bytes);
  EXPECT_EQ(facts.machine, machine);
  EXPECT_FALSE(facts.writable_code);
  EXPECT_FALSE(facts.executable_stack);
  for (const int64_t tag :
       {DT_NEEDED, DT_INIT, DT_FINI, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_TEXTREL, DT_JMPREL}) {
    EXPECT_THAT(facts.dynamic_tags, Not(testing::Contains(tag)));
  }
}

TEST(Link, SharedObjectsAreClosedDeterministicAndLoadable) {
  const target::Target target = host();
  const auto backend = codegen::make_llvm_backend();
  const std::vector<codegen::Object> objects = {backend->emit(tile("first", 2, 1, 8, 16), target, {}),
                                                backend->emit(tile("second", 4, 2, 8, 16), target, {})};
  const std::string bytes = backend->link(objects, target);
  expect_admissible(bytes, target.is_x86() ? EM_X86_64 : EM_AARCH64);
  EXPECT_EQ(backend->link(objects, target), bytes);
  EXPECT_EQ(count(bytes, "/proc/self"), 0u);

  const FileDescriptor file(memfd_create("mod.so", MFD_CLOEXEC));
  ASSERT_TRUE(file.valid());
  write_all(file.get(), bytes, "mod.so");
  void* library = dlopen(("/proc/self/fd/" + std::to_string(file.get())).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto kernel = reinterpret_cast<tm_kernel>(dlsym(library, "first"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_NE(dlsym(library, "second"), nullptr);
  EXPECT_EQ(dlsym(library, "body"), nullptr);
  tm_call call = {};
  EXPECT_EQ(kernel(&call), TM_ABI_MISMATCH);
  dlclose(library);
}

/// Fills `out` in parallel: the task's address and the constants need relocations.
te::Function parallel_fill(int64_t size) {
  const Buffer out = flat("out", DType::kFloat32, size * 8);
  const Var i = te::make_var("i");
  const Expr ramp = te::ramp(Expr(i) * Expr(8), Expr(1), 8);
  const Expr value = te::cast(DType::kFloat32, ramp) * te::float_imm(DType::kFloat32, 0.25, 8);
  return make_function(
      "fill", {out}, 1,
      te::make_for(i, Expr(0), Expr(size), te::ForKind::kParallel, te::make_store(out, {ramp}, value)));
}

int32_t launch_here(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  int32_t code = 0;
  for (int64_t i = 0; i < tasks && code == 0; ++i) code = task(call, closure, i, 0);
  return code;
}

/// The runtime's own loader accepts nothing but closed code with relative relocations.
TEST(Link, TheRuntimeAdmitsAndRunsIt) {
  const target::Target target = host();
  const auto backend = codegen::make_llvm_backend();
  const std::string bytes = backend->link(
      {backend->emit(tile("tile", 2, 1, 8, 16), target, {}), backend->emit(parallel_fill(4), target, {})},
      target);
  const package::CodeImage image(std::as_bytes(std::span(bytes)));
  EXPECT_NE(image.kernel("tile"), nullptr);
  Tensor tensor = Tensor::zeros(DType::kFloat32, {32});
  void* buffers[1] = {tensor.data()};
  const tm_parallel parallel = {nullptr, 1, 0, &launch_here};
  int64_t error_index = 0;
  tm_call call = {};
  call.abi_version = TM_ABI_VERSION;
  call.num_buffers = 1;
  call.buffers = buffers;
  call.parallel = &parallel;
  call.error_index = &error_index;
  ASSERT_EQ(image.kernel("fill")(&call), TM_OK);
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(tensor.element_as_double(i), 0.25 * static_cast<double>(i));
}

/// A confined child has few descriptors, and a network may have thousands of kernels.
TEST(Link, TakesNoMoreDescriptorsForMoreKernels) {
  const target::Target target = host();
  const auto backend = codegen::make_llvm_backend();
  std::vector<codegen::Object> objects;
  for (int i = 0; i < 40; ++i)
    objects.push_back(backend->emit(tile("k" + std::to_string(i), 1, 1, 4, 4), target, {}));
  const FileDescriptor next(memfd_create("next", MFD_CLOEXEC));
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few = {static_cast<rlim_t>(next.get()) + 12, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const std::string bytes = backend->link(objects, target);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const package::CodeImage image(std::as_bytes(std::span(bytes)));
  for (const codegen::Object& object : objects)
    EXPECT_NE(image.kernel(object.symbol), nullptr) << object.symbol;
}

TEST(Link, TheRuntimeKnowsEveryFeatureOfThisMachine) {
  EXPECT_THAT(missing_cpu_features(host().required_features()), testing::IsEmpty());
}

TEST(Link, CrossCompilesForAarch64) {
  const auto backend = codegen::make_llvm_backend();
  const target::Target target = parse("llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu");
  const codegen::Object object = emit(tile("tile", 6, 2, 4, 64), target);
  EXPECT_THAT(object.assembly_text, HasSubstr("fmla"));
  EXPECT_THAT(object.assembly_text, Not(HasSubstr("[sp"))) << object.assembly_text;
  expect_admissible(backend->link({object}, target), EM_AARCH64);
}

TEST(Bundles, TheRuntimeMayLieAnywhere) {
  const target::Target target = parse("llvm -mcpu=skylake");
  const std::string object = emit(tile("tile", 2, 2, 4, 16), target).bytes;
  const std::array<std::byte, 3> package{};
  std::string first;
  for (size_t offset = 0; offset < 8; ++offset) {
    const std::string somewhere = std::string(offset, ' ') + object;
    const std::string archive = codegen::make_llvm_backend()->static_bundle(
        {std::string_view(somewhere).substr(offset), package, "open", target});
    EXPECT_THAT(archive, HasSubstr(object)) << offset;
    if (offset == 0) first = archive;
    EXPECT_EQ(archive, first) << offset;
  }
}

TEST(Backend, NamesItsVersion) { EXPECT_THAT(codegen::llvm_version(), testing::StartsWith("llvm 19.")); }

}  // namespace
}  // namespace tensormill::codegen_test
