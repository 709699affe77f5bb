#include "compiler/te/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "compiler/te/interpret.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"
#include "tests/te/random_function.h"

namespace tensormill::te {
namespace {

using HostTensor = tensormill::Tensor;

constexpr const char* kFunction = R"(function conv {
  dims n
  in a: f32[4, n]
  in w: i8[4] alias 2
  out b: f32[4, (n * 2)] alias 2
  workspace 128 64
  body {
    parallel i = 0, 4 {
      allocate t: f32[16] register {
        allocate u: f64[16] worker at 64 {
          t[ramp.8(0, 1)] = broadcast.8(a[i, 0])
          t[ramp.8(8, 1); (ramp.8(0, 1) < broadcast.8(n))] = t[ramp.8(0, 1); true:boolx8]
          let v: f32x8 = (t[ramp.8(0, 1)] * -0.5:f32x8) {
            unrolled j = 0, 8 {
              if ((i < 3) & not((j == 2))) {
                b[i, j] = fma(lane_add(v), cast.f32(w[i]), select((j < 2), inf:f32, 1e-05:f32))
              } else {
                b[i, check_index(cast.i64(w[i]), n)] = nan:f32
              }
            }
          }
        }
      }
    }
    vectorized i = 1, floordiv(n, 4) {
      b[0, i] = reinterpret.f32((cast.i32(i) << 3:i32))
    }
  }
}
)";

TEST(Text, FunctionRoundTrip) { EXPECT_EQ(print(parse_function(kFunction)), kFunction); }

TEST(Text, NamesAreMadeUnique) {
  const Var a = make_var("x"), b = make_var("x"), reserved = make_var("min"), odd = make_var("3-d");
  EXPECT_EQ(print(Expr(a) + b * reserved + odd), "((x + (x_1 * min_1)) + v3_d)");
}

TEST(Text, ConstantsKeepTheirTypes) {
  EXPECT_EQ(print(int_imm(DType::kUInt64, -1)), "18446744073709551615:u64");
  EXPECT_EQ(print(int_imm(DType::kInt8, -128, 4)), "-128:i8x4");
  EXPECT_EQ(print(float_imm(DType::kFloat32, 0.1)), "0.1:f32");
  EXPECT_EQ(print(float_imm(DType::kFloat64, 0.1)), "0.1:f64");
  EXPECT_EQ(print(float_imm(DType::kFloat32, -0.0)), "-0:f32");
  EXPECT_EQ(print(float_imm(DType::kFloat16, 65520)), "inf:f16");
  EXPECT_EQ(print(bool_imm(true)), "true");
  EXPECT_EQ(print(Expr(std::numeric_limits<int64_t>::min())), "-9223372036854775808");
}

TEST(Text, ProgramRoundTripIsCanonical) {
  const auto build = [](const std::string& prefix) {
    const Var n = make_var(prefix + "n");
    const Tensor a = placeholder(prefix + "a", DType::kFloat32, std::vector<Expr>{Expr(n), Expr(8)});
    const Tensor scaled = compute(prefix + "s", std::vector<Expr>{Expr(n), Expr(8)}, [&](const auto& i) {
      return read(a, {i[0], i[1]}) * float_imm(DType::kFloat32, 3);
    });
    const Tensor best = arg_reduce(prefix + "m", true, false, {4}, 8, [&](const auto& i, const Expr& r) {
      return read(scaled, {i[0], r});
    });
    const Tensor out = compute(prefix + "o", Shape{4}, [&](const auto& i) {
      return read(best, {i[0]}, 1) + cast(DType::kFloat32, read(best, {i[0]}));
    });
    return Program{{a}, {out, best}};
  };
  const std::string text = print(build("p_"));
  EXPECT_EQ(text, print(build("other")));
  EXPECT_EQ(text, R"(program {
  dims n0
  input p0: f32[n0, 8]
  compute s0[i0: n0, i1: 8] {
    f32 = (p0[i0, i1] * 3:f32)
  }
  reduce s1[i0: 4] over [r0: 8] {
    i64 source r0 identity 9223372036854775807
    f32 source s0[i0, r0] identity -inf:f32
    combine select((((b1 > a1) | ((b1 != b1) & not((a1 != a1)))) | (((b1 == a1) | ((b1 != b1) & (a1 != a1))) & (b0 < a0))), b0, a0)
    combine select((((b1 > a1) | ((b1 != b1) & not((a1 != a1)))) | (((b1 == a1) | ((b1 != b1) & (a1 != a1))) & (b0 < a0))), b1, a1)
  }
  compute s2[i0: 4] {
    f32 = (s1.1[i0] + cast.f32(s1[i0]))
  }
  output s2
  output s1
}
)");
  EXPECT_EQ(print(parse_program(text)), text);
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(Text, ErrorsHaveLineAndColumn) {
  const BadText cases[] = {
      {"function f {\n  out b: f32[4]\n  body {\n    b[i] = 1:f32\n  }\n}\n",
       "line 4, column 7: unknown name \"i\""},
      {"function f {\n  out b: f33[4]\n", "line 2, column 10: unknown type \"f33\""},
      {"function f {\n  out b: f32[4]\n  body {\n    c[0] = 1:f32\n",
       "line 4, column 5: unknown buffer \"c\""},
      {"function f { out b: f32[4] body { b[0] = (1:f32 + 2) } }", "line 1, column 54: "},
      {"function f { out b: f32[4] body { b[0] = 300:i8 } }", "line 1, column 42: \"300\" does not fit i8"},
      {"function f { out b: f32[4] body { b[0] = exp(1:f32, 2:f32) } }", "exp takes 1 args, not 2"},
      {"function f { out b: f32[4] body { b[0, 1] = 1:f32 } }", "load of b with 2 indices"},
      {"function f { out b: f32[4] body { b[0] = 1:f32 } } x",
       "line 1, column 52: expected the end, found \"x\""},
      {"function f { out b: f32[4] body { for i = 0, 4 { for i = 0, 4 { } } } }", "name \"i\" is in use"},
      {"function f { out b: f32[4] body { for min = 0, 4 { } } }", "\"min\" is a word of the language"},
      {"function f { out b: f32[4] body { b[ramp.9999(0, 1)] = 1:f32 } }",
       "number of lanes is not 2 to 4096"},
      {"function f { body { \"", "line 1, column 21: unexpected character"},
      {"program {\n  compute s[i: 4] {\n    f32 = 1\n  }\n}\n", "expected a value of type f32, found i64"},
      {"program { output s0 }", "unknown tensor \"s0\""},
  };
  for (const BadText& bad : cases) {
    try {
      if (std::strncmp(bad.text, "program", 7) == 0) {
        parse_program(bad.text);
      } else {
        parse_function(bad.text);
      }
      ADD_FAILURE() << bad.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.message(), ::testing::HasSubstr(bad.message)) << bad.text;
    }
  }
}

TEST(Text, DeepTextIsRefused) {
  const std::string deep = "function f { out b: i64[4] body { b[0] = " + std::string(100000, '(');
  EXPECT_THROW(parse_function(deep), Error);
}

std::vector<HostTensor> run(const Function& function) {
  std::vector<HostTensor> arguments;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    arguments.emplace_back(function.parameters[i].buffer->dtype, Shape{testing::RandomFunction::kExtent});
    for (int64_t at = 0; i < 2 && at < testing::RandomFunction::kExtent; ++at) {
      arguments[i].set_element(at, 0.375 * static_cast<double>(at * 7 % 11) - 1 + static_cast<double>(i));
    }
  }
  EXPECT_EQ(interpret(function, arguments).code, 0);
  return arguments;
}

void expect_same_bits(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b,
                      const std::string& text) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t at = 0; at < a[i].num_elements(); ++at) {
      const double x = a[i].element_as_double(at), y = b[i].element_as_double(at);
      const bool same = (x != x && y != y) || std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
      ASSERT_TRUE(same) << x << " and " << y << " at " << at << " of " << i << " in\n" << text;
    }
  }
}

class RandomText : public ::testing::TestWithParam<uint32_t> {};

// Printing, parsing and simplifying keep the text (the first two) and the results (all).
TEST_P(RandomText, RoundTripAndSimplification) {
  for (uint32_t round = 0; round < 40; ++round) {
    const Function function = testing::RandomFunction(GetParam() * 1000 + round).make();
    const std::string text = print(function);
    const Function parsed = parse_function(text);
    ASSERT_EQ(print(parsed), text);
    const std::vector<HostTensor> expected = run(function);
    expect_same_bits(run(parsed), expected, text);
    Function simplified = function;
    simplified.body = simplify(function.body);
    expect_same_bits(run(simplified), expected, text + "\nsimplified to\n" + print(simplified));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomText, ::testing::Range<uint32_t>(1, 9));

}  // namespace
}  // namespace tensormill::te
