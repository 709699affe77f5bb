#include "compiler/build/pictures/resize_nodes.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tensormill::build {

bool has_formula(const ResizeAxis& axis, const ResizeOptions& options) {
  constexpr int64_t kMaxListedTaps = 64;
  // Whether the filter is as wide as the ratio of two extents says.
  const bool is_wide =
      options.antialias && (axis.by_size || axis.computed != ir::kAbsent) && options.mode != "nearest";
  return !is_wide && ResizeReach(axis, options).count <= kMaxListedTaps;
}

namespace {

/// The scale, of the type of `like`.
ir::ValueId scale_nodes(Compose& c, const ResizeAxis& axis, ir::ValueId like) {
  if (axis.computed != ir::kAbsent) return c.cast(axis.computed, c.dtype(like));
  if (!axis.by_size) return c.number(like, axis.scale);
  return c.div(c.extent(like, axis.out), c.extent(like, axis.in));
}

/// Positions along the axis, as the options' coordinates have them.
ir::ValueId transformed_positions(Compose& c, const ResizeAxis& axis, const ResizeOptions& options) {
  const std::string& mode = options.coordinates;
  const DType dtype = options.mode == "nearest" ? DType::kFloat32 : DType::kFloat64;
  const ir::ValueId x = c.cast(c.iota(axis.out), dtype);
  const ir::ValueId in = c.extent(x, axis.in), out = c.extent(x, axis.out);
  const ir::ValueId scale = scale_nodes(c, axis, x);
  const ir::ValueId real_out = axis.by_size ? out : c.mul(in, scale);
  const ir::ValueId between = c.minus(in, 1);
  // 1, or 0 where there is one output element.
  const auto is_more = [&](ir::ValueId extent) {
    return c.binary("min", c.minus(extent, 1), c.number(x, 1));
  };
  const ir::ValueId steps = c.binary("max", c.minus(real_out, 1), c.number(x, 1));
  if (mode == "align_corners") return c.mul(c.div(c.mul(x, between), steps), is_more(real_out));
  if (mode == "asymmetric") return c.div(x, scale);
  if (mode == "tf_half_pixel_for_nn") return c.div(c.plus(x, 0.5), scale);
  if (mode == "tf_crop_and_resize") {
    const ir::ValueId more = is_more(real_out);
    const ir::ValueId part = c.add(c.mul(c.div(x, steps), more), c.times(c.sub(c.number(x, 1), more), 0.5));
    if (axis.dynamic_start == ir::kAbsent)
      return c.mul(c.plus(c.times(part, axis.roi_end - axis.roi_start), axis.roi_start), between);
    const ir::ValueId start = c.cast(axis.dynamic_start, dtype), span = c.cast(axis.dynamic_span, dtype);
    return c.mul(c.add(c.mul(part, span), start), between);
  }
  const ir::ValueId position = c.minus(c.div(c.plus(x, 0.5), scale), 0.5);
  if (mode == "pytorch_half_pixel") return c.mul(position, is_more(out));
  if (mode == "half_pixel") return position;
  const ir::ValueId rest = c.sub(c.number(x, 1), c.div(out, real_out));
  return c.add(c.mul(c.times(in, 0.5), rest), position);
}

}  // namespace

ir::ValueId is_left(Compose& c, const ResizeAxis& axis, const ResizeOptions& options) {
  const ir::ValueId like = c.doubles(DType::kFloat64, {1}, {1});
  ir::ValueId same = c.binary("equal", c.extent(like, axis.out), c.extent(like, axis.in));
  if (!axis.by_size) same = c.binary("and", same, c.binary("equal", scale_nodes(c, axis, like), like));
  if (options.coordinates != "tf_crop_and_resize") return same;
  if (axis.dynamic_start == ir::kAbsent) return axis.is_whole() ? same : c.filled(DType::kBool, {1}, 0);
  const ir::ValueId is_start = c.binary("equal", axis.dynamic_start, c.number(like, 0));
  return c.binary("and", same, c.binary("and", is_start, c.binary("equal", axis.dynamic_span, like)));
}

namespace {

/// The input's position of each output element, from extents that are constants of their own: f64 [out], or,
/// where the nearest is taken, f32.
ir::ValueId position_nodes(Compose& c, const ResizeAxis& axis, const ResizeOptions& options) {
  const ir::ValueId position = transformed_positions(c, axis, options);
  // An axis that keeps its extent is left as it is, which one set of positions does not say.
  const bool may_be_left =
      axis.is_dynamic || (options.coordinates == "tf_half_pixel_for_nn" && axis.by_size &&
                          !(axis.in.is_constant() && axis.out.is_constant()));
  if (!may_be_left) return position;
  const ir::ValueId own = c.cast(c.iota(axis.out), c.dtype(position));
  return c.where(is_left(c, axis, options), own, position);
}

}  // namespace

ir::ValueId outside_nodes(Compose& c, const ResizeAxis& axis, const ResizeOptions& options) {
  const ir::ValueId position = position_nodes(c, axis, options);
  const ir::ValueId last = c.minus(c.extent(position, axis.in), 1);
  const ir::ValueId outside =
      c.binary("or", c.binary("less", position, c.number(position, 0)), c.binary("greater", position, last));
  if (!axis.is_dynamic) return outside;
  return c.binary("and", outside, c.unary("not", is_left(c, axis, options)));
}

namespace {

/// The filter's value at each distance.
ir::ValueId filter_nodes(Compose& c, ir::ValueId distance, const ResizeOptions& options) {
  const ir::ValueId x = c.unary("abs", distance), zero = c.number(x, 0), one = c.number(x, 1);
  if (options.mode == "linear") return c.binary("max", c.sub(one, x), zero);
  const double a = options.cubic;
  const ir::ValueId inner = c.plus(c.mul(c.mul(c.minus(c.times(x, a + 2), a + 3), x), x), 1);
  const ir::ValueId outer = c.minus(c.mul(c.plus(c.mul(c.minus(c.times(x, a), 5 * a), x), 8 * a), x), 4 * a);
  const ir::ValueId near = c.binary("less_equal", x, one), far = c.binary("less", x, c.number(x, 2));
  return c.where(near, inner, c.where(far, outer, zero));
}

/// Where weights are taken of: the position, or of a table the step next to it.
ir::ValueId weighed_nodes(Compose& c, ir::ValueId position, const ResizeOptions& options) {
  if (options.cubic_steps == 0) return position;
  const auto steps = static_cast<double>(options.cubic_steps);
  const ir::ValueId base = c.unary("floor", position);
  return c.add(base, c.times(c.unary("round", c.times(c.sub(position, base), steps)), 1 / steps));
}

/// Whether each element is repeated as often as a whole number says, so that no position is worked out.
bool repeats(const ResizeAxis& axis, const ResizeOptions& options) {
  const bool is_known = !axis.by_size && axis.computed == ir::kAbsent && !axis.is_dynamic;
  if (options.mode != "nearest" || !is_known || axis.scale < 2 || axis.scale != std::floor(axis.scale))
    return false;
  if (axis.out != axis.in * static_cast<int64_t>(axis.scale)) return false;
  const std::string& mode = options.coordinates;
  // From q on, at most (k - 1) / k further.
  if (mode == "asymmetric" || mode == "tf_half_pixel_for_nn")
    return options.nearest == "floor" || options.nearest == kNearestByScale;
  // Around q, less than half away.
  const bool rounds = options.nearest == "round_prefer_floor" || options.nearest == "round_prefer_ceil";
  return rounds && (mode == "half_pixel" || (mode == "pytorch_half_pixel" && axis.out > 1));
}

}  // namespace

ir::ValueId resize_by_nodes(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                            const ResizeOptions& options) {
  const ir::ValueId position = position_nodes(c, axis, options);
  const ir::ValueId zero = c.number(position, 0), last = c.minus(c.extent(position, axis.in), 1);
  const auto limited = [&](ir::ValueId at) { return c.binary("min", c.binary("max", at, zero), last); };
  const auto element_of = [&](ir::ValueId at) { return c.cast(limited(at), DType::kInt64); };
  if (options.mode == "nearest" && options.nearest == kNearestByScale) {
    const ir::ValueId scale = scale_nodes(c, axis, position);
    const ir::ValueId is_less = c.binary("less", scale, c.number(scale, 1));
    return c.gather(x, element_of(c.where(is_less, c.unary("ceil", position), c.unary("floor", position))),
                    dim);
  }
  if (options.mode == "nearest") {
    const bool up = options.nearest == "ceil" || options.nearest == "round_prefer_floor";
    const double shift = options.nearest == "round_prefer_ceil"    ? 0.5
                         : options.nearest == "round_prefer_floor" ? -0.5
                                                                   : 0;
    return c.gather(x, element_of(c.unary(up ? "ceil" : "floor", c.plus(position, shift))), dim);
  }
  const ResizeReach reach(axis, options);
  const ir::ValueId base = c.unary("floor", position), weighed = weighed_nodes(c, position, options);
  std::vector<ir::ValueId> elements, weights;
  ir::ValueId sum = ir::kAbsent;
  for (int64_t tap = 0; tap < reach.count; ++tap) {
    const ir::ValueId element = c.plus(base, static_cast<double>(reach.first + tap));
    ir::ValueId weight = filter_nodes(c, c.times(c.sub(element, weighed), reach.shrink), options);
    if (options.exclude_outside) weight = c.where(c.binary("equal", limited(element), element), weight, zero);
    elements.push_back(element_of(element));
    weights.push_back(weight);
    sum = sum == ir::kAbsent ? weight : c.add(sum, weight);
  }
  ir::SymShape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(dim)] = axis.out;
  const bool is_whole = !options.antialias && !options.exclude_outside;
  ir::ValueId result = ir::kAbsent;
  for (size_t tap = 0; tap < weights.size(); ++tap) {
    const ir::ValueId weight = is_whole ? weights[tap] : c.div(weights[tap], sum);
    const ir::ValueId part =
        c.mul(c.gather(x, elements[tap], dim), c.reshape(c.cast(weight, c.dtype(x)), along));
    result = result == ir::kAbsent ? part : c.add(result, part);
  }
  return result;
}

ir::ValueId resize_by_product(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                              const ResizeOptions& options) {
  const ir::ValueId position = position_nodes(c, axis, options), zero = c.number(position, 0);
  const ir::ValueId last = c.minus(c.extent(position, axis.in), 1);
  const ir::ValueId scale = scale_nodes(c, axis, position);
  // No scale is below half an element by all of them: an axis of a common scale has one element at least.
  const ir::SymInt reach = (options.mode == "cubic" ? 4 : 2) * axis.in + 1;
  const ir::SymInt extent = axis.in + 2 * reach;
  const ir::ValueId counted = c.cast(c.iota(extent), DType::kFloat64);
  const ir::ValueId elements = c.sub(counted, c.extent(position, reach));
  const ir::ValueId limited = c.binary("min", c.binary("max", elements, zero), last);
  const ir::ValueId apart = c.sub(elements, c.reshape(weighed_nodes(c, position, options), {axis.out, 1}));
  ir::ValueId weights = filter_nodes(c, c.mul(apart, c.binary("min", scale, c.number(scale, 1))), options);
  if (options.exclude_outside) weights = c.where(c.binary("equal", limited, elements), weights, zero);
  weights = c.div(weights, c.reduce("reduce_sum", weights, {1}, true));
  ir::Ints perm = c.count_to(static_cast<int64_t>(c.shape(x).size()));
  std::swap(perm[static_cast<size_t>(dim)], perm.back());
  const ir::ValueId all = c.transpose(c.gather(x, c.cast(limited, DType::kInt64), dim), perm);
  return c.transpose(c.matmul(all, c.cast(weights, c.dtype(x)), true), perm);
}

ir::ValueId resize_by_table(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                            const ResizeOptions& options) {
  const ResizeTaps taps = make_taps(axis, options);
  if (options.mode == "nearest") return c.gather(x, c.ints(taps.elements, {axis.out}), dim);
  ir::SymShape along(c.shape(x).size(), 1);
  along[static_cast<size_t>(dim)] = axis.out;
  ir::ValueId sum = ir::kAbsent;
  for (int64_t tap = 0; tap < taps.count; ++tap) {
    std::vector<int64_t> elements;
    std::vector<double> weights;
    for (int64_t i = 0; i < axis.out; ++i) {
      elements.push_back(taps.elements[static_cast<size_t>(i * taps.count + tap)]);
      weights.push_back(taps.weights[static_cast<size_t>(i * taps.count + tap)]);
    }
    const ir::ValueId part =
        c.mul(c.gather(x, c.ints(elements, {axis.out}), dim), c.doubles(c.dtype(x), weights, along));
    sum = sum == ir::kAbsent ? part : c.add(sum, part);
  }
  return sum;
}

ir::ValueId resize_along(OpBuilder& builder, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                         const ResizeOptions& options) {
  // Positions of more elements are no exact numbers of single precision.
  if (!ir::demand(ir::Relation::kLessEqual, min(axis.out, 1), min(axis.in, 1)) ||
      !ir::demand(ir::Relation::kLessEqual, axis.out, kMaxListed))
    builder.invalid("an axis of " + to_string(axis.in) + " elements cannot become one of " +
                    to_string(axis.out));
  Compose c(builder);
  if (!axis.is_symbolic() && axis.computed == ir::kAbsent) return resize_by_table(c, x, dim, axis, options);
  if (repeats(axis, options)) {
    std::vector<int64_t> times(c.shape(x).size(), 1);
    times[static_cast<size_t>(dim)] = static_cast<int64_t>(axis.scale);
    return c.tile_each(x, std::move(times));
  }
  if (has_formula(axis, options)) return resize_by_nodes(c, x, dim, axis, options);
  // Points may lie further outside of a part that is cut out than any filter reaches.
  const bool is_cut = options.coordinates == "tf_crop_and_resize";
  return (is_cut ? resize_by_table : resize_by_product)(c, x, dim, axis, options);
}

ir::SymInt scaled_by_fraction(OpBuilder& builder, const char* name, const ir::SymInt& extent, double factor) {
  int64_t parts = 1;
  double whole = factor;
  for (; parts < 65536 && whole != std::floor(whole); parts *= 2) whole *= 2;
  if (whole != std::floor(whole))
    builder.unsupported(name,
                        "a factor of " + std::to_string(factor) + " of a free extent is not implemented");
  return floordiv(extent * static_cast<int64_t>(whole), parts);
}

}  // namespace tensormill::build
