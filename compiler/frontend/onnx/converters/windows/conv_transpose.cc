// Transposed convolutions, whose pads may follow from the shape of the result.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/windows/windows.h"

namespace tensormill::frontend::onnx {

namespace {

/// `wanted` elements of x along each spatial axis: of those that are too many half is cut off in front, or
/// one more unless `upper`; behind too few come zeros.
ir::ValueId middle_of(NodeContext& context, ir::ValueId x, const ir::SymShape& wanted, bool upper) {
  const ir::SymShape whole = context.type(x).shape;
  ir::SymShape extents = whole, starts(whole.size(), 0), pads(2 * whole.size(), 0);
  for (size_t d = 2; d < whole.size(); ++d) {
    const ir::SymInt over = max(whole[d] - wanted[d - 2], 0);
    starts[d] = upper ? floordiv(over, 2) : ceildiv(over, 2);
    pads[d + whole.size()] = max(wanted[d - 2] - whole[d], 0);
    extents[d] = wanted[d - 2];
  }
  const ir::ValueId padded =
      context.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  const ir::SymShape steps(whole.size(), 1);
  return context.add("slice", {padded}, {{"starts", starts}, {"extents", extents}, {"steps", steps}});
}

/// What the node makes of x with those pads, with or without its bias.
ir::ValueId transposed(NodeContext& context, ir::ValueId x, const Windows& windows,
                       const std::vector<int64_t>& extra, bool with_bias) {
  std::vector<ir::ValueId> inputs{x, context.input(1)};
  if (with_bias && context.has_input(2)) inputs.push_back(context.input(2));
  return context.add("conv_transpose", std::move(inputs),
                     {{"strides", windows.strides},
                      {"dilations", windows.dilations},
                      {"pads", windows.pads},
                      {"output_padding", extra},
                      {"group", context.int_attr("group", 1)}});
}

/// A result of the extents `wanted`: what lies in the middle of the whole.
ir::ValueId transposed_to_shape(NodeContext& context, Windows windows, const std::vector<int64_t>& extra,
                                const ir::SymShape& wanted, bool upper) {
  Compose c(context);
  windows.pads.assign(windows.pads.size(), 0);
  const ir::ValueId whole = transposed(context, context.input(0), windows, extra, false);
  const ir::ValueId y = middle_of(context, whole, wanted, upper);
  if (!context.has_input(2)) return y;
  ir::SymShape channels(c.shape(y).size(), 1);
  channels[1] = c.shape(y)[1];
  return c.add(y, c.reshape(context.input(2), channels));
}

}  // namespace

// The output is what the pads leave of the whole; given its shape, or "same", the pads follow from it.
void convert_conv_transpose(NodeContext& context) {
  context.require_bound_extents(context.input(0), 2);
  const ir::SymShape x = context.type(context.input(0)).shape, w = context.type(context.input(1)).shape;
  if (w.size() < 3 || w.size() != x.size())
    context.invalid("the weights have shape " + to_string(w) + ", the input " + to_string(x));
  const size_t rank = w.size() - 2;
  Windows windows = read_windows(context, x, ir::SymShape(w.begin() + 2, w.end()));
  ir::Ints extra = context.ints_attr("output_padding", std::vector<int64_t>(rank, 0));
  check_length(context, "output_padding", extra, rank);
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", upper = auto_pad == "SAME_UPPER";
  const ir::Ints given = context.ints_attr("output_shape", {});
  ir::SymShape wanted(given.begin() + (given.size() == rank + 2 ? 2 : 0), given.end());
  for (size_t d = 0; same && wanted.size() < rank; ++d)
    wanted.push_back(context.product(x[d + 2], windows.strides[d]));
  if (!wanted.empty() && wanted.size() != rank) check_length(context, "output_shape", given, rank);
  ir::SymShape too_many(wanted.size(), 0);
  for (size_t d = 0; d < wanted.size(); ++d) {
    const ir::SymInt reach = context.product(windows.kernel[d] - 1, windows.dilations[d]) + 1;
    too_many[d] = context.product(x[d + 2] - 1, windows.strides[d]) + extra[d] + reach - wanted[d];
  }
  if (!too_many.is_constant())
    return context.set_output(0, transposed_to_shape(context, windows, extra, wanted, upper));
  for (size_t d = 0; d < wanted.size(); ++d) {
    const int64_t total = too_many[d].hint(), pads = std::max<int64_t>(total, 0);
    extra[d] += pads - total;
    // Without auto_pad, too, the odd one is at the start.
    windows.pads[d] = upper ? pads / 2 : pads - pads / 2;
    windows.pads[d + rank] = pads - windows.pads[d];
  }
  context.set_output(0, transposed(context, context.input(0), windows, extra, true));
}

}  // namespace tensormill::frontend::onnx
