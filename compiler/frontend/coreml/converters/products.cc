// Convolutions, pools and matrix products.
#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/numbers/einsum.h"
#include "compiler/frontend/coreml/converters/windows.h"

namespace tensormill::frontend::coreml {

namespace {

/// The extents of space of weights, which are numbers.
ir::Ints kernel_of(NodeContext& node, V weight, V map) {
  const ir::SymShape shape = node.shape(weight);
  if (shape.size() < 3 || shape.size() > 5 || shape.size() != node.shape(map).size() || !shape.is_constant())
    node.invalid("weights of shape " + to_string(shape) + " for an input of rank " +
                 std::to_string(node.rank(map)));
  return ir::SymShape(shape.begin() + 2, shape.end()).hints();
}

int64_t groups_of(NodeContext& node) {
  const int64_t groups = node.integer("groups", 1);
  if (groups < 1) node.invalid(std::to_string(groups) + " groups");
  return groups;
}

/// Pads of a transposed convolution, and how much longer the result is.
struct Cut {
  std::vector<int64_t> pads, more;
};

/// Of the whole result of windows of `reach` elements, of which `over` are too many.
void cut_axis(const std::string& pad_type, const std::vector<int64_t>& custom, int64_t over, size_t d,
              Cut& to) {
  const size_t rank = to.more.size();
  int64_t begin = 0;
  if (pad_type == "custom") {
    begin = custom[d];
  } else if (over > 0 && pad_type != "valid") {
    begin = pad_type == "same" ? over / 2 : over - over / 2;
  }
  to.pads[d] = begin;
  to.pads[d + rank] = std::max<int64_t>(over - begin, 0);
  to.more[d] = std::max<int64_t>(begin - over, 0);
}

Cut cut_of(NodeContext& node, V x, const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
           const std::vector<int64_t>& dilations) {
  const size_t rank = kernel.size();
  const std::string pad_type = pad_type_of(node);
  const ir::Ints custom = custom_pads(node, rank);
  Cut cut{std::vector<int64_t>(2 * rank, 0), std::vector<int64_t>(rank, 0)};
  const bool is_sized = node.has("output_shape");
  const ir::Ints out = is_sized ? node.ints("output_shape") : std::vector<int64_t>();
  if (is_sized && out.size() != rank + 2)
    node.invalid("an output_shape of " + std::to_string(out.size()) + " extents");
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
    int64_t over = 0;
    if (is_sized) {
      const ir::SymInt whole = (node.shape(x)[d + 2] - 1) * strides[d] + reach;
      over = whole - out[d + 2];
    } else if (pad_type == "custom") {
      over = custom[d] + custom[d + rank];
    } else if (pad_type != "valid") {
      over = reach - strides[d];
    }
    cut_axis(pad_type, custom, over, d, cut);
  }
  return cut;
}

ir::Attrs pool_attributes(const build::PoolSpec& spec) {
  return {{"kernel", spec.windows.kernel},        {"strides", spec.windows.strides},
          {"dilations", spec.windows.dilations},  {"pads", spec.windows.pads},
          {"ceil_mode", int64_t{spec.ceil_mode}}, {"count_include_pad", int64_t{1}}};
}

/// The mean of windows in which padding counts as zeros.
V mean_with_padding(NodeContext& node, V x, build::PoolSpec spec) {
  x = build::padded_for(node, x, spec.windows, 0);
  return node.add("avg_pool", {x}, pool_attributes(spec));
}

build::PoolSpec pool_of(NodeContext& node, V x) {
  const int64_t rank = node.rank(x);
  if (rank < 3 || rank > 5) node.invalid("the input has rank " + std::to_string(rank));
  const size_t spatial = static_cast<size_t>(rank) - 2;
  const ir::Ints kernel = node.ints("kernel_sizes");
  if (kernel.size() != spatial)
    node.invalid("kernel_sizes has " + std::to_string(kernel.size()) + " numbers");
  build::PoolSpec spec;
  spec.windows =
      windows_over(node, x, kernel, steps_of(node, "strides", spatial), std::vector<int64_t>(spatial, 1));
  spec.ceil_mode = node.flag("ceil_mode", false);
  return spec;
}

}  // namespace

ir::Ints steps_of(NodeContext& node, const char* name, size_t rank) {
  const ir::Ints steps = node.ints(name, std::vector<int64_t>(rank, 1));
  if (steps.size() != rank)
    node.invalid(std::string(name) + " has " + std::to_string(steps.size()) + " numbers");
  for (const int64_t step : steps)
    if (step < 1 || step > build::kMaxWindowNumber)
      node.invalid("a stride or dilation of " + std::to_string(step));
  return steps;
}

ir::Ints custom_pads(NodeContext& node, size_t rank) {
  const ir::Ints given = node.ints("pad", std::vector<int64_t>(2 * rank, 0));
  if (given.size() != 2 * rank) node.invalid("pad has " + std::to_string(given.size()) + " numbers");
  std::vector<int64_t> pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    pads[d] = given[2 * d];
    pads[d + rank] = given[2 * d + 1];
  }
  for (const int64_t pad : pads)
    if (pad < 0 || pad > build::kMaxWindowNumber) node.invalid("a pad of " + std::to_string(pad));
  return pads;
}

std::string pad_type_of(NodeContext& node) {
  const std::string type = node.text("pad_type", "valid");
  if (type != "valid" && type != "same" && type != "same_lower" && type != "custom")
    node.invalid("pad_type is \"" + type + "\"");
  return type;
}

build::Windows windows_over(NodeContext& node, V map, const std::vector<int64_t>& kernel,
                            std::vector<int64_t> strides, std::vector<int64_t> dilations) {
  for (const int64_t extent : kernel)
    if (extent < 1 || extent > build::kMaxWindowNumber) node.invalid("a window of " + std::to_string(extent));
  const size_t rank = kernel.size();
  build::Windows windows{kernel, std::move(strides), std::move(dilations), {}};
  windows.pads.assign(2 * rank, 0);
  const std::string type = pad_type_of(node);
  const ir::Ints custom = custom_pads(node, rank);
  if (type == "custom") windows.pads = custom;
  if (type.starts_with("same")) build::pad_same(windows, node.shape(map), type == "same");
  return windows;
}

namespace {

V conv_of(NodeContext& node, V x, V weight, V bias) {
  const ir::Ints kernel = kernel_of(node, weight, x);
  build::ConvSpec spec;
  spec.windows = windows_over(node, x, kernel, steps_of(node, "strides", kernel.size()),
                              steps_of(node, "dilations", kernel.size()));
  spec.groups = groups_of(node);
  return build::conv(node, x, weight, bias, spec);
}

}  // namespace

void convert_conv(NodeContext& node) {
  node.set_output(conv_of(node, node.tensor("x"), node.tensor("weight"), node.optional_tensor("bias")));
}

// Weights are bytes; a factor and a summand, of all or one a channel of the result, make real numbers of
// them.
void convert_conv_quantized(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x"), bytes = node.tensor("weight"), bias = node.optional_tensor("bias");
  const std::string kind = node.text("quantization_type");
  if (kind != "linear") node.unsupported("quantization_type", "\"" + kind + "\" is not implemented");
  const int64_t bits = node.integer("nbits", 8);
  if (bits < 1 || bits > 8) node.invalid("nbits is " + std::to_string(bits));
  const DType real = node.dtype(x);
  const auto along = [&](const char* name) {
    const V numbers = node.tensor(name);
    ir::SymShape to(node.shape(bytes).size(), 1);
    if (!to.empty()) to[0] = num_elements(node.shape(numbers));
    return c.reshape(c.cast(numbers, real), to);
  };
  const V weight = c.add(c.mul(c.cast(bytes, real), along("quant_scale")), along("quant_bias"));
  node.set_output(conv_of(node, x, weight, bias == ir::kAbsent ? bias : c.cast(bias, real)));
}

// Weights [C_in,C_out/groups,spatial...].
void convert_conv_transpose(NodeContext& node) {
  const V x = node.tensor("x"), weight = node.tensor("weight");
  const ir::Ints kernel = kernel_of(node, weight, x);
  const ir::Ints strides = steps_of(node, "strides", kernel.size()),
                 dilations = steps_of(node, "dilations", kernel.size());
  const Cut cut = cut_of(node, x, kernel, strides, dilations);
  std::vector<V> operands{x, weight};
  if (const V bias = node.optional_tensor("bias"); bias != ir::kAbsent) operands.push_back(bias);
  node.set_output(node.add("conv_transpose", operands,
                           {{"strides", strides},
                            {"dilations", dilations},
                            {"pads", cut.pads},
                            {"output_padding", cut.more},
                            {"group", groups_of(node)}}));
}

void convert_max_pool(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_output(build::max_pool(node, x, pool_of(node, x)));
}

void convert_avg_pool(NodeContext& node) {
  const V x = node.tensor("x");
  const build::PoolSpec spec = pool_of(node, x);
  const bool excludes = node.flag("exclude_padding_from_average", false);
  node.set_output(excludes ? build::avg_pool(node, x, spec) : mean_with_padding(node, x, spec));
}

// The root of the sum of squares. Windows that ceil_mode adds reach into pads.
void convert_l2_pool(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  build::PoolSpec spec = pool_of(node, x);
  if (spec.ceil_mode) {
    const ir::SymShape in = node.shape(x), out = node.shape(mean_with_padding(node, x, spec));
    if (!in.is_constant() || !out.is_constant())
      node.unsupported("ceil_mode", "windows that reach beyond a free dim's end are not implemented");
    build::Windows& windows = spec.windows;
    const size_t spatial = windows.kernel.size();
    for (size_t d = 0; d < spatial; ++d) {
      const int64_t reach = (out[d + 2].hint() - 1) * windows.strides[d] + windows.kernel[d].hint();
      windows.pads[d + spatial] = std::max<int64_t>(reach - in[d + 2].hint() - windows.pads[d], 0);
    }
    spec.ceil_mode = false;
  }
  const double elements = static_cast<double>(num_elements(spec.windows.kernel.hints()));
  node.set_output(c.unary("sqrt", c.times(mean_with_padding(node, c.mul(x, x), spec), elements)));
}

void convert_linear(NodeContext& node) {
  Compose c(node);
  const V y = c.matmul(node.tensor("x"), node.tensor("weight"), true);
  const V bias = node.optional_tensor("bias");
  node.set_output(bias == ir::kAbsent ? y : c.add(y, bias));
}

void convert_matmul(NodeContext& node) {
  const ir::Attrs attrs{{"transpose_a", int64_t{node.flag("transpose_x", false)}},
                        {"transpose_b", int64_t{node.flag("transpose_y", false)}}};
  node.set_output(node.add("matmul", {node.tensor("x"), node.tensor("y")}, attrs));
}

void convert_einsum(NodeContext& node) {
  node.set_output(build::einsum(node, node.text("equation"), node.tensors("values")));
}

void convert_batch_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x"), mean = node.tensor("mean"), variance = node.tensor("variance");
  const auto filled = [&](const char* name, double value) {
    if (node.has(name)) return node.tensor(name);
    const ir::SymShape shape = node.shape(mean);
    return c.doubles(node.dtype(x),
                     std::vector<double>(static_cast<size_t>(num_elements(shape.hints())), value), shape);
  };
  node.set_output(node.add("batch_norm", {x, filled("gamma", 1), filled("beta", 0), mean, variance},
                           {{"epsilon", node.real("epsilon", 1e-5)}}));
}

}  // namespace tensormill::frontend::coreml
