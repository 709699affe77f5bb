/// Values at the middle of two quanta: a right kernel may round them to either, and what is wrong by a
/// quantum or more elsewhere is found. Each kernel is compiled for this machine and compared with the
/// reference.
#include "compiler/driver/element_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "tests/driver/one_kernel.h"

namespace tensormill::driver_test::element_bounds {
namespace {

using Words = std::map<std::string, std::string>;

std::string filled(std::string text, const Words& words) {
  for (const auto& [name, value] : words) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  }
  return text;
}

/// Whether the code of `made` passes for what `wanted` is.
bool passes_for(const OneKernel& wanted, const OneKernel& made) {
  try {
    driver::verify_kernel(wanted.kernel, made.entry(), made.workspace, wanted.given);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kWrongAnswer) << error.message();
    return false;
  }
  return true;
}

const char* const kOut = R"(
  %q: f32[SHAPE] = div(%r, %scale)
  %n: f32[SHAPE] = ROUND(%q)
  %m: f32[SHAPE] = add(%n, %zero)
  %y: TYPE[SHAPE] = cast(%m) {to: TYPE}
  return %y
}
)";

/// Dequantizes bytes, applies INNER, which makes %r of %d, and quantizes.
std::string dequantized(const std::string& shape, const std::string& inner) {
  return "(%x: TYPE[" + shape + R"(]) {
  %xzero = const f32[] {XZERO}
  %xscale = const f32[] {0.02}
  %scale = const f32[SCALES
  %zero = const f32[ZEROS
  %w: f32[)" +
         shape + "] = cast(%x) {to: f32}\n  %c: f32[" + shape + "] = sub(%w, %xzero)\n  %d: f32[" + shape +
         "] = mul(%c, %xscale)\n" + inner + kOut;
}

/// INNER of floats: what has several operators of its own does not take dequantization into its kernel.
std::string quantized(const std::string& shape, const std::string& inner) {
  return "(%d: f32[" + shape + R"(]) {
  %scale = const f32[SCALES
  %zero = const f32[ZEROS
)" + inner +
         kOut;
}

struct Form {
  const char* name;
  std::string body;
  std::string shape;
  std::string type;
  std::string scales, zeros;  ///< right
  std::string other_zeros;    ///< each by one more
  std::string other_scales;   ///< some hundredths more
};

std::vector<Form> forms() {
  const std::string mean =
      dequantized("16,12,8", "  %r: f32[SHAPE] = reduce_mean(%d) {axes: ints[2], keepdims: 1}\n");
  const std::string pool =
      quantized("2,6,8,8", "  %r: f32[SHAPE] = avg_pool(%d) {kernel: ints[2, 2], strides: ints[2, 2]}\n");
  const std::string softmax = quantized("16,8", "  %r: f32[SHAPE] = softmax(%d) {axis: 1}\n");
  return {
      {"mean", mean, "16,12,1", "u8", "] {0.0031}", "] {100.0}", "] {101.0}", "] {0.0035}"},
      {"signed_mean", mean, "16,12,1", "i8", "] {0.0031}", "] {-7.0}", "] {-6.0}", "] {0.0035}"},
      {"mean_by_channel", mean, "16,12,1", "u8",
       "12,1] {0.005, 0.0027, 0.0031, 0.005, 0.0027, 0.0031, 0.005, 0.0027, 0.0031, 0.005, 0.0027, 0.0031}",
       "12,1] {100.0, 90.0, 80.0, 70.0, 100.0, 90.0, 80.0, 70.0, 100.0, 90.0, 80.0, 70.0}", "", ""},
      {"pool", pool, "2,6,4,4", "u8", "] {0.03}", "] {120.0}", "] {121.0}", "] {0.033}"},
      {"softmax", softmax, "16,8", "u8", "] {0.00390625}", "] {0.0}", "] {1.0}", "] {0.0043}"},
  };
}

std::string text_of(const Form& form, const std::string& round, const std::string& scales,
                    const std::string& zeros) {
  return filled(form.body, {{"SHAPE", form.shape},
                            {"TYPE", form.type},
                            {"XZERO", form.type == "u8" ? "2.0" : "-3.0"},
                            {"SCALES", scales},
                            {"ZEROS", zeros},
                            {"ROUND", round}});
}

TEST(ElementBounds, RightKernelsWithTiesPassAndWrongOnesDoNot) {
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const auto right = one_kernel(text_of(form, "round", form.scales, form.zeros));
    EXPECT_TRUE(passes_for(*right, *right));
    EXPECT_FALSE(passes_for(*right, *one_kernel(text_of(form, "floor", form.scales, form.zeros))))
        << "rounds down";
    EXPECT_FALSE(passes_for(*right, *one_kernel(text_of(form, "ceil", form.scales, form.zeros))))
        << "rounds up";
    // Constants of several elements are operands: a kernel has none that could be wrong.
    if (form.other_zeros.empty()) continue;
    EXPECT_FALSE(passes_for(*right, *one_kernel(text_of(form, "round", form.scales, form.other_zeros))))
        << "one too many everywhere";
    EXPECT_FALSE(passes_for(*right, *one_kernel(text_of(form, "round", form.other_scales, form.zeros))))
        << "by another scale";
  }
}

/// quantize(leaky_relu(dequantize(quantize(conv)))) as one kernel: a tie of the inner pair is two quanta of
/// the outer one, whose scale is half as large.
std::string quantized_twice(const std::string& round, const std::string& zero, const std::string& scale) {
  std::string weights;
  for (int i = 0; i < 8 * 4 * 9; ++i)
    weights += (i == 0 ? "" : ", ") + std::to_string((i * 37 % 19 - 9) * 0.013);
  return filled(R"((%x: f32[1,4,12,12]) {
  %w = const f32[8,4,3,3] {WEIGHTS}
  %inner = const f32[] {0.013}
  %izero = const f32[] {11.0}
  %scale = const f32[] {OUTER}
  %zero = const f32[] {ZERO}
  %c: f32[SHAPE] = conv(%x, %w) {pads: ints[1, 1, 1, 1]}
  %a: f32[SHAPE] = div(%c, %inner)
  %b: f32[SHAPE] = round(%a)
  %e: f32[SHAPE] = add(%b, %izero)
  %f: i8[SHAPE] = cast(%e) {to: i8}
  %g: f32[SHAPE] = cast(%f) {to: f32}
  %h: f32[SHAPE] = sub(%g, %izero)
  %i: f32[SHAPE] = mul(%h, %inner)
  %r: f32[SHAPE] = leaky_relu(%i) {alpha: 0.1})" +
                    std::string(kOut),
                {{"WEIGHTS", weights},
                 {"OUTER", scale},
                 {"ZERO", zero},
                 {"SHAPE", "1,8,12,12"},
                 {"TYPE", "i8"},
                 {"ROUND", round}});
}

TEST(ElementBounds, ATieOfAnInnerQuantizationIsFollowedToTheResult) {
  const auto right = one_kernel(quantized_twice("round", "-5.0", "0.0065"));
  EXPECT_TRUE(passes_for(*right, *right));
  EXPECT_FALSE(passes_for(*right, *one_kernel(quantized_twice("round", "-4.0", "0.0065"))));
  EXPECT_FALSE(passes_for(*right, *one_kernel(quantized_twice("floor", "-5.0", "0.0065"))));
  EXPECT_FALSE(passes_for(*right, *one_kernel(quantized_twice("round", "-5.0", "0.0072"))));
}

constexpr int64_t kRows = 64, kTerms = 24;

/// y[i] = round(sum of row i / 0.05) as i8, and where the sum lies at a tie the other neighbour; `wrong`: in
/// one element two less.
template <bool wrong>
int32_t other_side_of_ties(const tm_call* call) {
  const auto* x = static_cast<const uint8_t*>(call->buffers[0]);
  auto* y = static_cast<int8_t*>(call->buffers[1]);
  for (int64_t i = 0; i < kRows; ++i) {
    int64_t sum = 0;
    for (int64_t k = 0; k < kTerms; ++k) sum += x[i * kTerms + k];
    // 0.025 / 0.05 is a half: of odd sums the result lies between two.
    const int64_t down = sum / 2, up = (sum + 1) / 2;
    y[i] = static_cast<int8_t>(down % 2 == 0 ? up : down);
  }
  if (wrong) y[kRows / 2] = static_cast<int8_t>(y[kRows / 2] - 2);
  return TM_OK;
}

TEST(ElementBounds, EitherSideOfATieIsRightAndTheNextOneIsNot) {
  const auto right = one_kernel(R"((%x: u8[64,24]) {
  %in = const f32[] {0.025}
  %out = const f32[] {0.05}
  %w: f32[64,24] = cast(%x) {to: f32}
  %d: f32[64,24] = mul(%w, %in)
  %s: f32[64] = reduce_sum(%d) {axes: ints[1], keepdims: 0}
  %q: f32[64] = div(%s, %out)
  %n: f32[64] = round(%q)
  %y: i8[64] = cast(%n) {to: i8}
  return %y
}
)");
  EXPECT_TRUE(passes_for(*right, *right));
  EXPECT_NO_THROW(driver::verify_kernel(right->kernel, &other_side_of_ties<false>, {}, right->given));
  EXPECT_THROW(driver::verify_kernel(right->kernel, &other_side_of_ties<true>, {}, right->given), Error);
}

constexpr uint8_t byte_of(int64_t place) { return static_cast<uint8_t>(place * 151); }

/// y[i] is byte_of(n + n + 2), n half of x[i] as the reference rounds it; where that is a tie one of them
/// goes to the other side. `wrong`: three places further where there is no tie.
template <bool wrong>
int32_t looked_up_beside_a_tie(const tm_call* call) {
  const auto* x = static_cast<const uint8_t*>(call->buffers[0]);
  auto* y = static_cast<uint8_t*>(call->buffers[1]);
  for (int64_t i = 0; i < kRows; ++i) {
    const int64_t far = wrong && x[i] % 2 == 0 ? 3 : 0;
    y[i] = byte_of(std::min<int64_t>(x[i] / 2 + (x[i] + 1) / 2 + 2 + far, 255));
  }
  return TM_OK;
}

TEST(ElementBounds, ATableRisesAndFallsBetweenTheEndsOfItsByte) {
  std::string table;
  for (int64_t i = 0; i < 256; ++i) table += (i == 0 ? "" : ", ") + std::to_string(byte_of(i));
  const auto right = one_kernel(filled(R"((%x: u8[64,1]) {
  %in = const f32[] {0.025}
  %out = const f32[] {0.05}
  %two = const f32[] {2.0}
  %w: f32[64,1] = cast(%x) {to: f32}
  %d: f32[64,1] = mul(%w, %in)
  %s: f32[64] = reduce_sum(%d) {axes: ints[1], keepdims: 0}
  %q: f32[64] = div(%s, %out)
  %n: f32[64] = round(%q)
  %a: f32[64] = add(%q, %two)
  %m: f32[64] = round(%a)
  %t: f32[64] = add(%n, %m)
  %p: u8[64] = cast(%t) {to: u8}
  %y: u8[64] = lookup(%p) {table: ints[TABLE], to: u8}
  return %y
}
)",
                                       {{"TABLE", table}}));
  EXPECT_TRUE(passes_for(*right, *right));
  EXPECT_NO_THROW(driver::verify_kernel(right->kernel, &looked_up_beside_a_tie<false>, {}, right->given));
  EXPECT_THROW(driver::verify_kernel(right->kernel, &looked_up_beside_a_tie<true>, {}, right->given), Error);
}

TEST(ElementBounds, KernelsWithoutInexactOperatorsHaveNone) {
  const auto steps = [](const std::string& body) {
    return driver::steps_behind_inexact(one_kernel(body)->kernel);
  };
  EXPECT_FALSE(
      steps("(%x: f32[4]) {\n  %n: f32[4] = round(%x)\n  %y: i8[4] = cast(%n) {to: i8}\n  return %y\n}\n"));
  EXPECT_FALSE(steps("(%x: f32[4]) {\n  %y: f32[4] = sigmoid(%x)\n  return %y\n}\n"));
  EXPECT_TRUE(
      steps("(%x: f32[4]) {\n  %n: f32[4] = sigmoid(%x)\n  %y: f32[4] = floor(%n)\n  return %y\n}\n"));
}

}  // namespace
}  // namespace tensormill::driver_test::element_bounds
