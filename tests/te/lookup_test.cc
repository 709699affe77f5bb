// Lookups in tables of bytes: folding, text, equality, interpretation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/te/interpret.h"
#include "compiler/te/simplify.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

using HostTensor = tensormill::Tensor;
using SharedTable = std::shared_ptr<const ByteTable>;

SharedTable table_of(size_t factor) {
  ByteTable table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(i * factor + 3);
  return std::make_shared<const ByteTable>(table);
}

/// y[i] = table[x[i]] in vectors of 64.
Function looked_up(const SharedTable& table) {
  const Buffer x = make_buffer("x", DType::kUInt8, {Expr(256)}, Scope::kParameter);
  const Buffer y = make_buffer("y", DType::kUInt8, {Expr(256)}, Scope::kParameter);
  Function function;
  function.name = "looked_up";
  function.parameters = {{x, false}, {y, true}};
  const Var i = make_var("i");
  const Expr lanes = ramp(Expr(i) * 64, 1, 64);
  function.body =
      make_for(i, 0, 4, ForKind::kSerial, make_store(y, {lanes}, lookup(load(x, {lanes}), table)));
  return function;
}

void expect_looked_up(const Function& function, const ByteTable& table) {
  std::vector<HostTensor> arguments = {HostTensor(DType::kUInt8, {256}), HostTensor(DType::kUInt8, {256})};
  for (int64_t i = 0; i < 256; ++i) arguments[0].set_element_int(i, i * 7 % 256);
  ASSERT_EQ(interpret(function, arguments).code, 0);
  for (int64_t i = 0; i < 256; ++i)
    EXPECT_EQ(arguments[1].element_as_int(i), table[static_cast<size_t>(i * 7 % 256)]) << i;
}

TEST(Lookup, ConstantsAreFolded) {
  const SharedTable table = table_of(5);
  EXPECT_EQ(print(lookup(int_imm(DType::kUInt8, 2), table)), "13:u8");
  EXPECT_EQ(print(lookup(int_imm(DType::kUInt8, 255, 16), table)), "254:u8x16");
}

TEST(Lookup, TakesBytesAndATable) {
  EXPECT_THROW(lookup(int_imm(DType::kInt8, 2), table_of(5)), InternalError);
  EXPECT_THROW(lookup(Expr(2), table_of(5)), InternalError);
  EXPECT_THROW(lookup(int_imm(DType::kUInt8, 2), nullptr), InternalError);
  EXPECT_THROW(make(ExprOp::kLookup, {int_imm(DType::kUInt8, 2)}), InternalError);
}

TEST(Lookup, TextHasTheTable) {
  const Function function = looked_up(table_of(5));
  const std::string text = print(function);
  EXPECT_THAT(text, ::testing::HasSubstr("lookup.t03080d"));
  const Function parsed = parse_function(text);
  EXPECT_EQ(print(parsed), text);
  expect_looked_up(parsed, *table_of(5));
  for (const char* wrong : {"t03", "03", "x", "t"}) {
    const std::string bad =
        "function f { out b: u8[4] body { b[0] = lookup." + std::string(wrong) + "(b[0]) } }";
    EXPECT_THROW(parse_function(bad), Error) << bad;
  }
}

TEST(Lookup, TablesAreEqualByTheirBytes) {
  const Expr index(make_var("i", DType::kUInt8));
  EXPECT_TRUE(equal(lookup(index, table_of(5)), lookup(index, table_of(5))));
  EXPECT_FALSE(equal(lookup(index, table_of(5)), lookup(index, table_of(7))));
  // Places that differ in their tables alone are different.
  const auto at = [&](size_t factor) { return cast(DType::kInt64, lookup(index, table_of(factor))); };
  EXPECT_TRUE(is_int(simplify(at(5) - at(5)), 0));
  EXPECT_FALSE(is_const(simplify(at(5) - at(7))));
}

TEST(Lookup, RunsAndStaysWhenRewritten) {
  const SharedTable table = table_of(11);
  Function function = looked_up(table);
  expect_looked_up(function, *table);
  function.body = simplify(function.body);
  expect_looked_up(function, *table);
  const Var i = make_var("i", DType::kUInt8);
  EXPECT_EQ(print(substitute(lookup(Expr(i), table), i, int_imm(DType::kUInt8, 1))), "14:u8");
}

}  // namespace
}  // namespace tensormill::te
