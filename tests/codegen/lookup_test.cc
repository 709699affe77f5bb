// Lookups of bytes, as instructions on vectors of all widths and in memory: the same bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Expr;

constexpr int64_t kLookups = 768;  // divisible by every lane count below

te::ByteTable mixed() {
  te::ByteTable table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>((i * 167 + 13) ^ (i >> 3));
  return table;
}

/// The bytes of a string: the last is the only zero.
te::ByteTable descending() {
  te::ByteTable table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(255 - i);
  return table;
}

te::Function looked_up(const te::ByteTable& table, int lanes) {
  const te::Buffer x = flat("x", DType::kUInt8, kLookups), y = flat("y", DType::kUInt8, kLookups);
  const te::Var i = te::make_var("i");
  const Expr base = Expr(i) * Expr(static_cast<int64_t>(lanes));
  const Expr index = lanes == 1 ? base : te::ramp(base, Expr(1), lanes);
  const Expr value = te::lookup(te::load(x, {index}), std::make_shared<const te::ByteTable>(table));
  return make_function("lookups", {x, y}, 1,
                       te::make_for(i, Expr(0), Expr(kLookups / lanes), te::ForKind::kSerial,
                                    te::make_store(y, {index}, value)));
}

std::string assembly_of(int lanes, const std::string& target) {
  return codegen::make_llvm_backend()
      ->emit(looked_up(mixed(), lanes), parse(target), {.keep_assembly = true})
      .assembly_text;
}

class Lookups : public ::testing::TestWithParam<int> {};

TEST_P(Lookups, GiveWhatTheTableHas) {
  for (const target::Target& target : runnable_targets()) {
    for (const te::ByteTable& table : {mixed(), descending()}) {
      std::vector<Tensor> arguments = {Tensor(DType::kUInt8, {kLookups}), Tensor(DType::kUInt8, {kLookups})};
      for (int64_t i = 0; i < kLookups; ++i) arguments[0].set_element_int(i, i * 5 % 256);
      ASSERT_EQ(Kernel(looked_up(table, GetParam()), target).run(arguments).code, 0);
      for (int64_t i = 0; i < kLookups; ++i) {
        ASSERT_EQ(arguments[1].element_as_int(i), table[static_cast<size_t>(i * 5 % 256)])
            << i << " x" << GetParam() << " on " << target.cpu;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, Lookups, ::testing::Values(1, 3, 8, 16, 32, 48, 64, 96, 128));

TEST(LookupCode, HasInstructionsWhereTheTargetHasThem) {
  using ::testing::ContainsRegex;
  using ::testing::HasSubstr;
  using ::testing::Not;
  for (const int lanes : {16, 64}) {
    EXPECT_THAT(assembly_of(lanes, "llvm -mcpu=znver4"), ContainsRegex("vperm[it]2b"));
    EXPECT_THAT(assembly_of(lanes, "llvm -mcpu=skylake-avx512"), Not(ContainsRegex("vperm[it]2b")));
    EXPECT_THAT(assembly_of(lanes, "llvm -mcpu=cortex-a72"), HasSubstr("tbx"));
  }
}

}  // namespace
}  // namespace tensormill::codegen_test
