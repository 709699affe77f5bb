// Operators whose result has an extent that depends on data: evaluated where that data is known, else a host
// step.
#include <array>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/select.h"

namespace tensormill::frontend::onnx {

namespace {

double known_number(const NodeContext& context, size_t index, const char* what, double fallback) {
  return context.has_input(index) ? context.known_scalar(index, what).element_as_double(0) : fallback;
}

/// The numbers of operands 2 to 4 as f64, where a run has some of them.
ir::ValueId run_limits(NodeContext& context) {
  Compose c(context);
  const size_t end = context.has_input(4) ? 5 : 4;
  bool are_known = true;
  std::vector<ir::ValueId> limits;
  for (size_t i = 2; i < end; ++i) {
    if (!context.has_input(i)) {
      limits.push_back(c.doubles(DType::kFloat64, {0}, {1}));
      continue;
    }
    if (num_elements(c.shape(context.input(i))) != 1)
      context.invalid("operand " + std::to_string(i) + " has shape " + to_string(c.shape(context.input(i))) +
                      ", expected one number");
    are_known = are_known && context.is_known(i);
    limits.push_back(c.cast(c.reshape(context.input(i), {1}), DType::kFloat64));
  }
  return are_known ? ir::kAbsent : c.concat(limits, 0);
}

}  // namespace

void convert_non_max_suppression(NodeContext& context) {
  host_ops::BoxSelection selection;
  const ir::ValueId limits = run_limits(context);
  selection.center_form = context.int_attr("center_point_box", 0) != 0;
  if (limits == ir::kAbsent) {
    if (context.has_input(2))
      selection.max_per_class = context.known_scalar(2, "max_output_boxes_per_class").element_as_int(0);
    selection.iou_threshold = known_number(context, 3, "iou_threshold", 0);
    if (context.has_input(4)) selection.score_threshold = known_number(context, 4, "score_threshold", 0);
  } else {
    selection.max_per_class = std::numeric_limits<int64_t>::max();
  }
  if (limits != ir::kAbsent || !context.is_known(0) || !context.is_known(1)) {
    const ir::ValueId boxes = filled_behind(context, context.input(0), "zero");
    const ir::ValueId scores = filled_behind(context, context.input(1), "lowest");
    // Boxes behind a count are none, whatever the threshold: their score is -inf.
    if (scores != context.input(1) && !selection.score_threshold)
      selection.score_threshold = std::numeric_limits<float>::lowest();
    ir::Attrs attrs{{"max_per_class", selection.max_per_class},
                    {"iou_threshold", selection.iou_threshold},
                    {"center_form", int64_t{selection.center_form}}};
    if (selection.score_threshold) attrs.set("score_threshold", *selection.score_threshold);
    std::vector<ir::ValueId> operands{boxes, scores};
    if (limits != ir::kAbsent) operands.push_back(limits);
    context.set_output(0, context.add_many("select_boxes", operands, attrs)[0]);
    return;
  }
  const Tensor& boxes = context.known(0, "boxes");
  const Tensor& scores = context.known(1, "scores");
  context.set_output(0, context.constant(host_ops::select_boxes(boxes, scores, selection)));
}

namespace {

/// Distinct elements of operand 0, the place of each one's first, of each element among them, and how often
/// each stands there.
std::array<ir::ValueId, 4> distinct_elements(NodeContext& context, bool sorted) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const ir::SymShape shape = shown_shape(c.dtype(x), c.shape(x));
  const bool flat = !context.has_attr("axis");
  int64_t axis = 0;
  if (flat) {
    ir::SymShape row{num_elements(shape)};
    if (is_text(context, x)) row.push_back(c.shape(x).back());
    x = is_text(context, x) ? c.reshape(x, row) : data_dependent_reshape(context, x, row);
  } else {
    axis = context.normalize_axis(context.int_attr("axis", 0), static_cast<int64_t>(shape.size()));
  }
  if (context.is_known(0)) {
    host_ops::Distinct result =
        host_ops::distinct(context.known_value(x, "X"), static_cast<size_t>(axis), sorted);
    return {context.constant(std::move(result.values)), context.constant(std::move(result.first)),
            context.constant(std::move(result.inverse)), context.constant(std::move(result.counts))};
  }
  const DataShape extents = context.data_shape(x);
  const DataExtent* data = extents.along(axis);
  std::vector<ir::ValueId> operands{x};
  if (data != nullptr) operands = {filled_along(context, x, axis, "zero"), data->count};
  std::vector<ir::ValueId> results =
      context.add_many("distinct", operands, {{"axis", axis}, {"sorted", int64_t{sorted}}});
  if (data != nullptr) results[2] = take_first(context, results[2], data->count, 0);
  return {results[0], results[1], results[2], results[3]};
}

}  // namespace

// Without an axis, the elements in one row; of strings, the rows of a table.
void convert_unique(NodeContext& context) {
  const std::array<ir::ValueId, 4> results = distinct_elements(context, context.int_attr("sorted", 1) != 0);
  for (size_t i = 0; i < results.size(); ++i) context.set_output(i, results[i]);
}

// com.microsoft: in the order of the elements, without the places of the first ones.
void convert_contrib_unique(NodeContext& context) {
  const std::array<ir::ValueId, 4> results = distinct_elements(context, false);
  context.set_output(0, results[0]);
  context.set_output(1, results[2]);
  context.set_output(2, results[3]);
}

}  // namespace tensormill::frontend::onnx
