#include "runtime/host_ops/special.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

constexpr double kLastPlace = std::numeric_limits<double>::epsilon(),
                 kTiny = std::numeric_limits<double>::min() / kLastPlace,
                 kNone = std::numeric_limits<double>::quiet_NaN(),
                 kEndless = std::numeric_limits<double>::infinity();
/// Of arguments that are large a series needs some times a root of them. What has not ended by then is NaN.
constexpr int kMostTerms = 1 << 13;

/// log gamma of a positive number; std::lgamma writes a variable that threads share.
double log_gamma_of(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

/// x^a e^-x / gamma(a)
double gamma_front(double a, double x) { return std::exp(a * std::log(x) - x - log_gamma_of(a)); }

/// The lower function, for x < a + 1.
double gamma_series(double a, double x) {
  double term = 1 / a, sum = term, below = a;
  for (int i = 0; i < kMostTerms; ++i) {
    below += 1;
    term *= x / below;
    sum += term;
    if (std::fabs(term) <= std::fabs(sum) * kLastPlace) return sum * gamma_front(a, x);
  }
  return kNone;
}

/// A continued fraction as it grows (Lentz's method).
class Fraction {
public:
  explicit Fraction(double first) : value_(away_from_0(first)), above_(value_) {}
  /// The next numerator and denominator; whether the value moved.
  bool add(double numerator, double denominator) {
    below_ = 1 / away_from_0(denominator + numerator * below_);
    above_ = away_from_0(denominator + numerator / above_);
    const double change = above_ * below_;
    value_ *= change;
    return std::fabs(change - 1) > 4 * kLastPlace;
  }
  double value() const { return value_; }

private:
  static double away_from_0(double x) { return std::fabs(x) < kTiny ? kTiny : x; }
  double value_, above_, below_ = 0;
};

/// The upper function, for x >= a + 1.
double gamma_fraction(double a, double x) {
  Fraction fraction(x + 1 - a);
  for (int i = 1; i < kMostTerms; ++i)
    if (!fraction.add(-i * (i - a), x + 1 - a + 2.0 * i)) return gamma_front(a, x) / fraction.value();
  return kNone;
}

/// From where on the first two terms of Temme's expansion are all that there is to know (DLMF 8.12).
constexpr double kLargeGamma = 1e5;

/// Both functions of a large a; the coefficients near a by their powers (DLMF 8.12.10 and 8.12.13).
double gamma_uniform(double a, double x, bool is_upper) {
  const double off = (x - a) / a;
  double half = off - std::log1p(off);  // the square of `place`, halved
  if (std::fabs(off) < 0.01) {
    double power = 1, sum = 0;
    for (int k = 2; k < 12; ++k, power *= -off) sum += power / k;
    half = off * off * sum;
  }
  const double place = std::copysign(std::sqrt(2 * half), off), square = place * place;
  double first = 1 / off - 1 / place,
         second = 1 / (place * square) - (1 / off + 1) / (off * off) - 1 / (12 * off);
  if (std::fabs(place) < 0.05) {
    first = -1.0 / 3 + place * (1.0 / 12 + place * (-2.0 / 135 + place * (1.0 / 864 + place / 2835)));
    second = -1.0 / 540 + place * (-1.0 / 288 + place * 25 / 12096);
  }
  const double rest = std::exp(-a * half) / std::sqrt(2 * std::numbers::pi * a) * (first + second / a);
  const double side = is_upper ? 1 : -1;
  return std::erfc(side * place * std::sqrt(a / 2)) / 2 + side * rest;
}

double gamma_part(double a, double x, bool is_upper) {
  if (std::isnan(a) || std::isnan(x) || a <= 0 || x < 0) return kNone;
  if (x == 0 || std::isinf(a)) return std::isinf(x) ? kNone : is_upper ? 1 : 0;
  if (std::isinf(x)) return is_upper ? 0 : 1;
  if (a > kLargeGamma) return gamma_uniform(a, x, is_upper);
  const bool is_low = x < a + 1;
  const double part = is_low ? gamma_series(a, x) : gamma_fraction(a, x);
  return is_low == is_upper ? 1 - part : part;
}

double gamma_lower(const double* x) { return gamma_part(x[0], x[1], false); }
double gamma_upper(const double* x) { return gamma_part(x[0], x[1], true); }

/// For x below the mean, where it converges fast.
double beta_fraction(double a, double b, double x) {
  Fraction fraction(1);
  for (int i = 1; i < kMostTerms; ++i) {
    const double m = i / 2, even = a + 2 * m;
    const double numerator =
        i % 2 == 0 ? m * (b - m) * x / ((even - 1) * even) : -(a + m) * (a + b + m) * x / (even * (even + 1));
    if (!fraction.add(numerator, 1)) return 1 / fraction.value();
  }
  return kNone;
}

double beta_part(const double* given) {
  const double a = given[0], b = given[1], x = given[2];
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b)) return kNone;
  if (x == 0 || x == 1) return x;
  const double front = std::exp(a * std::log(x) + b * std::log1p(-x) + log_gamma_of(a + b) - log_gamma_of(a) -
                                log_gamma_of(b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// (2k)! / B(2k) from k = 1 on.
constexpr std::array kEulerMaclaurin = {12.0,
                                        -720.0,
                                        30240.0,
                                        -1209600.0,
                                        47900160.0,
                                        -1307674368000.0 / 691,
                                        74724249600.0,
                                        -10670622842880000.0 / 3617,
                                        5109094217170944000.0 / 43867,
                                        -802857662698291200000.0 / 174611,
                                        14101100039391805440000.0 / 77683,
                                        -1693824136731743669452800000.0 / 236364091};

/// Of x > 1, q > 0.
double zeta_sum(double x, double q) {
  if (std::isinf(x)) return q > 1 ? 0 : q == 1 ? 1 : kEndless;
  double sum = 0, place = q;
  for (; place < 10; place += 1) {
    const double term = std::pow(place, -x);
    sum += term;
    if (term <= sum * kLastPlace) return sum;
  }
  double term = std::pow(place, -x);
  sum += term * place / (x - 1) + term / 2;
  double factor = x;
  for (size_t k = 0; k < kEulerMaclaurin.size(); ++k) {
    term /= place;
    const double part = factor * term / kEulerMaclaurin[k];
    sum += part;
    if (std::fabs(part) <= std::fabs(sum) * kLastPlace) break;
    const double next = x + 2 * static_cast<double>(k) + 1;
    factor *= next * (next + 1);
    term /= place;
  }
  return sum;
}

double hurwitz(double x, double q) {
  if (std::isnan(x) || std::isnan(q) || x < 1) return kNone;
  if (x == 1) return kEndless;
  if (q > 0) return std::isinf(q) ? 0 : zeta_sum(x, q);
  const bool is_whole = x == std::floor(x), is_even = is_whole && std::fmod(x, 2) == 0;
  if (q == std::floor(q)) return is_even ? kEndless : kNone;
  if (!is_whole) return kNone;
  // The terms below 0 are those of other sums from above 0; the nearest one keeps its digits.
  const double below = -std::floor(q), nearest = 1 - below - q;
  const double mirrored = zeta_sum(x, nearest) - zeta_sum(x, nearest + below);
  return zeta_sum(x, q + below) + (is_even ? mirrored : -mirrored);
}

double digamma_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : kNone;
  if (x <= 0) {
    const double off = x - std::round(x);
    return off == 0 ? kNone : digamma_of(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * off);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  sum += std::log(x) - 1 / (2 * x);
  double power = 1;
  for (size_t k = 0; k < 7; ++k) {
    power /= x * x;
    // B(2k) / 2k is (2k - 1)! by the numbers above.
    sum -= std::tgamma(2 * static_cast<double>(k) + 2) / kEulerMaclaurin[k] * power;
  }
  return sum;
}

double polygamma(const double* given) {
  const double n = given[0], x = given[1];
  if (!(n >= 0) || n != std::floor(n) || std::isnan(x)) return kNone;
  if (n == 0) return digamma_of(x);
  const double size = std::tgamma(n + 1) * hurwitz(n + 1, x);
  return std::fmod(n, 2) == 0 ? -size : size;
}

double zeta_of_two(const double* given) { return hurwitz(given[0], given[1]); }

/// Bessel's modified functions of the orders 0 and 1: x^order times the sum over k of (x^2/4)^k / (k! (k +
/// order)!), divided by e^x where it is `is_scaled`. Of large x by Hankel's expansion (DLMF 10.40).
constexpr double kLargeBessel = 30;

/// The sum of Hankel's expansion, whose terms have the signs of `sign`^k.
double hankel_sum(int order, double x, double sign) {
  double term = 1, sum = 1;
  for (int k = 1; k < 2 * kLargeBessel && std::fabs(term) > kLastPlace; ++k) {
    const double odd = 2 * k - 1;
    term *= sign * (4.0 * order * order - odd * odd) / (8 * x * k);
    sum += term;
  }
  return sum;
}

template <int kOrder, bool is_scaled>
double bessel_i(const double* given) {
  const double x = std::fabs(given[0]);
  const double turned_sign = kOrder == 1 && given[0] < 0 ? -1 : 1;
  if (x > kLargeBessel) {
    const double size = hankel_sum(kOrder, x, -1) / std::sqrt(2 * std::numbers::pi * x);
    return turned_sign * size * (is_scaled ? 1 : std::exp(x));
  }
  double term = kOrder == 1 ? x / 2 : 1, sum = term;
  for (int k = 1; k < kMostTerms && term > sum * kLastPlace; ++k) {
    term *= x * x / (4.0 * k * (k + kOrder));
    sum += term;
  }
  return turned_sign * sum * (is_scaled ? std::exp(-x) : 1);
}

template <int kOrder, bool is_scaled>
double bessel_k(const double* given) {
  const double x = given[0];
  // Below 0, where there are none, the limit at 0, as Eigen has it.
  if (x <= 0) return kEndless;
  if (std::isnan(x)) return kNone;
  // Of numbers whose inverse is no number the library's loop does not end; what is left is the first term.
  if (x < std::numeric_limits<double>::min())
    return kOrder == 1 ? 1 / x : std::numbers::ln2 - std::numbers::egamma - std::log(x);
  if (x > kLargeBessel)
    return hankel_sum(kOrder, x, 1) * std::sqrt(std::numbers::pi / (2 * x)) * (is_scaled ? 1 : std::exp(-x));
  return std::cyl_bessel_k(kOrder, x) * (is_scaled ? std::exp(x) : 1);
}

double bessel_j0(const double* x) { return j0(*x); }
double bessel_j1(const double* x) { return j1(*x); }
double bessel_y0(const double* x) { return *x <= 0 ? -kEndless : y0(*x); }
double bessel_y1(const double* x) { return *x <= 0 ? -kEndless : y1(*x); }

struct Special {
  std::string_view name;
  size_t operands;
  double (*function)(const double* operands);
};

constexpr std::array kSpecial = {Special{"gamma_lower", 2, &gamma_lower},
                                 Special{"gamma_upper", 2, &gamma_upper},
                                 Special{"beta", 3, &beta_part},
                                 Special{"zeta", 2, &zeta_of_two},
                                 Special{"polygamma", 2, &polygamma},
                                 Special{"bessel_i0", 1, &bessel_i<0, false>},
                                 Special{"bessel_i0e", 1, &bessel_i<0, true>},
                                 Special{"bessel_i1", 1, &bessel_i<1, false>},
                                 Special{"bessel_i1e", 1, &bessel_i<1, true>},
                                 Special{"bessel_k0", 1, &bessel_k<0, false>},
                                 Special{"bessel_k0e", 1, &bessel_k<0, true>},
                                 Special{"bessel_k1", 1, &bessel_k<1, false>},
                                 Special{"bessel_k1e", 1, &bessel_k<1, true>},
                                 Special{"bessel_j0", 1, &bessel_j0},
                                 Special{"bessel_j1", 1, &bessel_j1},
                                 Special{"bessel_y0", 1, &bessel_y0},
                                 Special{"bessel_y1", 1, &bessel_y1}};

const Special* special_of(std::string_view name) {
  const auto found =
      std::find_if(kSpecial.begin(), kSpecial.end(), [&](const Special& each) { return each.name == name; });
  return found == kSpecial.end() ? nullptr : &*found;
}

}  // namespace

size_t special_operands(std::string_view name) {
  const Special* found = special_of(name);
  return found == nullptr ? 0 : found->operands;
}

void special_function(const HostCall& call) {
  const Special* found = special_of(Attributes(call).text("name"));
  if (found == nullptr) throw Error(ErrorCode::kInvalidPackage, "a host step has no such function");
  expect(call, found->operands, 1);
  const Shape& shape = call.inputs[0].shape;
  for (const TensorView& input : call.inputs)
    if (input.dtype != DType::kFloat64 || input.shape != shape)
      throw Error(ErrorCode::kInvalidPackage,
                  "a host step takes functions of what are no float64 of one shape");
  const auto count = static_cast<size_t>(num_elements(shape));
  auto* out = static_cast<double*>(storage(call, 0, count, sizeof(double)));
  std::array<double, 3> operands = {};
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < found->operands; ++k)
      operands[k] = static_cast<const double*>(call.inputs[k].data)[i];
    out[i] = found->function(operands.data());
  }
}

}  // namespace tensormill::host_ops
