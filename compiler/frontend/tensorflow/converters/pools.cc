// What is taken of windows over a map.
#include <algorithm>
#include <limits>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/tensorflow/converters/ranges.h"
#include "compiler/frontend/tensorflow/converters/windows.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Windows of pools are attributes, or of the V2 forms operands.
std::vector<int64_t> numbers_of(NodeContext& node, const char* name, size_t operand, size_t rank) {
  if (node.op() != "MaxPoolV2") return spatial(node, name, rank, false);
  const ir::Ints all = node.known_ints(operand, name);
  if (all.size() != rank + 2 || all[0] != 1) node.invalid(std::string(name) + " are no windows of a map");
  const auto begin = all.begin() + (node.is_channels_first() ? 2 : 1);
  return {begin, begin + static_cast<std::ptrdiff_t>(rank)};
}

build::PoolSpec pool_of(NodeContext& node, V map, size_t rank) {
  return {windows_of(node, map, numbers_of(node, "ksize", 1, rank), numbers_of(node, "strides", 2, rank),
                     std::vector<int64_t>(rank, 1), node.op() == "MaxPool")};
}

}  // namespace

namespace {

/// x [N,C,H,W] as what lies under each place of windows without pads [N,C,kh,H',kw,W'].
V under_windows(NodeContext& node, V x, const std::vector<int64_t>& kernel, const build::Windows& windows) {
  Compose c(node);
  for (size_t d = 0; d < kernel.size(); ++d) {
    const auto axis = static_cast<int64_t>(2 + 2 * d);
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    const int64_t size = kernel[d], rate = windows.dilations[d], reach = (size - 1) * rate + 1;
    if (!ir::demand(ir::Relation::kLessEqual, reach, extent))
      node.invalid("windows of " + std::to_string(reach) + " over " + to_string(extent));
    const ir::SymInt count = floordiv(extent - reach, windows.strides[d]) + 1;
    const V within = c.mul(c.iota(size, {size, 1}), c.ints({rate}, {1, 1}));
    const V begins = c.mul(c.iota(count, {1, count}), c.ints({windows.strides[d]}, {1, 1}));
    x = c.gather(x, c.add(within, begins), axis);
  }
  return x;
}

/// The pads, which padded_for puts around a map where there are any.
ir::SymShape all_pads(build::Windows& windows) {
  if (!windows.symbolic_pads.empty()) return windows.symbolic_pads;
  const ir::SymShape pads(windows.pads.begin(), windows.pads.end());
  if (std::any_of(windows.pads.begin(), windows.pads.end(), [](int64_t n) { return n > 0; }))
    windows.symbolic_pads = pads;
  windows.pads.assign(windows.pads.size(), 0);
  return pads;
}

}  // namespace

// What lies under each place of a window stands along the last axis: rows of the window, each place's
// channels behind each other.
void convert_patches(NodeContext& node) {
  Compose c(node);
  check_rank(node, node.input(0), 4, "the input");
  const V map = node.first(node.input(0));
  const std::vector<int64_t> kernel = spatial(node, "ksizes", 2, false, false);
  build::Windows windows = windows_of(node, map, kernel, spatial(node, "strides", 2, false, false),
                                      spatial(node, "rates", 2, true, false), false);
  static_cast<void>(all_pads(windows));
  V x = build::padded_for(node, map, windows, 0);
  x = under_windows(node, x, kernel, windows);
  // [N,C,kh,H,kw,W]
  const ir::SymShape s = node.shape(x);
  node.set_output(0, c.reshape(c.transpose(x, {0, 3, 5, 2, 4, 1}), {s[0], s[3], s[5], s[2] * s[4] * s[1]}));
}

void convert_volume_patches(NodeContext& node) {
  check_rank(node, node.input(0), 5, "the input");
  const V map = node.first(node.input(0));
  const std::vector<int64_t> kernel = spatial(node, "ksizes", 3, false, false);
  build::Windows windows = windows_of(node, map, kernel, spatial(node, "strides", 3, false, false),
                                      std::vector<int64_t>(3, 1), false);
  static_cast<void>(all_pads(windows));
  const V under = under_windows(node, build::padded_for(node, map, windows, 0), kernel, windows);
  const ir::SymShape s = node.shape(under);  // [N,C,kd,D',kh,H',kw,W']
  Compose c(node);
  node.set_output(0, c.reshape(c.transpose(under, {0, 3, 5, 7, 2, 4, 6, 1}),
                               {s[0], s[3], s[5], s[7], s[2] * s[4] * s[6] * s[1]}));
}

void convert_max_pool(NodeContext& node) {
  const size_t rank = node.op() == "MaxPool3D" ? 3 : 2;
  check_rank(node, node.input(0), static_cast<int64_t>(rank) + 2, "the input");
  const V map = node.map(node.input(0));
  node.set_output(0, node.unmap(build::max_pool(node, map, pool_of(node, map, rank))));
}

// The first of the largest elements of a window, by its place in its picture, or in all of them.
void convert_max_pool_with_argmax(NodeContext& node) {
  Compose c(node);
  check_rank(node, node.input(0), 4, "the input");
  const bool has_batch = node.flag("include_batch_in_index", false);
  const DType to = node.dtype_attr("Targmax", DataType::kInt64);
  const V map = node.first(node.input(0));
  const std::vector<int64_t> kernel = spatial(node, "ksize", 2, false, false);
  build::Windows windows = windows_of(node, map, kernel, spatial(node, "strides", 2, false, false),
                                      std::vector<int64_t>(2, 1), false);
  node.set_output(0, node.last(build::max_pool(node, map, {windows})));
  const ir::SymShape pads = all_pads(windows), shape = node.shape(map);
  const bool is_padded = !windows.symbolic_pads.empty();
  if (is_padded && !is_float(node.dtype(map)))
    node.unsupported("padding", "windows over the edge of whole numbers are not implemented");
  const V padded = build::padded_for(node, map, windows, -std::numeric_limits<double>::infinity());
  const V under = c.transpose(under_windows(node, padded, kernel, windows), {0, 3, 5, 1, 2, 4});
  const ir::SymShape s = node.shape(under);  // [N,H',W',C,kh,kw]
  const V which = c.arg_max(c.reshape(under, {s[0], s[1], s[2], s[3], kernel[0] * kernel[1]}), 4, false);
  const V place = c.cast(which, DType::kInt64);
  const auto along = [&](size_t d, V within) {
    const V begins = c.times(c.positions(s[d + 1], d + 1, 4), static_cast<double>(windows.strides[d]));
    return c.add(c.sub(begins, c.dims({pads[d]}, {})), within);
  };
  const V row = along(0, c.div(place, c.number(place, static_cast<double>(kernel[1]))));
  const V column = along(1, c.binary("mod", place, c.number(place, static_cast<double>(kernel[1]))));
  V flat = c.add(c.mul(row, c.dims({shape[3]}, {})), column);
  if (has_batch) flat = c.add(flat, c.mul(c.positions(s[0], 0, 4), c.dims({shape[2] * shape[3]}, {})));
  flat = c.add(c.mul(flat, c.dims({shape[1]}, {})), c.positions(s[3], 3, 4));
  node.set_output(1, c.cast(flat, to));
}

void convert_avg_pool(NodeContext& node) {
  const size_t rank = node.op() == "AvgPool3D" ? 3 : 2;
  check_rank(node, node.input(0), static_cast<int64_t>(rank) + 2, "the input");
  const V map = node.map(node.input(0));
  node.set_output(0, node.unmap(build::avg_pool(node, map, pool_of(node, map, rank))));
}

// Operands: a map of integers, the ends of its range, which stays. Means are rounded toward zero, and the
// float64 that they are computed in tells a whole one from what is below it.
void convert_quantized_pool(NodeContext& node) {
  Compose c(node);
  constexpr double kRoom = 1 + 1e-9;
  const V x = node.input(0);
  check_rank(node, x, 4, "the input");
  static_cast<void>(steps_of(node, node.dtype(x)));
  const V map = node.first(x);
  const build::PoolSpec spec{windows_of(node, map, spatial(node, "ksize", 2, false, false),
                                        spatial(node, "strides", 2, false, false), {1, 1}, false)};
  if (node.op() == "QuantizedMaxPool") {
    node.set_output(0, node.last(build::max_pool(node, map, spec)));
  } else {
    const V mean = build::avg_pool(node, c.cast(map, DType::kFloat64), spec);
    node.set_output(0, node.last(c.cast(c.cast(c.times(mean, kRoom), DType::kInt32), node.dtype(x))));
  }
  set_range(node, 1, range_at(node, 1));
}

// Operands: a map, a filter [kh,kw,C] that is added to what lies under a window before the largest is taken.
void convert_dilation_2d(NodeContext& node) {
  Compose c(node);
  check_rank(node, node.input(0), 4, "the input");
  const V map = node.first(node.input(0)), filter = node.input(1);
  const ir::SymShape f = node.shape(filter);
  if (f.size() != 3 || !f.is_constant()) node.invalid("a filter of shape " + to_string(f));
  const std::vector<int64_t> kernel{f[0].hint(), f[1].hint()};
  build::Windows windows = windows_of(node, map, kernel, spatial(node, "strides", 2, false, false),
                                      spatial(node, "rates", 2, false, false), false);
  static_cast<void>(all_pads(windows));
  if (!windows.symbolic_pads.empty() && !is_float(node.dtype(map)))
    node.unsupported("padding", "windows over the edge of whole numbers are not implemented");
  const V padded = build::padded_for(node, map, windows, -std::numeric_limits<double>::infinity());
  const V under = under_windows(node, padded, kernel, windows);  // [N,C,kh,H',kw,W']
  const V added = c.reshape(c.transpose(filter, {2, 0, 1}), {1, f[2], f[0], 1, f[1], 1});
  node.set_output(0, node.last(c.reduce("reduce_max", c.add(under, added), {2, 4}, false)));
}

}  // namespace tensormill::frontend::tensorflow
