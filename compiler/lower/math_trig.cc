// Circular functions and their inverses.
#include <iterator>

#include "compiler/lower/math.h"
#include "compiler/lower/math_tables.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;

namespace {

constexpr double kHalfPi = 1.5707963267948966;
constexpr double kHalfPiLow = 6.123233995736766e-17;

// x - n * pi/2 in two parts; n rounds x / (pi/2).
struct Reduced {
  Expr high, low;
  Expr quadrant;  // n modulo 4 in the low bits
};

// Past the range the result is some number in [-1, 1], never garbage.
Expr limited(const Expr& part, double bound) {
  return te::max(te::min(part, f64(part, bound)), f64(part, -bound));
}

Rounded quarter_turns(const Expr& x) { return round_small(x * f64(x, 0.6366197723675814)); }

// For an x of 24 bits: the first two differences are exact while |n| < 2^31, since pi/2 is in 22-bit parts;
// the third rounds at 2^-66, and no such x is nearly as close to a multiple of pi/2.
Reduced reduce_narrow(const Expr& x) {
  static constexpr double kParts[] = {0x1.921fbp+0, 0x1.5110bp-22, 0x1.184698p-44};
  static constexpr double kRest = 2.0222662487959506e-21;
  const Rounded n = quarter_turns(x);
  const Expr a = (x - n.value * f64(x, kParts[0])) - n.value * f64(x, kParts[1]);
  const Expr high = a - (n.value * f64(x, kParts[2]) + n.value * f64(x, kRest));
  return {limited(high, kHalfPi / 2), f64(x, 0), n.bits};
}

Reduced reduce(const Expr& x, const MathContext& context) {
  if (context.narrow) return reduce_narrow(x);
  // pi/2 in 33-bit parts: n * part is exact while |n| < 2^20.
  static constexpr double kParts[] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                                      2.02226624871116645580e-21};
  static constexpr double kRest = 8.47842766036889956997e-32;
  const Rounded n = quarter_turns(x);
  const Expr a = x - n.value * f64(x, kParts[0]);
  // Two-term subtractions keep what the difference loses.
  const Expr w1 = n.value * f64(x, kParts[1]);
  const Expr b = a - w1;
  const Expr b_low = (a - b) - w1;
  const Expr w2 = n.value * f64(x, kParts[2]) + n.value * f64(x, kRest);
  const Expr low_sum = b_low - w2;
  const Expr high = b + low_sum;
  const Expr low = (b - high) + low_sum;
  return {limited(high, 0.7853981633974484), limited(low, 1e-15), n.bits};
}

Expr sine_part(const Reduced& r, const MathContext& context) {
  static constexpr double kSin[] = {-1.0 / 6,
                                    1.0 / 120,
                                    -1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800.0,
                                    -1.0 / 1307674368000.0,
                                    1.0 / 355687428096000.0};
  const Expr z = r.high * r.high;
  const Expr tail = polynomial(z, kSin, std::size(kSin), context);
  return r.high + (multiply_add(r.high * z, tail, r.low, context));
}

Expr cosine_part(const Reduced& r, const MathContext& context) {
  static constexpr double kCos[] = {1.0 / 24,
                                    -1.0 / 720,
                                    1.0 / 40320,
                                    -1.0 / 3628800,
                                    1.0 / 479001600,
                                    -1.0 / 87178291200.0,
                                    1.0 / 20922789888000.0,
                                    -1.0 / 6402373705728000.0};
  const Expr z = r.high * r.high;
  const Expr half = z * f64(z, 0.5);
  const Expr first = f64(z, 1) - half;
  const Expr lost = (f64(z, 1) - first) - half;
  const Expr tail = polynomial(z, kCos, std::size(kCos), context);
  return first + (z * z * tail + (lost - r.high * r.low));
}

// Whether bit `bit` of the quadrant is set.
Expr quadrant_bit(const Expr& quadrant, int bit) {
  const Expr masked = te::make(ExprOp::kBitAnd, {quadrant, i64(quadrant, int64_t{1} << bit)});
  return masked != i64(quadrant, 0);
}

Expr select_quadrant(const Expr& x, const Reduced& r, const Expr& quadrant, const MathContext& context) {
  const Expr value = te::select(quadrant_bit(quadrant, 0), cosine_part(r, context), sine_part(r, context));
  const Expr signed_value = te::select(quadrant_bit(quadrant, 1), -value, value);
  return te::select(x == f64(x, 0), te::select(quadrant_bit(quadrant, 0), signed_value, x), signed_value);
}

// asin(x)/x - 1 for |x| <= 1/2 is z * polynomial(z).
Expr asin_small(const Expr& x, const Expr& z, const MathContext& context) {
  return multiply_add(x * z, polynomial(z, kAsin, std::size(kAsin), context), x, context);
}

}  // namespace

Expr math_sin(const Expr& x, const MathContext& context) {
  const Reduced r = reduce(x, context);
  return select_quadrant(x, r, r.quadrant, context);
}

Expr math_cos(const Expr& x, const MathContext& context) {
  const Reduced r = reduce(x, context);
  return select_quadrant(x, r, r.quadrant + i64(x, 1), context);
}

Expr math_tan(const Expr& x, const MathContext& context) {
  const Reduced r = reduce(x, context);
  const Expr sine = sine_part(r, context), cosine = cosine_part(r, context);
  const Expr turned = quadrant_bit(r.quadrant, 0);
  const Expr value = te::select(turned, -cosine, sine) / te::select(turned, sine, cosine);
  return te::select(x == f64(x, 0), x, value);
}

Expr math_atan(const Expr& x, const MathContext& context) {
  const Expr size = magnitude(x), one = f64(x, 1);
  const Expr large = size > f64(x, 2.414213562373095), middle = size > f64(x, 0.41421356237309503);
  const Expr finite = te::min(size, f64(x, 1e300));
  const Expr numerator = te::select(large, f64(x, -1), te::select(middle, finite - one, finite));
  const Expr denominator = te::select(large, finite, te::select(middle, finite + one, one));
  const Expr r = numerator / denominator;
  const Expr z = r * r;
  const Expr value = r * polynomial(z, kAtan, std::size(kAtan), context);
  const Expr base = te::select(large, f64(x, kHalfPi), te::select(middle, f64(x, kHalfPi / 2), f64(x, 0)));
  const Expr low =
      te::select(large, f64(x, kHalfPiLow), te::select(middle, f64(x, kHalfPiLow / 2), f64(x, 0)));
  return te::select(x == x, with_sign(base + (value + low), x), x);
}

Expr math_asin(const Expr& x, const MathContext& context) {
  const Expr size = magnitude(x);
  const Expr z = (f64(x, 1) - size) * f64(x, 0.5);
  const Expr root = te::make(ExprOp::kSqrt, {z});
  const Expr near_one = f64(x, kHalfPi) - (asin_small(root, z, context) * f64(x, 2) - f64(x, kHalfPiLow));
  const Expr small = asin_small(x, x * x, context);
  // NaN outside [-1, 1] comes from the root.
  return te::select(size <= f64(x, 0.5), small,
                    te::select(near_one == near_one, with_sign(near_one, x), near_one));
}

Expr math_acos(const Expr& x, const MathContext& context) {
  const Expr size = magnitude(x);
  const Expr z = (f64(x, 1) - size) * f64(x, 0.5);
  const Expr root = te::make(ExprOp::kSqrt, {z});
  const Expr twice = asin_small(root, z, context) * f64(x, 2);
  const Expr outer = te::select(x < f64(x, 0), f64(x, 2 * kHalfPi) - (twice - f64(x, 2 * kHalfPiLow)), twice);
  const Expr small = f64(x, kHalfPi) - (asin_small(x, x * x, context) - f64(x, kHalfPiLow));
  return te::select(size <= f64(x, 0.5), small, outer);
}

}  // namespace tensormill::lower
