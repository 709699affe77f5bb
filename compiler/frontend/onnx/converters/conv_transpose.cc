// Transposed convolutions, whose pads may follow from the shape of the result.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/counted_windows.h"
#include "compiler/frontend/onnx/converters/windows.h"

namespace tensormill::frontend::onnx {

namespace {

/// `wanted` elements of x along spatial axis `d`, whose number of too many is cut in half, or one more in
/// front unless `upper`; behind too few of them come zeros. In a sample: where the part starts follows from
/// the extent, and is what a run works out.
ir::ValueId middle_of(NodeContext& context, ir::ValueId x, size_t d, int64_t wanted, bool upper) {
  Compose c(context);
  const auto number = [&](int64_t value) { return c.dims({value}, {1}); };
  const ir::SymInt axis = static_cast<int64_t>(d) + 2, extent = c.shape(x)[d + 2];
  const ir::ValueId whole = number(extent);
  const ir::ValueId over = c.binary("max", c.sub(whole, number(wanted)), number(0));
  const ir::ValueId before = c.div(upper ? over : c.add(over, number(1)), number(2));
  const ir::ValueId places = c.add(c.iota(wanted), before);
  const ir::ValueId part = c.gather(x, c.binary("min", places, number(extent - 1)), axis);
  ir::SymShape along(c.shape(x).size(), 1);
  along[d + 2] = wanted;
  return c.where(c.reshape(c.binary("less", places, whole), along), part, c.number(part, 0));
}

/// A transposed convolution whose result has the extents `wanted`, in a sample.
ir::ValueId transposed_to_shape(NodeContext& context, const Windows& windows,
                                const std::vector<int64_t>& extra, const std::vector<int64_t>& wanted,
                                bool upper) {
  Compose c(context);
  const size_t rank = wanted.size();
  ir::ValueId y = context.add("conv_transpose", {context.input(0), context.input(1)},
                              {{"strides", windows.strides},
                               {"dilations", windows.dilations},
                               {"pads", std::vector<int64_t>(2 * rank, 0)},
                               {"output_padding", extra},
                               {"group", context.int_attr("group", 1)}});
  for (size_t d = 0; d < rank; ++d) y = middle_of(context, y, d, wanted[d], upper);
  if (!context.has_input(2)) return y;
  ir::SymShape channels(rank + 2, 1);
  channels[1] = c.shape(y)[1];
  return c.add(y, c.reshape(context.input(2), channels));
}

}  // namespace

// The output is what the pads leave of the whole; given its shape, or "same", the pads follow from it.
void convert_conv_transpose(NodeContext& context) {
  const ir::SymShape x = context.type(context.input(0)).shape, w = context.type(context.input(1)).shape;
  if (w.size() < 3 || w.size() != x.size())
    context.invalid("the weights have shape " + to_string(w) + ", the input " + to_string(x));
  const size_t rank = w.size() - 2;
  Windows windows = read_windows(context, x, std::vector<int64_t>(w.begin() + 2, w.end()));
  std::vector<int64_t> extra = context.ints_attr("output_padding", std::vector<int64_t>(rank, 0));
  check_length(context, "output_padding", extra, rank);
  const std::string auto_pad = context.string_attr("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  std::vector<int64_t> wanted = context.ints_attr("output_shape", {});
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  for (size_t d = 0; same && wanted.size() < rank; ++d)
    wanted.push_back(context.product(x[d + 2], windows.strides[d]));
  if (!wanted.empty()) check_length(context, "output_shape", wanted, rank);
  if (context.is_sample() && context.has_attr("output_shape")) {
    const ir::ValueId y = transposed_to_shape(context, windows, extra, wanted, auto_pad == "SAME_UPPER");
    return context.set_output(0, y);
  }
  for (size_t d = 0; d < wanted.size(); ++d) {
    const int64_t reach = context.product(windows.kernel[d] - 1, windows.dilations[d]) + 1;
    const int64_t total = context.product(x[d + 2] - 1, windows.strides[d]) + extra[d] + reach - wanted[d];
    const int64_t pads = std::max<int64_t>(total, 0);
    extra[d] += pads - total;
    // Without auto_pad, too, the odd one is at the start.
    windows.pads[d] = auto_pad == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
    windows.pads[d + rank] = pads - windows.pads[d];
  }
  const auto transposed = [&](ir::ValueId whole) {
    std::vector<ir::ValueId> inputs{whole, context.input(1)};
    if (context.has_input(2)) inputs.push_back(context.input(2));
    return context.add("conv_transpose", std::move(inputs),
                       {{"strides", windows.strides},
                        {"dilations", windows.dilations},
                        {"pads", windows.pads},
                        {"output_padding", extra},
                        {"group", context.int_attr("group", 1)}});
  };
  // A shape that is given is one for one extent.
  const bool is_fixed = context.has_attr("output_shape");
  context.set_output(0, is_fixed ? transposed(context.input(0))
                                 : from_windows(context, context.input(0), windows, extra, transposed));
}

}  // namespace tensormill::frontend::onnx
