#include "compiler/frontend/onnx/converters/windows.h"

#include <algorithm>
#include <utility>

#include "compiler/frontend/onnx/converters/compose.h"

namespace tensormill::frontend::onnx {

namespace {

/// SAME_UPPER and SAME_LOWER: the output has ceil(in / stride) elements; the odd pad goes to the end or the
/// begin.
ir::SymShape same_pads(const ir::SymShape& spatial, const Windows& windows, bool upper) {
  ir::SymShape pads(2 * spatial.size(), 0);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const ir::SymInt outputs = ceildiv(spatial[d], windows.strides[d]);
    const int64_t reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const ir::SymInt total = max((outputs - 1) * windows.strides[d] + reach - spatial[d], 0);
    pads[d] = upper ? floordiv(total, 2) : total - floordiv(total, 2);
    pads[d + spatial.size()] = total - pads[d];
  }
  return pads;
}

/// The windows' part of x along spatial axis `d`, in front of and behind which `wide` elements are padded.
/// Where it starts follows from the extent: what a run works out, since of an extent that is a quotient
/// itself it may be no formula.
ir::ValueId part_under_windows(NodeContext& context, ir::ValueId x, const Windows& windows, size_t d,
                               int64_t extent, int64_t wide) {
  Compose c(context);
  const auto number = [&](int64_t value) { return c.dims({value}, {1}); };
  const int64_t stride = windows.strides[d], reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
  const int64_t under = (extent + stride - 1) / stride * stride - stride + reach;
  const ir::ValueId given = number(extent);
  const ir::ValueId steps = c.div(c.add(given, number(stride - 1)), number(stride));
  const ir::ValueId needed = c.add(c.mul(steps, number(stride)), number(reach - stride));
  const ir::ValueId total = c.binary("max", c.sub(needed, given), number(0));
  const ir::ValueId before = c.div(windows.upper ? total : c.add(total, number(1)), number(2));
  const ir::ValueId places = c.add(c.iota(under), c.sub(number(wide), before));
  return c.gather(x, places, static_cast<int64_t>(d) + 2);
}

}  // namespace

void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length) {
  if (values.size() == length) return;
  context.invalid(std::string(name) + " has " + std::to_string(values.size()) + " values, expected " +
                  std::to_string(length));
}

Windows read_windows(const NodeContext& context, const ir::SymShape& shape, std::vector<int64_t> kernel) {
  if (shape.size() < 3)
    context.invalid("the input has shape " + to_string(shape) + ", expected [N,C,spatial...]");
  const ir::SymShape spatial(shape.begin() + 2, shape.end());
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
      if (value >= 1 && value <= kMaxWindowNumber) continue;
      context.invalid("kernel_shape, strides and dilations must be 1 to " + std::to_string(kMaxWindowNumber));
    }
  }
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    windows.same = true;
    windows.upper = auto_pad == "SAME_UPPER";
    const ir::SymShape pads = same_pads(spatial, windows, windows.upper);
    windows.pads = pads.is_constant() ? pads.hints() : Shape(2 * rank, 0);
    if (!pads.is_constant()) windows.symbolic_pads = pads;
  } else {
    windows.pads = auto_pad == "VALID" ? std::vector<int64_t>(2 * rank, 0)
                                       : context.ints_attr("pads", std::vector<int64_t>(2 * rank, 0));
  }
  check_length(context, "pads", windows.pads, 2 * rank);
  if (std::any_of(windows.pads.begin(), windows.pads.end(),
                  [](int64_t pad) { return pad < 0 || pad > kMaxWindowNumber; }))
    context.invalid("pads must not be negative");
  return windows;
}

// More is padded than is needed and the rest cut off, so that the nodes are of one form whatever the pads
// are.
ir::ValueId padded_for(NodeContext& context, ir::ValueId x, Windows& windows, double value) {
  if (!windows.symbolic_pads.empty()) {
    const size_t dims = windows.kernel.size();
    const ir::SymShape given = std::exchange(windows.symbolic_pads, {});
    ir::SymShape all(2 * (dims + 2), 0);
    std::copy_n(given.begin(), dims, all.begin() + 2);
    std::copy_n(given.begin() + static_cast<std::ptrdiff_t>(dims), dims,
                all.begin() + static_cast<std::ptrdiff_t>(dims) + 4);
    return context.add("pad", {x}, {{"pads", all}, {"mode", std::string("constant")}, {"value", value}});
  }
  if (!windows.same || !context.is_sample()) return x;
  const ir::SymShape shape = context.type(x).shape;
  const size_t rank = windows.kernel.size();
  std::vector<int64_t> pads(2 * shape.size(), 0);
  std::vector<int64_t> wide(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const bool is_fixed = windows.strides[d] == 1;
    wide[d] = windows.kernel[d] * windows.dilations[d] + windows.strides[d];
    pads[d + 2] = is_fixed ? windows.pads[d] : wide[d];
    pads[d + 2 + shape.size()] = is_fixed ? windows.pads[d + rank] : wide[d];
  }
  x = context.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", value}});
  for (size_t d = 0; d < rank; ++d) {
    if (windows.strides[d] != 1) x = part_under_windows(context, x, windows, d, shape[d + 2], wide[d]);
  }
  windows.pads.assign(2 * rank, 0);
  return x;
}

Windows read_pool_windows(NodeContext& context, ir::ValueId x) {
  const ir::SymShape shape = context.type(x).shape;
  Windows windows = read_windows(context, shape, context.required_ints("kernel_shape"));
  // In a sample, whose extents stand for any, one window of an axis that is too short would be no formula.
  if (windows.same || context.is_sample() || !context.data_shape(x).extents.empty()) return windows;
  const bool is_ceil = context.int_attr("ceil_mode", 0) != 0;
  const size_t rank = windows.kernel.size();
  bool is_short = false;
  ir::SymShape pooled(rank);
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt stride = windows.strides[d], begin = shape[d + 2] + windows.pads[d];
    const ir::SymInt lacks =
        (windows.kernel[d] - 1) * windows.dilations[d] + 1 - begin - windows.pads[d + rank];
    if (lacks <= 0) {
      pooled[d] = floordiv(-lacks, stride) + 1;
      if (is_ceil) pooled[d] = max(pooled[d], min(ceildiv(-lacks, stride) + 1, ceildiv(begin, stride)));
      continue;
    }
    pooled[d] = int64_t{-lacks} / windows.strides[d] + 1;
    if (shape[d + 2] == 0 || pooled[d] < 0) return windows;
    is_short = true;
    // What is in the only window, and is not taken, does not matter.
    if (pooled[d] == 0) windows.pads[d + rank] += lacks;
  }
  if (is_short) windows.pooled = std::move(pooled);
  return windows;
}

}  // namespace tensormill::frontend::onnx
