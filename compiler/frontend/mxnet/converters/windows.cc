// Convolutions, pools and layers of products.
#include "compiler/frontend/mxnet/converters/windows.h"

#include <algorithm>

#include "compiler/build/maps/conv_pool.h"

namespace tensormill::frontend::mxnet {

namespace {

/// The kernel that the attribute says, which is that of the weights.
ir::Ints kernel_of(NodeContext& node, V x, V weight) {
  const size_t spatial = node.shape(x).size() - std::min<size_t>(node.shape(x).size(), 2);
  const ir::Ints kernel = along_space(node, "kernel", spatial, 1, 1);
  const ir::SymShape shape = node.shape(weight);
  bool fits = spatial >= 1 && spatial <= 3 && shape.size() == spatial + 2;
  for (size_t d = 0; fits && d < spatial; ++d) fits = same(shape[d + 2], kernel[d]);
  if (!fits)
    node.invalid("weights of shape " + to_string(shape) + " for an input of shape " +
                 to_string(node.shape(x)));
  return kernel;
}

V bias_of(NodeContext& node, bool otherwise) {
  return node.flag("no_bias", otherwise) ? ir::kAbsent : node.input_or(2, "bias");
}

std::vector<int64_t> both_ends(const std::vector<int64_t>& pads) {
  std::vector<int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

int64_t groups_of(NodeContext& node) {
  const int64_t groups = node.integer("num_group", 1);
  if (groups < 1) node.invalid(std::to_string(groups) + " groups");
  return groups;
}

void check_filters(NodeContext& node, V weight, size_t axis, int64_t times) {
  const ir::SymInt filters = node.product(node.shape(weight)[axis], times);
  if (!same(filters, node.integer("num_filter")))
    node.invalid("num_filter is " + std::to_string(node.integer("num_filter")) + ", the weights have shape " +
                 to_string(node.shape(weight)));
}

/// A pool's windows, and what its convention adds behind the last whole one.
struct Pool {
  build::PoolSpec spec;
  std::vector<int64_t> behind;  ///< elements that the last window reaches beyond the padding
  double elements = 1;          ///< of a window
};

/// Where the last window would begin behind all elements it has none, which no window of the graph is.
void check_last_window(NodeContext& node, const ir::SymInt& extent, int64_t kernel, int64_t stride,
                       int64_t pad) {
  const ir::SymInt last = ceildiv(extent + 2 * pad - kernel, stride) * stride;
  if (stride > kernel - pad && !ir::demand(ir::Relation::kLess, last, extent + pad))
    node.unsupported("pooling_convention", "windows of no elements are not implemented");
}

Pool pool_of(NodeContext& node, V x) {
  const size_t spatial = node.shape(x).size() - 2;
  Pool pool;
  const ir::Ints kernel = along_space(node, "kernel", spatial, 1, 1),
                 strides = along_space(node, "stride", spatial, 1, 1),
                 pads = along_space(node, "pad", spatial, 0, 0);
  pool.spec.windows = build::Windows{kernel, strides, std::vector<int64_t>(spatial, 1), both_ends(pads)};
  const std::string convention = node.text("pooling_convention", "valid");
  if (convention != "valid" && convention != "full")
    node.unsupported("pooling_convention", "\"" + convention.substr(0, 40) + "\" is not implemented");
  pool.spec.ceil_mode = convention == "full";
  pool.behind.assign(spatial, 0);
  for (size_t d = 0; d < spatial; ++d) {
    pool.elements *= static_cast<double>(kernel[d]);
    if (!pool.spec.ceil_mode) continue;
    const ir::SymInt extent = node.shape(x)[d + 2];
    check_last_window(node, extent, kernel[d], strides[d], pads[d]);
    const ir::SymInt padded = extent + 2 * pads[d] - kernel[d];
    if (extent.is_constant())
      pool.behind[d] = ir::SymInt(ceildiv(padded, strides[d]) * strides[d] - padded).hint();
  }
  return pool;
}

ir::Attrs pool_attributes(const build::PoolSpec& spec, bool counts_pads) {
  return {{"kernel", spec.windows.kernel},        {"strides", spec.windows.strides},
          {"dilations", spec.windows.dilations},  {"pads", spec.windows.pads},
          {"ceil_mode", int64_t{spec.ceil_mode}}, {"count_include_pad", int64_t{counts_pads}}};
}

/// Sums of windows in which padding counts as zeros: their means are of as many elements each.
V window_sums(NodeContext& node, V x, Pool pool) {
  if (pool.spec.ceil_mode) {
    const ir::SymShape shape = node.shape(x);
    if (!ir::SymShape(shape.begin() + 2, shape.end()).is_constant())
      node.unsupported("pooling_convention", "full sums of free extents are not implemented");
    for (size_t d = 0; d < pool.behind.size(); ++d)
      pool.spec.windows.pads[d + pool.behind.size()] += pool.behind[d];
    pool.spec.ceil_mode = false;
  }
  return Compose(node).times(node.add("avg_pool", {x}, pool_attributes(pool.spec, true)), pool.elements);
}

V powered_sum(NodeContext& node, const std::function<V(V)>& sum, V x) {
  Compose c(node);
  const auto p = static_cast<double>(node.integer("p_value"));
  if (p < 1) node.invalid("p_value is " + std::to_string(p));
  const V size = c.unary("abs", x);
  const V y = sum(p == 1 ? size : c.binary("pow", size, c.number(size, p)));
  return p == 1 ? y : c.binary("pow", y, c.number(y, 1 / p));
}

V pooled_whole(NodeContext& node, V x, const std::string& type) {
  Compose c(node);
  for (const char* name : {"kernel", "stride", "pad", "pooling_convention", "count_include_pad"})
    node.skip(name);
  if (type == "max") return c.reduce_spatial("reduce_max", x);
  if (type == "avg") return c.reduce_spatial("reduce_mean", x);
  const auto sum = [&](V of) { return c.reduce_spatial("reduce_sum", of); };
  return type == "sum" ? sum(x) : powered_sum(node, sum, x);
}

V pooled(NodeContext& node, V x, const std::string& type) {
  const Pool pool = pool_of(node, x);
  const bool counts_pads = node.flag("count_include_pad", true);
  if (type == "max") return build::max_pool(node, x, pool.spec);
  if (type == "avg") return node.add("avg_pool", {x}, pool_attributes(pool.spec, counts_pads));
  const auto sum = [&](V of) { return window_sums(node, of, pool); };
  return type == "sum" ? sum(x) : powered_sum(node, sum, x);
}

}  // namespace

ir::Ints along_space(NodeContext& node, const char* name, size_t rank, int64_t least, int64_t otherwise) {
  ir::Ints all = node.ints(name, std::vector<int64_t>());
  if (all.empty()) all.assign(rank, otherwise);
  if (all.size() != rank)
    node.invalid("attribute " + std::string(name) + " has " + std::to_string(all.size()) + " numbers for " +
                 std::to_string(rank) + " axes of space");
  for (const int64_t each : all)
    if (each < least || each > build::kMaxWindowNumber)
      node.invalid("attribute " + std::string(name) + " has the number " + std::to_string(each));
  return all;
}

void check_layout(NodeContext& node) {
  const std::string layout = node.text("layout", "NC");
  if (!layout.starts_with("NC"))
    node.unsupported("layout", "\"" + layout.substr(0, 40) + "\" is not implemented");
}

void convert_convolution(NodeContext& node) {
  check_layout(node);
  const V x = node.input(0), weight = node.input_or(1, "weight");
  const ir::Ints kernel = kernel_of(node, x, weight);
  check_filters(node, weight, 0, 1);
  build::ConvSpec spec;
  spec.windows = build::Windows{kernel, along_space(node, "stride", kernel.size(), 1, 1),
                                along_space(node, "dilate", kernel.size(), 1, 1),
                                both_ends(along_space(node, "pad", kernel.size(), 0, 0))};
  spec.groups = groups_of(node);
  node.set_output(build::conv(node, x, weight, bias_of(node, false), spec));
}

// Weights [C_in,C_out/groups,spatial...]. A target_shape says what is cut off; the odd one at the end.
void convert_deconvolution(NodeContext& node) {
  check_layout(node);
  const V x = node.input(0), weight = node.input_or(1, "weight");
  const ir::Ints kernel = kernel_of(node, x, weight);
  const size_t spatial = kernel.size();
  const int64_t groups = groups_of(node);
  check_filters(node, weight, 1, groups);
  const ir::Ints strides = along_space(node, "stride", spatial, 1, 1),
                 dilations = along_space(node, "dilate", spatial, 1, 1),
                 target = along_space(node, "target_shape", spatial, 0, 0);
  ir::Ints pads = along_space(node, "pad", spatial, 0, 0), more = along_space(node, "adj", spatial, 0, 0);
  for (size_t d = 0; d < spatial; ++d) {
    if (std::all_of(target.begin(), target.end(), [](int64_t each) { return each == 0; })) break;
    const ir::SymInt whole = (node.shape(x)[d + 2] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1;
    if (!whole.is_constant()) node.unsupported("target_shape", "of a free extent it is not implemented");
    const int64_t over = whole.hint() - target[d];
    if (over < 0) node.invalid("target_shape is larger than " + to_string(whole));
    pads[d] = (over + 1) / 2;
    more[d] = over % 2;
  }
  std::vector<V> operands{x, weight};
  if (const V bias = bias_of(node, true); bias != ir::kAbsent) operands.push_back(bias);
  node.set_output(node.add("conv_transpose", operands,
                           {{"strides", strides},
                            {"dilations", dilations},
                            {"pads", both_ends(pads)},
                            {"output_padding", more},
                            {"group", groups}}));
}

void convert_fully_connected(NodeContext& node) {
  Compose c(node);
  V x = node.input(0);
  const V weight = node.input_or(1, "weight");
  if (node.rank(weight) != 2 || node.rank(x) < 1)
    node.invalid("weights of shape " + to_string(node.shape(weight)) + " for an input of shape " +
                 to_string(node.shape(x)));
  if (!same(node.shape(weight)[0], node.integer("num_hidden")))
    node.invalid("num_hidden is " + std::to_string(node.integer("num_hidden")) + ", the weights have shape " +
                 to_string(node.shape(weight)));
  const ir::SymShape shape = node.shape(x);
  if (node.flag("flatten", true))
    x = c.reshape(x, {shape[0], num_elements(ir::SymShape(shape.begin() + 1, shape.end()))});
  const V y = c.matmul(x, weight, true), bias = bias_of(node, false);
  node.set_output(bias == ir::kAbsent ? y : c.add(y, bias));
}

void convert_pooling(NodeContext& node) {
  check_layout(node);
  const V x = node.input(0);
  if (node.rank(x) < 3 || node.rank(x) > 5)
    node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const std::string type = node.text("pool_type", "max");
  if (type != "max" && type != "avg" && type != "sum" && type != "lp")
    node.invalid("pool_type is \"" + type.substr(0, 40) + "\"");
  if (type != "lp") node.skip("p_value");
  node.set_output(node.flag("global_pool", false) ? pooled_whole(node, x, type) : pooled(node, x, type));
}

}  // namespace tensormill::frontend::mxnet
