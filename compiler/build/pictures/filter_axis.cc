#include "compiler/build/pictures/filter_axis.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <string_view>

#include "compiler/build/rows.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

/// x [..., in ...] by weights [out,in] along `dim`.
V product_along(Compose& c, V x, int64_t dim, V weights) {
  ir::Ints perm = c.count_to(static_cast<int64_t>(c.shape(x).size()));
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  return c.transpose(c.matmul(c.transpose(x, perm), weights, true), perm);
}

/// Of free extents what is demanded is checked again when they are known.
void check_table(const OpBuilder& builder, const ir::SymInt& in, const ir::SymInt& out) {
  if (!ir::demand(ir::Relation::kLess, 0, out) || !ir::demand(ir::Relation::kLess, 0, in))
    builder.invalid("an axis of " + to_string(in) + " elements for one of " + to_string(out));
  if (!ir::demand(ir::Relation::kLessEqual, builder.product(in, out), kMaxListed))
    builder.unsupported("size", "filters for so long an axis are not implemented");
}

/// The cubic filter whose polynomials are those, highest power first, below 1 and from there to 2.
V cubic(Compose& c, V x, const std::array<double, 4>& near, const std::array<double, 4>& far) {
  const auto polynomial = [&](const std::array<double, 4>& factors) {
    V sum = c.times(x, factors[0]);
    for (const size_t i : {1, 2}) sum = c.mul(factors[i] == 0 ? sum : c.plus(sum, factors[i]), x);
    return c.plus(sum, factors[3]);
  };
  const V outer = c.where(c.binary("less", x, c.number(x, 2)), polynomial(far), c.number(x, 0));
  return c.where(c.binary("less", x, c.number(x, 1)), polynomial(near), outer);
}

V lanczos(Compose& c, V x, double radius) {
  constexpr double kPi = std::numbers::pi;
  const V sines = c.mul(c.unary("sin", c.times(x, kPi)), c.unary("sin", c.times(x, kPi / radius)));
  const V wave = c.div(c.times(sines, radius), c.times(c.mul(x, x), kPi * kPi));
  const V inside = c.where(c.binary("less_equal", x, c.number(x, 1e-3)), c.number(x, 1), wave);
  return c.where(c.binary("less", x, c.number(x, radius)), inside, c.number(x, 0));
}

V triangle(Compose& c, V x) { return c.binary("max", c.sub(c.number(x, 1), x), c.number(x, 0)); }

V box(Compose& c, V x) {
  const V half = c.number(x, 0.5);
  const V edge = c.where(c.binary("equal", x, half), half, c.number(x, 0));
  return c.where(c.binary("less", x, half), c.number(x, 1), edge);
}

V gaussian(Compose& c, V x) {
  const V bell = c.unary("exp", c.times(c.mul(x, x), -2));  // of sigma 0.5
  return c.where(c.binary("less", x, c.number(x, 1.5)), bell, c.number(x, 0));
}

V keys_cubic(Compose& c, V x) { return cubic(c, x, {1.5, -2.5, 0, 1}, {-0.5, 2.5, -4, 2}); }

V mitchell_cubic(Compose& c, V x) {
  return cubic(c, x, {7.0 / 6, -2, 0, 8.0 / 9}, {-7.0 / 18, 2, -10.0 / 3, 16.0 / 9});
}

/// Weights by the distance, which is not negative.
using Filter = V (*)(Compose& c, V distance);
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {{"lanczos1", [](Compose& c, V x) { return lanczos(c, x, 1); }},
                                    {"lanczos3", [](Compose& c, V x) { return lanczos(c, x, 3); }},
                                    {"lanczos5", [](Compose& c, V x) { return lanczos(c, x, 5); }},
                                    {"gaussian", &gaussian},
                                    {"box", &box},
                                    {"triangle", &triangle},
                                    {"keyscubic", &keys_cubic},
                                    {"mitchellcubic", &mitchell_cubic}};

const NamedFilter* find_filter(const std::string& name) {
  return find_in(kFilters, &NamedFilter::name, name);
}

}  // namespace

V filtered(OpBuilder& builder, V x, int64_t dim, const FilterAxis& axis, const std::string& filter,
           bool antialias) {
  const NamedFilter* named = find_filter(filter);
  if (named == nullptr) builder.unsupported("filter", "\"" + filter.substr(0, 100) + "\" is not implemented");
  check_table(builder, axis.in, axis.out);
  Compose c(builder);
  // In single precision, as TensorFlow has it: what is next to a filter's end hangs on the rounding.
  const V scale = c.reshape(axis.scale, {1, 1}), one = c.number(scale, 1), zero = c.number(scale, 0);
  const V inverse = c.div(one, scale);
  V place = c.mul(c.plus(c.cast(c.positions(axis.out, 0, 2), DType::kFloat32), 0.5), inverse);
  if (axis.shift != ir::kAbsent) place = c.sub(place, c.mul(inverse, c.reshape(axis.shift, {1, 1})));
  const V element = c.plus(c.cast(c.positions(axis.in, 1, 2), DType::kFloat32), 0.5);
  V distance = c.unary("abs", c.sub(element, place));
  if (antialias) distance = c.mul(distance, c.div(one, c.binary("max", inverse, one)));
  V weights = named->filter(c, distance);
  const V inside = c.binary("and", c.binary("greater_equal", place, zero),
                            c.binary("less_equal", place, c.extent(place, axis.in)));
  const V sum = c.reduce("reduce_sum", weights, {1}, true);
  const V least = c.number(sum, 1000 * static_cast<double>(std::numeric_limits<float>::min()));
  const V divisor = c.where(c.binary("less", c.unary("abs", sum), least), one, sum);
  weights = c.where(inside, c.div(weights, divisor), zero);
  return product_along(c, x, dim, weights);
}

V area_means(OpBuilder& builder, V x, int64_t dim, const ir::SymInt& out, bool align_corners) {
  Compose c(builder);
  const ir::SymInt in = c.shape(x)[static_cast<size_t>(dim)];
  check_table(builder, in, out);
  const V begins = c.cast(c.positions(out, 0, 2), DType::kFloat32);
  const V zero = c.number(begins, 0);
  // Of one element there are no corners.
  const ir::SymInt more = align_corners ? min(out - 1, 1) * min(in - 1, 1) : ir::SymInt(0);
  const V scale = c.div(c.extent(begins, in - more), c.extent(begins, out - more));
  const V begin = c.mul(begins, scale), end = c.mul(c.plus(begins, 1), scale);
  const V place = c.positions(in, 1, 2);
  const V left = c.cast(place, DType::kFloat32);
  // What is behind the last element is that one.
  const V is_last = c.binary("equal", place, c.extent(place, in - 1));
  const V right = c.where(is_last, c.binary("max", end, c.plus(left, 1)), c.plus(left, 1));
  const V covered = c.sub(c.binary("min", right, end), c.binary("max", left, begin));
  return product_along(c, x, dim, c.div(c.binary("max", covered, zero), scale));
}

}  // namespace tensormill::build
