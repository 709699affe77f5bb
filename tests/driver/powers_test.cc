/// Powers: those of integers wrap and are exact where they fit, those of float64 are exact where it holds
/// them. Casts to types of 16 bits round once. By machine code, interpreter and reference.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/dtype.h"
#include "tests/driver/one_kernel.h"

namespace tensormill::driver_test::powers {
namespace {

constexpr int64_t kCount = 4096;

/// All executors' results are `expected`, element by element.
template <typename Same>
void expect_all(const OneKernel& one, const std::vector<Tensor>& inputs, const Same& is_right) {
  const Tensor run = one.run(inputs), interpreted = one.interpret(inputs), reference = one.reference(inputs);
  int failures = 0;
  for (int64_t i = 0; i < run.num_elements() && failures < 5; ++i) {
    for (const Tensor* result : {&run, &interpreted, &reference}) {
      if (is_right(*result, i)) continue;
      ++failures;
      ADD_FAILURE() << "element " << i << " of "
                    << (result == &run           ? "the kernel"
                        : result == &interpreted ? "the interpreter"
                                                 : "the reference")
                    << " is " << result->element_as_double(i);
    }
  }
}

/// base^exponent modulo 2^64, one factor after the other.
uint64_t wrapped_power(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (uint64_t i = 0; i < exponent; ++i) power *= base;
  return power;
}

TEST(IntegerPowers, WrapInEveryTypeAndAreExactWhereTheyFit) {
  std::mt19937_64 random(1);
  for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kUInt32,
                            DType::kInt64, DType::kUInt64}) {
    const std::string type(dtype_name(dtype));
    SCOPED_TRACE(type);
    const auto one = one_kernel("(%x: " + type + "[4096], %e: " + type + "[4096]) {\n  %y: " + type +
                                "[4096] = pow(%x, %e)\n  return %y\n}\n");
    Tensor x(dtype, {kCount}), e(dtype, {kCount}), expected(dtype, {kCount});
    const bool is_signed = dtype_info(dtype).is_signed;
    for (int64_t i = 0; i < kCount; ++i) {
      const bool is_small = random() % 2 == 0;
      x.set_element_int(i, is_small ? static_cast<int64_t>(random() % 21) - (is_signed ? 10 : 0)
                                    : static_cast<int64_t>(random()));
      e.set_element_int(i, static_cast<int64_t>(random() % 70) - (is_signed && i % 8 == 0 ? 35 : 0));
      const int64_t base = x.element_as_int(i), exponent = e.element_as_int(i);
      int64_t power = base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
      if (exponent >= 0)
        power =
            static_cast<int64_t>(wrapped_power(static_cast<uint64_t>(base), static_cast<uint64_t>(exponent)));
      expected.set_element_int(i, power);
    }
    expect_all(*one, {x, e}, [&](const Tensor& result, int64_t i) {
      return result.element_as_int(i) == expected.element_as_int(i);
    });
  }
}

TEST(IntegerPowers, OfLargeExponentsWrap) {
  const auto one = one_kernel("(%x: i64[4], %e: i64[4]) {\n  %y: i64[4] = pow(%x, %e)\n  return %y\n}\n");
  Tensor x(DType::kInt64, {4}), e(DType::kInt64, {4});
  const int64_t bases[] = {3, -1, 2, 7},
                exponents[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX, int64_t{1} << 40};
  for (int64_t i = 0; i < 4; ++i) {
    x.set_element_int(i, bases[i]);
    e.set_element_int(i, exponents[i]);
  }
  // 3 (3^(2^62 - 1))^2 with 3^(2^62) = 1 modulo 2^64: the inverse of 3; 7^(2^40) by squaring.
  uint64_t seven = 7;
  for (int i = 0; i < 40; ++i) seven *= seven;
  const auto inverse = static_cast<int64_t>(0xaaaaaaaaaaaaaaabull);
  const int64_t expected[] = {inverse, 1, 0, static_cast<int64_t>(seven)};
  expect_all(*one, {x, e},
             [&](const Tensor& result, int64_t i) { return result.element_as_int(i) == expected[i]; });
}

TEST(IntegerPowers, ByAConstantAreProducts) {
  const auto one = one_kernel(
      "(%x: i64[4096]) {\n  %e = const i64[] {5}\n  %y: i64[4096] = pow(%x, %e)\n  return %y\n}\n");
  Tensor x(DType::kInt64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) x.set_element_int(i, i * 977 - 2'000'000);
  expect_all(*one, {x}, [&](const Tensor& result, int64_t i) {
    return static_cast<uint64_t>(result.element_as_int(i)) ==
           wrapped_power(static_cast<uint64_t>(x.element_as_int(i)), 5);
  });
}

TEST(Powers, OfDoublesAreExactWhereADoubleHoldsThem) {
  std::vector<double> bases, exponents, expected;
  for (int64_t base = 2; base < 300; ++base) {
    double power = 1;
    for (int64_t exponent = 1; power * static_cast<double>(base) <= 0x1p53; ++exponent) {
      power *= static_cast<double>(base);
      for (const double sign : {1.0, -1.0}) {
        bases.push_back(sign * static_cast<double>(base));
        exponents.push_back(static_cast<double>(exponent));
        expected.push_back(exponent % 2 == 0 ? power : sign * power);
      }
      // Its root is exact, too: an exponent that is a power of two.
      if (exponent == 2 || exponent == 4) {
        bases.push_back(power);
        exponents.push_back(1.0 / static_cast<double>(exponent));
        expected.push_back(static_cast<double>(base));
      }
    }
  }
  const auto count = static_cast<int64_t>(bases.size());
  const std::string shape = "f64[" + std::to_string(count) + "]";
  const auto one = one_kernel("(%x: " + shape + ", %e: " + shape + ") {\n  %y: " + shape +
                              " = pow(%x, %e)\n  return %y\n}\n");
  const std::vector<Tensor> inputs = {Tensor::from<double>({count}, bases),
                                      Tensor::from<double>({count}, exponents)};
  expect_all(*one, inputs, [&](const Tensor& result, int64_t i) {
    return result.element_as_double(i) == expected[static_cast<size_t>(i)];
  });
}

/// The nearest value of a type of 16 bits, of two the even one, by trying its values around `value`.
template <typename Decode>
uint16_t nearest(long double value, uint16_t infinity, const Decode& decode) {
  uint16_t low = 0, high = infinity;
  const long double size = std::fabs(value);
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (static_cast<long double>(decode(middle)) <= size ? low : high) = middle;
  }
  const double below = static_cast<double>(decode(low));
  // What follows the largest number in its own steps is where infinity begins, for rounding.
  const double above = high == infinity
                           ? 2 * below - static_cast<double>(decode(static_cast<uint16_t>(low - 1)))
                           : static_cast<double>(decode(high));
  const long double to_low = size - below, to_high = above - size;
  const uint16_t chosen = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

/// Numbers next to the middle of two neighbours, by less than float32 tells.
std::vector<double> near_ties(float (*decode)(uint16_t), uint16_t infinity) {
  std::mt19937_64 random(3);
  std::vector<double> values = {
      0,      -0.0,   1 + 0x1p-11 + 0x1p-40, 65519.99999999999, 65520, 1e300, -1e300,
      1e-300, 5e-324, 3.4028235677973366e38};
  while (values.size() < static_cast<size_t>(kCount)) {
    const auto bits = static_cast<uint16_t>(random() % (infinity - 1u));
    const double a = static_cast<double>(decode(bits)),
                 b = static_cast<double>(decode(static_cast<uint16_t>(bits + 1)));
    double value = a + (b - a) / 2;
    const uint64_t kind = random() % 4;
    if (kind == 1) value = std::nextafter(value, 0.0);
    if (kind == 2) value = std::nextafter(value, 1e300);
    if (kind == 3) value *= 1 + static_cast<double>(random() % 1000) * 0x1p-40;
    values.push_back(random() % 2 == 0 ? value : -value);
  }
  return values;
}

struct Narrow {
  const char* name;
  DType dtype;
  float (*decode)(uint16_t);
  uint16_t infinity;
};
constexpr Narrow kNarrow[] = {{"f16", DType::kFloat16, &half_to_float, 0x7c00},
                              {"bf16", DType::kBFloat16, &bfloat16_to_float, 0x7f80}};

TEST(NarrowingCasts, OfDoublesRoundOnce) {
  for (const Narrow& to : kNarrow) {
    for (const char* target : {"", "llvm -mcpu=x86-64"}) {
      SCOPED_TRACE(std::string(to.name) + " " + target);
      const std::vector<double> values = near_ties(to.decode, to.infinity);
      const auto one = one_kernel("(%x: f64[4096]) {\n  %y: " + std::string(to.name) +
                                      "[4096] = cast(%x) {to: " + to.name + "}\n  return %y\n}\n",
                                  target);
      expect_all(*one, {Tensor::from<double>({kCount}, values)}, [&](const Tensor& result, int64_t i) {
        const uint16_t wanted = nearest(values[static_cast<size_t>(i)], to.infinity, to.decode);
        return static_cast<const uint16_t*>(result.data())[i] == wanted;
      });
    }
  }
}

TEST(NarrowingCasts, OfIntegersRoundOnce) {
  std::mt19937_64 random(5);
  for (const DType from : {DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64}) {
    for (const Narrow& to : kNarrow) {
      const std::string type(dtype_name(from));
      SCOPED_TRACE(type + " to " + to.name);
      const DTypeInfo& info = dtype_info(from);
      Tensor x(from, {kCount});
      for (int64_t i = 0; i < kCount; ++i) {
        // A number, a tie behind its first bits, or that and one more or less.
        const int shift = static_cast<int>(random() % static_cast<uint64_t>(info.bits));
        uint64_t value = random() >> (64 - info.bits);
        if (i % 4 != 0) value = (((value & 0xff) | 0x80) * 2 + 1) << shift;
        value += i % 4 == 2 ? 1 : i % 4 == 3 ? ~uint64_t{0} : 0;
        x.set_element_int(i, static_cast<int64_t>(info.is_signed && i % 8 > 3 ? ~value + 1 : value));
      }
      const auto one = one_kernel("(%x: " + type + "[4096]) {\n  %y: " + to.name +
                                  "[4096] = cast(%x) {to: " + to.name + "}\n  return %y\n}\n");
      expect_all(*one, {x}, [&](const Tensor& result, int64_t i) {
        const long double value = info.is_signed
                                      ? static_cast<long double>(x.element_as_int(i))
                                      : static_cast<long double>(static_cast<uint64_t>(x.element_as_int(i)));
        const uint16_t wanted = nearest(value, to.infinity, to.decode);
        return static_cast<const uint16_t*>(result.data())[i] == wanted;
      });
    }
  }
}

/// The byte of f8e8m0 for an integer: 127 and the logarithm of the power of two that it becomes.
uint8_t power_code(uint64_t size, const std::string& mode) {
  if (size == 0) return 0;
  const int low = 63 - __builtin_clzll(size);
  const uint64_t rest = size - (uint64_t{1} << low);
  const bool is_above = mode == "up"        ? rest != 0
                        : mode == "nearest" ? low > 0 && rest >= uint64_t{1} << (low - 1)
                                            : false;
  return static_cast<uint8_t>(127 + low + (is_above ? 1 : 0));
}

TEST(NarrowingCasts, OfWideIntegersToPowersOfTwoRoundOnce) {
  std::mt19937_64 random(7);
  for (const DType from : {DType::kInt64, DType::kUInt64}) {
    for (const std::string mode : {"up", "down", "nearest"}) {
      const std::string type(dtype_name(from));
      SCOPED_TRACE(type + " " + mode);
      Tensor x(from, {kCount});
      for (int64_t i = 0; i < kCount; ++i) {
        // A power of two, or what is in the middle of two, and that with one more or less.
        const int shift = static_cast<int>(random() % (from == DType::kInt64 ? 61 : 62));
        uint64_t value = (i % 2 == 0 ? uint64_t{2} : uint64_t{3}) << shift;
        value += i % 6 < 2 ? 0 : i % 6 < 4 ? 1 : ~uint64_t{0};
        x.set_element_int(i, static_cast<int64_t>(from == DType::kInt64 && i % 8 > 3 ? ~value + 1 : value));
      }
      const auto one =
          one_kernel("(%x: " + type + "[4096]) {\n  %y: f8e8m0[4096] = cast(%x) {round_mode: \"" + mode +
                     "\", to: f8e8m0}\n  return %y\n}\n");
      expect_all(*one, {x}, [&](const Tensor& result, int64_t i) {
        const int64_t value = x.element_as_int(i);
        const auto bits = static_cast<uint64_t>(value);
        const uint64_t size = from == DType::kInt64 && value < 0 ? ~bits + 1 : bits;
        return static_cast<const uint8_t*>(result.data())[i] == power_code(size, mode);
      });
    }
  }
}

}  // namespace
}  // namespace tensormill::driver_test::powers
