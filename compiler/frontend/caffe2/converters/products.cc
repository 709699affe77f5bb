// Convolutions, pools and matrix products.
#include <algorithm>

#include "compiler/build/maps/channels.h"
#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/caffe2/converters/windows.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// x [N,...,C] or [N,C,...] given to `convert` as [N,C,...]; what it makes has the order that x has.
template <typename Convert>
V in_order(NodeContext& node, V x, bool is_last, Convert convert) {
  const int64_t rank = node.rank(x);
  if (rank < 3 || rank > 5) node.invalid("operand 0 has rank " + std::to_string(rank));
  return is_last ? build::with_channels_first(node, x, convert) : convert(x);
}

V optional_operand(NodeContext& node, size_t index) {
  return node.has_operand(index) ? node.operand(index) : ir::kAbsent;
}

/// Weights [O,...,I] or [O,I,...] as [O,I,...].
V ordered_weights(NodeContext& node, V weights, bool is_last) {
  return is_last ? build::channels_first(node, weights) : weights;
}

/// The extents of space of weights [O,I,...], which the arguments say as well, where they say them.
ir::Ints kernel_of(NodeContext& node, V weights, V map) {
  const ir::SymShape shape = node.shape(weights);
  if (shape.size() < 3 || shape.size() != node.shape(map).size() || !shape.is_constant())
    node.invalid("weights of shape " + to_string(shape) + " for an operand of rank " +
                 std::to_string(node.rank(map)));
  const std::vector<int64_t> kernel = ir::SymShape(shape.begin() + 2, shape.end()).hints();
  const bool is_said = node.has("kernels") || node.has("kernel") || node.has("kernel_h");
  const ir::Ints said = window_numbers(node, "kernels", "kernel", kernel.size());
  if (is_said && said != kernel) node.invalid("weights of shape " + to_string(shape) + " for other windows");
  return kernel;
}

int64_t groups_of(NodeContext& node) {
  const int64_t groups = node.integer("group", 1);
  if (groups < 1) node.invalid(std::to_string(groups) + " groups");
  return groups;
}

/// Caffe's rule: the extent is rounded up, less a window that would begin behind the begin's padding and all
/// elements; what is missing at the end is padding.
void pad_as_caffe(NodeContext& node, const ir::SymShape& map, build::PoolSpec& spec) {
  build::Windows& windows = spec.windows;
  const size_t rank = windows.strides.size();
  const ir::SymShape spatial(map.begin() + 2, map.end());
  for (size_t d = 0; d < rank; ++d)
    if (windows.pads[d] != windows.pads[d + rank])
      node.unsupported("legacy_pad", "pads that differ at both ends");
  spec.ceil_mode = true;
  if (!spatial.is_constant()) return;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t in = spatial[d].hint(), pad = windows.pads[d], stride = windows.strides[d];
    const int64_t room = in + 2 * pad - windows.kernel[d].hint();
    if (room < 0) return;
    int64_t count = (room + stride - 1) / stride + 1;
    if (pad > 0 && (count - 1) * stride >= in + pad) --count;
    windows.pads[d + rank] = std::max<int64_t>(pad + stride * (count - 1 - room / stride), 0);
  }
  spec.ceil_mode = false;
}

build::PoolSpec pool_of(NodeContext& node, V x) {
  const size_t rank = node.shape(x).size() - 2;
  if (!node.has("kernels") && !node.has("kernel") && !node.has("kernel_h"))
    node.invalid("argument kernel is missing");
  const LegacyPad legacy = legacy_pad_of(node);
  build::PoolSpec spec;
  spec.windows = windows_over(node, x, window_numbers(node, "kernels", "kernel", rank), legacy);
  for (const int64_t dilation : spec.windows.dilations)
    if (dilation != 1) node.unsupported("dilation", "pools with gaps in their windows are not implemented");
  if (legacy == LegacyPad::kCaffe) pad_as_caffe(node, node.shape(x), spec);
  return spec;
}

/// What of the arguments of windows a global pool has, but needs not.
void skip_windows(NodeContext& node) {
  for (const char* name : {"kernel",   "kernels",   "kernel_h",   "kernel_w",   "stride",
                           "strides",  "stride_h",  "stride_w",   "pad",        "pads",
                           "pad_t",    "pad_l",     "pad_b",      "pad_r",      "legacy_pad",
                           "dilation", "dilations", "dilation_h", "dilation_w", "count_include_pad"})
    node.has(name);
}

/// The mean of windows in which padding counts as zeros.
V mean_with_padding(NodeContext& node, V x, build::PoolSpec spec) {
  if (spec.ceil_mode)
    node.unsupported("legacy_pad",
                     "means with the padding of Caffe's rule over free dims are not implemented");
  x = build::padded_for(node, x, spec.windows, 0);
  return node.add("avg_pool", {x},
                  {{"kernel", spec.windows.kernel},
                   {"strides", spec.windows.strides},
                   {"dilations", spec.windows.dilations},
                   {"pads", spec.windows.pads},
                   {"ceil_mode", int64_t{0}},
                   {"count_include_pad", int64_t{1}}});
}

/// An axis that may be the rank: nothing is behind it.
int64_t split_axis(NodeContext& node, const char* name, V x) {
  const int64_t rank = node.rank(x), axis = node.integer(name, 1);
  return axis == rank ? rank : node.normalize_axis(axis, rank);
}

V turned(NodeContext& node, V x) {
  const int64_t rank = node.rank(x);
  if (rank < 2) node.invalid("a matrix of rank " + std::to_string(rank));
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return Compose(node).transpose(x, perm);
}

}  // namespace

void convert_conv(NodeContext& node) {
  const bool is_last = node.is_channels_last();
  const V weights = ordered_weights(node, node.operand(1), is_last), bias = optional_operand(node, 2);
  node.set_output(in_order(node, node.operand(0), is_last, [&](V x) {
    const LegacyPad legacy = legacy_pad_of(node);
    if (legacy == LegacyPad::kCaffe) node.unsupported("legacy_pad", "Caffe's rule is one of pools");
    build::ConvSpec spec;
    spec.windows = windows_over(node, x, kernel_of(node, weights, x), legacy);
    spec.groups = groups_of(node);
    return build::conv(node, x, weights, bias, spec);
  }));
}

// Weights [C_in,C_out/groups,spatial...]; adj: how much longer the result is.
void convert_conv_transpose(NodeContext& node) {
  const bool is_last = node.is_channels_last();
  const V weights = ordered_weights(node, node.operand(1), is_last), bias = optional_operand(node, 2);
  node.set_output(in_order(node, node.operand(0), is_last, [&](V x) {
    const ir::Ints kernel = kernel_of(node, weights, x);
    const LegacyPad legacy = legacy_pad_of(node);
    if (legacy == LegacyPad::kSame || legacy == LegacyPad::kCaffe)
      node.unsupported("legacy_pad", "pads that follow from the extents are not implemented");
    const size_t rank = kernel.size();
    const bool has_more = node.has("adjs") || node.has("adj") || node.has("adj_h");
    std::vector<int64_t> more(rank, 0);
    if (node.has("adjs")) {
      more = node.ints("adjs");
    } else if (node.has("adj")) {
      more.assign(rank, node.integer("adj"));
    } else if (has_more && rank == 2) {
      more = {node.integer("adj_h"), node.integer("adj_w")};
    }
    std::vector<V> operands{x, weights};
    if (bias != ir::kAbsent) operands.push_back(bias);
    return node.add("conv_transpose", operands,
                    {{"strides", window_numbers(node, "strides", "stride", rank)},
                     {"dilations", window_numbers(node, "dilations", "dilation", rank)},
                     {"pads", pads_of(node, rank)},
                     {"output_padding", more},
                     {"group", groups_of(node)}});
  }));
}

void convert_max_pool(NodeContext& node) {
  node.set_output(in_order(node, node.operand(0), node.is_channels_last(), [&](V x) {
    if (!node.flag("global_pooling", false)) return build::max_pool(node, x, pool_of(node, x));
    skip_windows(node);
    return Compose(node).reduce_spatial("reduce_max", x);
  }));
}

void convert_average_pool(NodeContext& node) {
  node.set_output(in_order(node, node.operand(0), node.is_channels_last(), [&](V x) {
    if (node.flag("global_pooling", false)) {
      skip_windows(node);
      return Compose(node).reduce_spatial("reduce_mean", x);
    }
    const build::PoolSpec spec = pool_of(node, x);
    return node.flag("count_include_pad", false) ? mean_with_padding(node, x, spec)
                                                 : build::avg_pool(node, x, spec);
  }));
}

void convert_global_average_pool(NodeContext& node) {
  skip_windows(node);
  node.has("global_pooling");
  node.set_output(in_order(node, node.operand(0), node.is_channels_last(),
                           [&](V x) { return Compose(node).reduce_spatial("reduce_mean", x); }));
}

// Weights [N,K], of FCTransposed [K,N].
void convert_fc(NodeContext& node) {
  Compose c(node);
  const bool is_transposed = node.op() == "FCTransposed";
  const V x = node.operand(0), weights = node.operand(1);
  const int64_t axis = split_axis(node, "axis", x);
  const V product = c.matmul(node.as_rows(x, axis),
                             node.as_rows(weights, split_axis(node, "axis_w", weights)), !is_transposed);
  const V y = c.add(product, node.operand(2));
  const ir::SymShape shape = node.shape(x);
  ir::SymShape to(shape.begin(), shape.begin() + axis);
  to.push_back(node.shape(y)[1]);
  node.set_output(c.reshape(y, to));
}

void convert_mat_mul(NodeContext& node) {
  const V a = node.operand(0), b = node.operand(1);
  V first = node.as_rows(a, split_axis(node, "axis_a", a)),
    second = node.as_rows(b, split_axis(node, "axis_b", b));
  if (node.flag("trans_a", false)) first = turned(node, first);
  node.set_output(Compose(node).matmul(first, second, node.flag("trans_b", false)));
}

// Batches go together; with broadcast they are numpy's.
void convert_batch_mat_mul(NodeContext& node) {
  V a = node.operand(0), b = node.operand(1);
  const bool is_any = node.flag("broadcast", false);
  if (node.rank(a) < 2 || node.rank(b) < 2)
    node.unsupported("broadcast", "operands of one axis are not implemented");
  if (!is_any && node.rank(a) != node.rank(b))
    node.invalid("operands of rank " + std::to_string(node.rank(a)) + " and " + std::to_string(node.rank(b)));
  if (node.flag("trans_a", false)) a = turned(node, a);
  if (node.flag("trans_b", false)) b = turned(node, b);
  node.set_output(Compose(node).matmul(a, b));
}

}  // namespace tensormill::frontend::caffe2
