// Pools over maps [N,C,spatial...] or [C,spatial...].
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// "max_pool2d_with_indices" has 2 spatial dims.
size_t spatial_of(const NodeContext& node) {
  for (const char digit : {'1', '2', '3'})
    if (node.op().find(std::string(1, digit) + "d") != std::string::npos)
      return static_cast<size_t>(digit - '0');
  node.invalid("it has a converter of other operators");
}

struct Pool {
  V x;
  bool had_batch;
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

Pool pool_of(NodeContext& node, size_t spatial) {
  Pool pool;
  const V x = node.tensor("self");
  pool.x = with_batch(node, x, spatial);
  pool.had_batch = pool.x == x;
  pool.kernel = spread(node, "kernel_size", spatial);
  pool.stride = node.ints("stride").empty() ? pool.kernel : spread(node, "stride", spatial);
  pool.padding = spread(node, "padding", spatial);
  pool.dilation.assign(spatial, 1);
  pool.ceil_mode = node.flag("ceil_mode");
  return pool;
}

void check(NodeContext& node, const Pool& pool) {
  for (const std::vector<int64_t>* numbers : {&pool.kernel, &pool.stride, &pool.dilation})
    for (const int64_t number : *numbers)
      if (number < 1 || number > build::kMaxWindowNumber)
        node.invalid("a window, stride or dilation of " + std::to_string(number));
  for (size_t d = 0; d < pool.kernel.size(); ++d)
    if (pool.padding[d] < 0 || pool.padding[d] > pool.kernel[d] / 2)
      node.invalid("a padding of " + std::to_string(pool.padding[d]) + " for windows of " +
                   std::to_string(pool.kernel[d]));
}

/// How far the last window reaches behind the padded end: with ceil_mode, which drops windows that begin
/// behind it, more than nothing.
ir::SymInt overhang(const Pool& pool, const ir::SymInt& extent, size_t d) {
  if (!pool.ceil_mode) return 0;
  const int64_t reach = pool.dilation[d] * (pool.kernel[d] - 1) + 1, stride = pool.stride[d],
                pad = pool.padding[d];
  const ir::SymInt moved = extent + 2 * pad - reach;
  ir::SymInt windows = floordiv(moved + (stride - 1), stride) + 1;
  const bool drops = (windows - 1) * stride >= extent + pad;
  if (drops) windows = windows - 1;
  return max((windows - 1) * stride - moved, 0);
}

/// Pads of all axes, begins, then ends; those of ceil_mode are no number where the extent is none.
struct Pads {
  std::vector<int64_t> numbers;
  ir::SymShape symbols;
};
Pads pads_of(NodeContext& node, const Pool& pool, bool has_padding) {
  const size_t rank = pool.kernel.size();
  ir::SymShape pads(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t padding = has_padding ? pool.padding[d] : 0;
    pads[d] = padding;
    pads[rank + d] = overhang(pool, node.shape(pool.x)[d + 2], d) + padding;
  }
  if (pads.is_constant()) return {pads.hints(), {}};
  return {std::vector<int64_t>(2 * rank, 0), pads};
}

build::PoolSpec spec_of(const Pool& pool, const Pads& pads) {
  build::PoolSpec spec;
  spec.windows = {pool.kernel, pool.stride, pool.dilation, pads.numbers};
  spec.windows.symbolic_pads = pads.symbols;
  return spec;
}

V without_batch(NodeContext& node, const Pool& pool, V y) {
  return pool.had_batch ? y : Compose(node).squeeze(y, 0);
}

/// An axis under its windows, which may reach beside it.
struct Reach {
  V places;  ///< i64 [windows, elements of a window]
  ir::SymInt windows, extent;
  int64_t elements;
};

/// Where on the axis each window of a pool takes its elements.
Reach reach_of(NodeContext& node, const Pool& pool, size_t d, const ir::SymInt& windows) {
  Compose c(node);
  const int64_t kernel = pool.kernel[d];
  const V begins = c.mul(c.iota(windows, {windows, 1}), c.ints({pool.stride[d]}, {}));
  const V steps = c.mul(c.iota(kernel, {1, kernel}), c.ints({pool.dilation[d]}, {}));
  const V places = c.sub(c.add(begins, steps), c.ints({pool.padding[d]}, {}));
  return {places, windows, node.shape(pool.x)[d + 2], kernel};
}

/// The least number of the type.
V least_of(NodeContext& node, V x) {
  const DTypeInfo& info = dtype_info(node.dtype(x));
  const double least = info.is_float    ? -std::numeric_limits<double>::infinity()
                       : info.is_signed ? -std::ldexp(1.0, info.bits - 1)
                                        : 0;
  return Compose(node).number(x, least);
}

/// The elements under each window [N,C,windows...,elements], the least number in place of those that there
/// are none; and where there are some, [1,1,windows...,elements].
struct Covered {
  V elements, is_there;
};

Covered covered_by(NodeContext& node, V x, const std::vector<Reach>& axes) {
  Compose c(node);
  const size_t rank = axes.size();
  V windows = numeric(node, x), is_there = ir::kAbsent;
  ir::SymShape shape{node.shape(x)[0], node.shape(x)[1]}, one{1, 1};
  std::vector<int64_t> perm{0, 1}, inner;
  int64_t elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    const Reach& axis = axes[d];
    const V last = c.dims({axis.extent - 1}, {}), zero = c.ints({0}, {});
    windows = c.gather(windows, c.binary("min", c.binary("max", axis.places, zero), last),
                       static_cast<int64_t>(2 + 2 * d));
    ir::SymShape along(2 + 2 * rank, 1);
    along[2 + d] = axis.windows;
    along[2 + rank + d] = axis.elements;
    const V inside = c.reshape(
        both(node, c.binary("less_equal", zero, axis.places), c.binary("less_equal", axis.places, last)),
        along);
    is_there = is_there == ir::kAbsent ? inside : both(node, is_there, inside);
    shape.push_back(axis.windows);
    one.push_back(axis.windows);
    perm.push_back(static_cast<int64_t>(2 + 2 * d));
    inner.push_back(static_cast<int64_t>(3 + 2 * d));
    elements *= axis.elements;
  }
  perm.insert(perm.end(), inner.begin(), inner.end());
  windows = c.transpose(windows, perm);
  windows = c.where(is_there, windows, least_of(node, windows));
  shape.emplace_back(elements);
  one.emplace_back(elements);
  return {c.reshape(windows, shape), c.reshape(is_there, one)};
}

/// Where in its map of x [N,C,spatial...] the largest element of each window stands, the first of equal ones:
/// one number for all axes, as if each map were a row.
V places_of_largest(NodeContext& node, V x, const std::vector<Reach>& axes) {
  Compose c(node);
  const Covered windows = covered_by(node, x, axes);
  const int64_t last = node.rank(windows.elements) - 1;
  V rest = c.arg_max(windows.elements, last, false), place = ir::kAbsent;
  // Where all are the least number, the first one that there is.
  const V is_there = c.expand(c.cast(windows.is_there, DType::kUInt8), node.shape(windows.elements));
  const V found = c.squeeze(c.gather_elements(is_there, c.unsqueeze(rest, last), last), last);
  rest = c.where(to_bool(node, found), rest, c.arg_max(is_there, last, false));
  // Which element of a window it is says where it stands along each axis.
  int64_t elements = node.shape(windows.elements).back();
  for (size_t d = 0; d < axes.size(); ++d) {
    const Reach& axis = axes[d];
    elements /= axis.elements;
    const V size = c.ints({elements}, {}), own = c.div(rest, size);
    rest = c.sub(rest, c.mul(own, size));
    const V window = c.mul(c.positions(axis.windows, 2 + d, 2 + axes.size()), c.ints({axis.elements}, {}));
    const V flat = c.reshape(axis.places, {axis.windows * axis.elements});
    const V at = c.gather(flat, c.add(window, own), 0);
    place = place == ir::kAbsent ? at : c.add(c.mul(place, c.dims({axis.extent}, {})), at);
  }
  return place;
}

}  // namespace

void convert_max_pool(NodeContext& node) {
  Pool pool = pool_of(node, spatial_of(node));
  pool.dilation = spread(node, "dilation", pool.kernel.size());
  check(node, pool);
  build::PoolSpec spec = spec_of(pool, pads_of(node, pool, true));
  const V y = build::max_pool(node, pool.x, spec);
  node.set_output(0, without_batch(node, pool, y));
  if (!node.op().ends_with("_with_indices") || !node.may_be_used(1)) return;
  std::vector<Reach> axes;
  for (size_t d = 0; d < pool.kernel.size(); ++d)
    axes.push_back(reach_of(node, pool, d, node.shape(y)[d + 2]));
  node.set_output(1, without_batch(node, pool, places_of_largest(node, pool.x, axes)));
}

namespace {

/// Means of windows over a map that is padded; with a divisor of its own, sums that it divides.
V divided(NodeContext& node, const Pool& pool, const Pads& behind, bool has_divisor) {
  Compose c(node);
  if (!has_divisor) return build::avg_pool(node, pool.x, spec_of(pool, behind));
  // What lies behind counts, as zeros: each mean is of a whole window.
  const size_t rank = pool.kernel.size();
  ir::SymShape pads(2 * (rank + 2), 0);
  for (size_t d = 0; d < rank; ++d)
    pads[d + 4 + rank] =
        behind.symbols.empty() ? ir::SymInt(behind.numbers[rank + d]) : behind.symbols[rank + d];
  const V x = padded(node, pool.x, pads, "constant", 0);
  const V mean = build::avg_pool(node, x, spec_of(pool, {std::vector<int64_t>(2 * rank, 0), {}}));
  double elements = 1;
  for (const int64_t extent : pool.kernel) elements *= static_cast<double>(extent);
  return c.times(mean, elements / node.real("divisor_override"));
}

}  // namespace

// Elements of the padding count, unless it is told otherwise; what lies behind it never does.
void convert_avg_pool(NodeContext& node) {
  Compose c(node);
  const size_t spatial = spatial_of(node);
  Pool pool = pool_of(node, spatial);
  check(node, pool);
  // Means of whole numbers are cut off to whole ones.
  const DType own = node.dtype(pool.x);
  if (!is_float(own)) pool.x = c.cast(pool.x, DType::kFloat64);
  const auto set = [&](V y) { node.set_output(0, c.cast(without_batch(node, pool, y), own)); };
  const bool counts = node.flag("count_include_pad");
  const bool has_divisor = spatial > 1 && node.has("divisor_override");
  const bool is_padded =
      std::any_of(pool.padding.begin(), pool.padding.end(), [](int64_t pad) { return pad != 0; });
  const Pads all = pads_of(node, pool, true);
  if ((counts || has_divisor) && is_padded) {
    ir::SymShape pads(2 * (spatial + 2), 0);
    for (size_t d = 0; d < spatial; ++d) pads[d + 2] = pads[d + 4 + spatial] = pool.padding[d];
    const Pads behind = pads_of(node, pool, false);
    pool.x = padded(node, pool.x, pads, "constant", 0);
    return set(divided(node, pool, behind, has_divisor));
  }
  if (has_divisor) return set(divided(node, pool, all, true));
  set(build::avg_pool(node, pool.x, spec_of(pool, all)));
}

namespace {

/// Window i of `out` over `in` elements: from floor(i*in/out) to ceil((i+1)*in/out).
struct Span {
  int64_t first, count;
};
Span span_of(int64_t i, int64_t in, int64_t out) {
  const int64_t first = i * in / out, last = ((i + 1) * in + out - 1) / out;
  return {first, last - first};
}

/// Means along an axis: all of it, windows of one extent, or a product with the windows' weights.
V mean_along(NodeContext& node, V x, int64_t axis, const ir::SymInt& out) {
  Compose c(node);
  const ir::SymInt in = node.shape(x)[static_cast<size_t>(axis)];
  if (same(in, out)) return x;
  if (out.is_constant() && out.hint() == 1) return c.reduce("reduce_mean", x, {axis}, true);
  const int64_t from = in, to = out;
  if (from < 1 || to < 1)
    node.invalid("an axis of " + std::to_string(from) + " pooled to " + std::to_string(to));
  if (from > (int64_t{1} << 24) / std::max<int64_t>(to, 1))
    node.unsupported("output_size", "the axis is too long");
  std::vector<double> weights(static_cast<size_t>(from * to), 0);
  for (int64_t i = 0; i < to; ++i) {
    const Span span = span_of(i, from, to);
    for (int64_t k = 0; k < span.count; ++k)
      weights[static_cast<size_t>((span.first + k) * to + i)] = 1.0 / static_cast<double>(span.count);
  }
  ir::Ints perm = c.count_to(node.rank(x));
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const V y = c.matmul(c.transpose(x, perm), c.doubles(node.dtype(x), weights, {from, to}));
  return c.transpose(y, perm);
}

V max_along(NodeContext& node, V x, int64_t axis, const ir::SymInt& out) {
  Compose c(node);
  const ir::SymInt in = node.shape(x)[static_cast<size_t>(axis)];
  if (same(in, out)) return x;
  if (out.is_constant() && out.hint() == 1) return c.reduce("reduce_max", x, {axis}, true);
  const int64_t from = in, to = out;
  if (from < 1 || to < 1 || to > 4096)
    node.invalid("an axis of " + std::to_string(from) + " pooled to " + std::to_string(to));
  std::vector<V> parts;
  for (int64_t i = 0; i < to; ++i) {
    const Span span = span_of(i, from, to);
    parts.push_back(c.reduce("reduce_max", c.slice(x, axis, span.first, span.count), {axis}, true));
  }
  return c.concat(parts, axis);
}

}  // namespace

namespace {

/// The second result of adaptive_max_pool.
void set_adaptive_places(NodeContext& node, V x, const ir::SymShape& sizes) {
  Compose c(node);
  const bool is_single = node.rank(node.tensor("self")) == static_cast<int64_t>(sizes.size()) + 1;
  std::vector<Reach> axes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t in = node.shape(x)[d + 2], out = sizes[d];
    if (in < 1 || out < 0 || out > build::kMaxListed / in)
      node.invalid("an axis of " + std::to_string(in) + " pooled to " + std::to_string(out));
    int64_t most = 1;
    for (int64_t i = 0; i < out; ++i) most = std::max(most, span_of(i, in, out).count);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < out; ++i)
      for (int64_t k = 0; k < most; ++k)
        places.push_back(k < span_of(i, in, out).count ? span_of(i, in, out).first + k : -1);
    axes.push_back({c.ints(places, {out, most}), out, in, most});
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](const ir::SymInt& each) { return same(each, 0); })) {
    ir::SymShape shape = node.shape(node.tensor("self"));
    std::copy(sizes.begin(), sizes.end(), shape.end() - static_cast<std::ptrdiff_t>(sizes.size()));
    return node.set_output(1, c.filled(DType::kInt64, shape, 0));
  }
  const V places = places_of_largest(node, x, axes);
  node.set_output(1, is_single ? c.squeeze(places, 0) : places);
}

}  // namespace

// Windows of one extent are a pool; others are means along one axis after the other.
void convert_adaptive_pool(NodeContext& node) {
  const size_t spatial = spatial_of(node);
  const V given = node.tensor("self");
  V x = with_batch(node, given, spatial);
  const bool is_max = node.op().find("max") != std::string::npos;
  ir::SymShape sizes = node.syms("output_size");
  if (sizes.size() == 1) sizes = ir::SymShape(std::vector<ir::SymInt>(spatial, sizes[0]));
  if (sizes.size() != spatial) node.invalid("output_size has " + std::to_string(sizes.size()) + " numbers");
  if (is_max && node.may_be_used(1) && node.shape(x).is_constant() && sizes.is_constant())
    set_adaptive_places(node, x, sizes);
  if (std::any_of(sizes.begin(), sizes.end(), [](const ir::SymInt& each) { return same(each, 0); })) {
    ir::SymShape shape = node.shape(given);
    std::copy(sizes.begin(), sizes.end(), shape.end() - static_cast<std::ptrdiff_t>(spatial));
    return node.set_output(0, Compose(node).filled(node.dtype(given), shape, 0));
  }
  std::vector<int64_t> kernel;
  for (size_t d = 0; d < spatial; ++d) {
    const ir::SymInt in = node.shape(x)[d + 2];
    const bool divides = in.is_constant() && sizes[d].is_constant() && sizes[d].hint() > 0 && in.hint() > 0 &&
                         in.hint() % sizes[d].hint() == 0;
    if (divides) kernel.push_back(in.hint() / sizes[d].hint());
  }
  const bool is_all =
      std::all_of(sizes.begin(), sizes.end(), [](const ir::SymInt& each) { return same(each, 1); });
  if (kernel.size() == spatial && !is_all) {
    build::PoolSpec spec;
    spec.windows = {kernel, kernel, std::vector<int64_t>(spatial, 1), std::vector<int64_t>(2 * spatial, 0)};
    x = is_max ? build::max_pool(node, x, spec) : build::avg_pool(node, x, spec);
  } else if (is_all) {
    x = Compose(node).reduce_spatial(is_max ? "reduce_max" : "reduce_mean", x);
  } else {
    for (size_t d = 0; d < spatial; ++d) {
      const auto axis = static_cast<int64_t>(d) + 2;
      x = is_max ? max_along(node, x, axis, sizes[d]) : mean_along(node, x, axis, sizes[d]);
    }
  }
  node.set_output(0, node.rank(given) == static_cast<int64_t>(spatial) + 1 ? Compose(node).squeeze(x, 0) : x);
}

// Elements back at the places of a larger map that a pool took them from, zeros elsewhere.
void convert_max_unpool(NodeContext& node) {
  Compose c(node);
  const size_t spatial = spatial_of(node);
  const V given = node.tensor("self"), x = with_batch(node, given, spatial);
  const ir::SymShape shape = node.shape(x), size = node.syms("output_size");
  if (size.size() != spatial)
    node.invalid("output_size has " + std::to_string(size.size()) + " numbers, expected " +
                 std::to_string(spatial));
  const ir::SymInt maps = node.product(shape[0], shape[1]);
  ir::SymInt elements = 1, all = 1;
  ir::SymShape whole = node.shape(given);
  for (size_t d = 0; d < spatial; ++d) {
    elements = node.product(elements, shape[d + 2]);
    all = node.product(all, size[d]);
    whole[whole.size() - spatial + d] = size[d];
  }
  const V places = c.reshape(c.cast(node.tensor("indices"), DType::kInt64), {maps, elements});
  const V zeros = c.filled(node.dtype(x), {maps, all}, 0);
  const V y = scattered(node, zeros, places, c.reshape(x, {maps, elements}), 1, "none");
  node.set_output(0, c.reshape(y, whole));
}

}  // namespace tensormill::frontend::pytorch
