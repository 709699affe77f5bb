#include "compiler/build/numbers/complex.h"

#include "compiler/build/compose.h"
#include "compiler/build/numbers/arithmetic.h"

namespace tensormill::build {

using V = ir::ValueId;

V paired(OpBuilder& builder, const Complex& x) {
  Compose c(builder);
  const int64_t last = builder.rank(x.real);
  return c.concat({c.unsqueeze(x.real, last), c.unsqueeze(x.imaginary, last)}, last);
}

Complex parts_of(OpBuilder& builder, V pairs) {
  Compose c(builder);
  const int64_t last = builder.rank(pairs) - 1;
  const auto part = [&](int64_t index) { return c.squeeze(c.slice(pairs, last, index, 1), last); };
  return {part(0), part(1)};
}

// R. Smith, "Algorithm 116: Complex division", 1962: by the larger part of the divisor, so that no square is
// too large or too small for the type.
Complex complex_quotient(OpBuilder& builder, const Complex& x, const Complex& y) {
  Compose c(builder);
  const V is_wide = c.binary("greater_equal", c.unary("abs", y.real), c.unary("abs", y.imaginary));
  const V large = c.where(is_wide, y.real, y.imaginary), small = c.where(is_wide, y.imaginary, y.real);
  const V first = c.where(is_wide, x.real, x.imaginary), second = c.where(is_wide, x.imaginary, x.real);
  const V is_zero = c.binary("equal", large, c.number(large, 0));
  const V ratio = c.div(small, c.where(is_zero, c.number(large, 1), large));
  const V by = c.add(large, c.mul(small, ratio));
  const V cross = c.sub(second, c.mul(first, ratio));
  const V real = c.div(c.add(first, c.mul(second, ratio)), by), imaginary = c.div(cross, by);
  return {real, c.where(is_wide, imaginary, c.unary("neg", imaginary))};
}

Complex complex_square(OpBuilder& builder, const Complex& x) {
  Compose c(builder);
  return {c.sub(c.mul(x.real, x.real), c.mul(x.imaginary, x.imaginary)),
          c.times(c.mul(x.real, x.imaginary), 2)};
}

// The larger part is that of a sum of two numbers of one sign; the other follows from it, so that neither
// loses digits.
Complex complex_root(OpBuilder& builder, const Complex& x) {
  Compose c(builder);
  const V zero = c.number(x.real, 0), size = hypotenuse(builder, x.real, x.imaginary);
  const V large = c.unary("sqrt", c.times(c.add(size, c.unary("abs", x.real)), 0.5));
  const V is_zero = c.binary("equal", large, zero);
  const V twice = c.where(is_zero, c.number(large, 1), c.times(large, 2));
  const V small = c.div(c.unary("abs", x.imaginary), twice);
  const V is_left = c.binary("less", x.real, zero);
  const V imaginary = c.where(is_left, large, small);
  const V is_below = c.binary("less", x.imaginary, zero);
  return {c.where(is_left, small, large), c.where(is_below, c.unary("neg", imaginary), imaginary)};
}

Complex complex_of_polar(OpBuilder& builder, V length, V angle) {
  Compose c(builder);
  return {c.mul(length, c.unary("cos", angle)), c.mul(length, c.unary("sin", angle))};
}

Complex complex_exponential(OpBuilder& builder, const Complex& x) {
  return complex_of_polar(builder, Compose(builder).unary("exp", x.real), x.imaginary);
}

Complex complex_logarithm(OpBuilder& builder, const Complex& x) {
  return {Compose(builder).unary("log", hypotenuse(builder, x.real, x.imaginary)),
          atan2(builder, x.imaginary, x.real)};
}

Complex conjugate(OpBuilder& builder, const Complex& x) {
  return {x.real, Compose(builder).unary("neg", x.imaginary)};
}

}  // namespace tensormill::build
