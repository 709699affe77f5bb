#include "compiler/build/signal/fourier.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "compiler/build/compose.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

/// [in, out] matrices of the real and imaginary parts of e^(-+2 pi i k n / length), over `scale`.
struct Roots {
  std::vector<double> real, imaginary;
};

Roots make_roots(int64_t in, int64_t out, int64_t length, bool inverse) {
  Roots roots;
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1;
  for (int64_t n = 0; n < in; ++n) {
    for (int64_t k = 0; k < out; ++k) {
      const int64_t turned = n * k % length;
      const double angle = 2 * std::numbers::pi * static_cast<double>(turned) / static_cast<double>(length);
      // Quarters of a turn are exact: what is real there has no imaginary part, not even a small one, whose
      // sign would decide about an angle.
      const bool is_half = 2 * turned % length == 0, is_quarter = !is_half && 4 * turned % length == 0;
      roots.real.push_back(is_quarter ? 0 : scale * std::cos(angle));
      roots.imaginary.push_back(is_half ? 0 : scale * std::sin(angle) * (inverse ? 1 : -1));
    }
  }
  return roots;
}

/// Lengths up to which a transform is a product with a matrix: of 100 lines of 1,024 both take as long.
constexpr int64_t kMostByMatrix = 1024;

/// Whether a transform of x is a host step: where its length, or whether x is complex, is free, or where it
/// is too much for a matrix.
bool is_step(const OpBuilder& builder, V x, const ir::SymInt& length) {
  return !length.is_constant() || length.hint() > kMostByMatrix ||
         !builder.type(x).shape.back().is_constant();
}

/// What of a transform along `axis` the rest are conjugates of: a slice, also where it is all.
V first_half(OpBuilder& builder, V x, int64_t axis, const ir::SymInt& length) {
  ir::SymShape extents = builder.type(x).shape;
  extents[static_cast<size_t>(axis)] = half_of(length);
  return builder.add("slice", {x},
                     {{"starts", ir::SymShape(extents.size(), 0)},
                      {"extents", extents},
                      {"steps", ir::SymShape(extents.size(), 1)}});
}

/// The host's step for lines and a window [length], or kAbsent. `is_hermitian`: x is the half of its line;
/// the result is real, [..., length, 1].
V fourier_step(OpBuilder& builder, V x, V window, const ir::SymInt& length, bool is_inverse,
               bool is_hermitian) {
  Compose c(builder);
  const DType dtype = c.dtype(x), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  std::vector<V> operands{c.cast(x, wide),
                          window == ir::kAbsent ? c.filled(wide, {length}, 1) : c.cast(window, wide)};
  const V result = builder.add("fourier", std::move(operands),
                               {{"axis", builder.rank(x) - 2},
                                {"inverse", int64_t{is_inverse}},
                                {"hermitian", int64_t{is_hermitian}}});
  return c.cast(result, dtype);
}

}  // namespace

void check_parts(const OpBuilder& builder, const ir::SymInt& parts) {
  if (demand(ir::Relation::kLessEqual, 1, parts) && demand(ir::Relation::kLessEqual, parts, 2)) return;
  builder.invalid("the last axis has " + to_string(parts) + " elements, expected 1 (real) or 2 (complex)");
}

ir::SymInt half_of(const ir::SymInt& length) { return floordiv(length, 2) + 1; }

V fourier(OpBuilder& builder, V x, V window, const ir::SymInt& length, bool is_half, bool is_inverse) {
  Compose c(builder);
  const ir::SymInt out = is_half ? half_of(length) : length;
  const DType dtype = c.dtype(x);
  const ir::SymInt last = static_cast<int64_t>(c.shape(x).size()) - 1;
  const ir::SymInt parts = c.shape(x)[static_cast<size_t>(last)];
  check_parts(builder, parts);
  if (is_step(builder, x, length)) {
    const V whole = fourier_step(builder, x, window, length, is_inverse, false);
    return is_half ? first_half(builder, whole, last - 1, length) : whole;
  }
  const ir::SymInt in = min(c.shape(x)[static_cast<size_t>(last - 1)], length);
  x = c.slice(x, last - 1, 0, in);
  if (window != ir::kAbsent) x = c.mul(x, c.reshape(window, {length, 1}));
  const Roots roots = make_roots(in, out, length, is_inverse);
  const V cosine = c.doubles(dtype, roots.real, {in, out}),
          sine = c.doubles(dtype, roots.imaginary, {in, out});
  const V re = c.squeeze(c.slice(x, last, 0, 1), last);
  V real = c.matmul(re, cosine), imaginary = c.matmul(re, sine);
  if (parts == 2) {
    const V im = c.squeeze(c.slice(x, last, 1, 1), last);
    real = c.sub(real, c.matmul(im, sine));
    imaginary = c.add(imaginary, c.matmul(im, cosine));
  }
  return c.concat({c.unsqueeze(real, last), c.unsqueeze(imaginary, last)}, last);
}

namespace {

/// What `transform` makes of the lines along an axis of x [..., parts], each of x [lines..., n, parts].
V along_axis(OpBuilder& builder, V x, int64_t axis, const std::function<V(V)>& transform) {
  Compose c(builder);
  const int64_t rank = builder.rank(x);
  if (axis + 2 == rank) return transform(x);
  ir::Ints perm = c.count_to(rank);
  std::swap(perm[static_cast<size_t>(axis)], perm[perm.size() - 2]);
  return c.transpose(transform(c.transpose(x, perm)), perm);
}

}  // namespace

V fourier_along(OpBuilder& builder, V x, int64_t axis, const ir::SymInt& length, bool is_half,
                bool is_inverse) {
  return along_axis(builder, x, axis, [&](V lines) {
    return fourier(builder, lines, ir::kAbsent, length, is_half, is_inverse);
  });
}

V fourier_real_along(OpBuilder& builder, V x, int64_t axis, const ir::SymInt& length) {
  return along_axis(builder, x, axis, [&](V lines) { return fourier_real(builder, lines, length); });
}

V fourier_real(OpBuilder& builder, V x, const ir::SymInt& whole) {
  Compose c(builder);
  if (is_step(builder, x, whole)) return fourier_step(builder, x, ir::kAbsent, whole, true, true);
  const int64_t length = whole;
  const ir::SymInt last = static_cast<int64_t>(c.shape(x).size()) - 1;
  const ir::SymInt in = min(c.shape(x)[static_cast<size_t>(last - 1)], length / 2 + 1);
  x = c.slice(x, last - 1, 0, in);
  const auto product = [&](int64_t index, V matrix) {
    return c.matmul(c.squeeze(c.slice(x, last, index, 1), last), matrix);
  };
  Roots roots = make_roots(in, length, length, true);
  for (int64_t k = 0; k < in; ++k) {
    // Every element but the first and, of an even length, the middle one has a conjugate.
    if (k == 0 || 2 * k == length) continue;
    for (int64_t n = 0; n < length; ++n) {
      roots.real[static_cast<size_t>(k * length + n)] *= 2;
      roots.imaginary[static_cast<size_t>(k * length + n)] *= 2;
    }
  }
  const auto part = [&](int64_t index, const std::vector<double>& matrix) {
    return product(index, c.doubles(c.dtype(x), matrix, {in, length}));
  };
  return c.unsqueeze(c.sub(part(0, roots.real), part(1, roots.imaginary)), last);
}

}  // namespace tensormill::build
