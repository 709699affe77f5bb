// Tensors of one number, and of numbers in steps.
#include <algorithm>
#include <cmath>

#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

void convert_fill(NodeContext& node) {
  const ir::SymShape shape = node.numbers("shape", 0);
  node.set_output(Compose(node).filled(node.output_dtype(), shape, node.real("value", 0)));
}

void convert_fill_like(NodeContext& node) {
  const ir::SymShape shape = node.shape(node.tensor("ref_tensor"));
  node.set_output(Compose(node).filled(node.output_dtype(), shape, node.real("value", 0)));
}

namespace {

/// From a start, which may be free as the end may, as many as there are whole steps begun before the end.
void set_whole_range(NodeContext& node) {
  Compose c(node);
  const int64_t step = node.integer("step");
  if (step == 0) node.invalid("a range in steps of 0");
  const ir::SymInt start = node.number("start"), end = node.number("end");
  const ir::SymInt count =
      step > 0 ? floordiv(end - start + (step - 1), step) : floordiv(start - end - step - 1, -step);
  V places = c.iota(max(count, 0));
  if (step != 1) places = c.times(places, static_cast<double>(step));
  if (!same(start, 0)) places = c.add(places, c.dims({start}, {}));
  node.set_cast(0, places);
}

}  // namespace

void convert_range_1d(NodeContext& node) {
  Compose c(node);
  if (!is_float(node.output_dtype())) return set_whole_range(node);
  const double start = node.real("start"), end = node.real("end"), step = node.real("step");
  const double count = std::max(0.0, std::ceil((end - start) / step));
  if (!std::isfinite(count) || count > static_cast<double>(build::kMaxListed))
    node.invalid("a range from " + std::to_string(start) + " to " + std::to_string(end) + " in steps of " +
                 std::to_string(step));
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * step);
  const auto extent = static_cast<int64_t>(values.size());
  node.set_output(c.doubles(node.output_dtype(), values, {extent}));
}

}  // namespace tensormill::frontend::coreml
