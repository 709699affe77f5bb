#include <algorithm>

#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

/// Larger numbers are no geometry; below it products of two stay inside int64.
constexpr int64_t kMaxWindow = int64_t{1} << 30;

struct Windows {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  ///< begins, then ends
};

void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length) {
  if (values.size() == length) return;
  context.invalid(std::string(name) + " has " + std::to_string(values.size()) + " values, expected " +
                  std::to_string(length));
}

/// SAME_UPPER and SAME_LOWER: the output has ceil(in / stride) elements; the odd pad goes to the end or the
/// begin.
std::vector<int64_t> same_pads(const Shape& spatial, const Windows& windows, bool upper) {
  std::vector<int64_t> pads(2 * spatial.size(), 0);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const int64_t outputs = (spatial[d] + windows.strides[d] - 1) / windows.strides[d];
    const int64_t reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * windows.strides[d] + reach - spatial[d]);
    pads[d] = upper ? total / 2 : total - total / 2;
    pads[d + spatial.size()] = total - pads[d];
  }
  return pads;
}

Windows read_windows(const NodeContext& context, const Shape& shape, std::vector<int64_t> kernel) {
  if (shape.size() < 3)
    context.invalid("the input has shape " + to_string(shape) + ", expected [N,C,spatial...]");
  const Shape spatial(shape.begin() + 2, shape.end());
  const size_t rank = spatial.size();
  Windows windows;
  windows.kernel = std::move(kernel);
  windows.strides = context.ints_attr("strides", std::vector<int64_t>(rank, 1));
  windows.dilations = context.ints_attr("dilations", std::vector<int64_t>(rank, 1));
  check_length(context, "kernel_shape", windows.kernel, rank);
  check_length(context, "strides", windows.strides, rank);
  check_length(context, "dilations", windows.dilations, rank);
  for (size_t d = 0; d < rank; ++d) {
    for (int64_t value : {windows.kernel[d], windows.strides[d], windows.dilations[d]}) {
      if (value >= 1 && value <= kMaxWindow) continue;
      context.invalid("kernel_shape, strides and dilations must be 1 to " + std::to_string(kMaxWindow));
    }
  }
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    windows.pads = same_pads(spatial, windows, auto_pad == "SAME_UPPER");
  } else {
    windows.pads = auto_pad == "VALID" ? std::vector<int64_t>(2 * rank, 0)
                                       : context.ints_attr("pads", std::vector<int64_t>(2 * rank, 0));
  }
  check_length(context, "pads", windows.pads, 2 * rank);
  if (std::any_of(windows.pads.begin(), windows.pads.end(),
                  [](int64_t pad) { return pad < 0 || pad > kMaxWindow; }))
    context.invalid("pads must not be negative");
  return windows;
}

std::optional<UnsupportedForm> check_auto_pad(const NodeProto& node) {
  const AttributeProto* attribute = node.find("auto_pad");
  if (attribute == nullptr) return std::nullopt;
  for (std::string_view known : {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}) {
    if (attribute->s == known) return std::nullopt;
  }
  return UnsupportedForm{"auto_pad", "value \"" + std::string(attribute->s) + "\" is not implemented"};
}

std::optional<UnsupportedForm> check_rank(const NodeProto& node) {
  const AttributeProto* kernel = node.find("kernel_shape");
  if (kernel == nullptr || kernel->ints.size() <= 3) return std::nullopt;
  return UnsupportedForm{"kernel_shape", "more than 3 spatial dims are not implemented"};
}

ir::Attrs pool_attrs(const NodeContext& context, const Windows& windows) {
  return {{"kernel", windows.kernel},
          {"strides", windows.strides},
          {"dilations", windows.dilations},
          {"pads", windows.pads},
          {"ceil_mode", context.int_attr("ceil_mode", 0)}};
}

}  // namespace

std::optional<UnsupportedForm> check_conv(const NodeProto& node, int64_t) {
  if (std::optional<UnsupportedForm> form = check_auto_pad(node)) return form;
  return check_rank(node);
}

std::optional<UnsupportedForm> check_pool(const NodeProto& node, int64_t opset) {
  return check_conv(node, opset);
}

std::optional<UnsupportedForm> check_max_pool(const NodeProto& node, int64_t opset) {
  if (node.outputs.size() > 1 && !node.outputs[1].empty())
    return UnsupportedForm{"output 1", "indices are not implemented"};
  const AttributeProto* order = node.find("storage_order");
  if (order != nullptr && order->i != 0)
    return UnsupportedForm{"storage_order", "column major is not implemented"};
  return check_pool(node, opset);
}

void convert_conv(NodeContext& context) {
  const Shape& weights = context.type(context.input(1)).shape;
  if (weights.size() < 3)
    context.invalid("the weights have shape " + to_string(weights) + ", expected [M,C/group,kernel...]");
  const std::vector<int64_t> kernel(weights.begin() + 2, weights.end());
  if (context.has_attr("kernel_shape") && context.ints_attr("kernel_shape", {}) != kernel) {
    context.invalid("kernel_shape is " + to_string(context.ints_attr("kernel_shape", {})) +
                    ", the weights have " + to_string(kernel));
  }
  const Windows windows = read_windows(context, context.type(context.input(0)).shape, kernel);
  std::vector<ir::ValueId> inputs{context.input(0), context.input(1)};
  if (context.has_input(2)) inputs.push_back(context.input(2));
  const ir::Attrs attrs{{"strides", windows.strides},
                        {"dilations", windows.dilations},
                        {"pads", windows.pads},
                        {"group", context.int_attr("group", 1)}};
  context.set_output(0, context.add("conv", std::move(inputs), attrs));
}

void convert_max_pool(NodeContext& context) {
  const Windows windows =
      read_windows(context, context.type(context.input(0)).shape, context.required_ints("kernel_shape"));
  context.set_output(0, context.add("max_pool", {context.input(0)}, pool_attrs(context, windows)));
}

void convert_average_pool(NodeContext& context) {
  const Windows windows =
      read_windows(context, context.type(context.input(0)).shape, context.required_ints("kernel_shape"));
  ir::Attrs attrs = pool_attrs(context, windows);
  attrs.set("count_include_pad", context.int_attr("count_include_pad", 0));
  context.set_output(0, context.add("avg_pool", {context.input(0)}, attrs));
}

void convert_global_pool(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  if (rank < 3) context.invalid("the input has rank " + std::to_string(rank) + ", expected [N,C,spatial...]");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  const std::string op = context.node().op_type == "GlobalMaxPool" ? "reduce_max" : "reduce_mean";
  context.set_output(0, context.add(op, {context.input(0)}, {{"axes", axes}, {"keepdims", int64_t{1}}}));
}

}  // namespace tensormill::frontend::onnx
