#include "compiler/frontend/onnx/converters/run_numbers.h"

#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/run_checks.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

ir::ValueId one_number(NodeContext& context, size_t index, const char* what) {
  const ir::ValueId x = context.input(index);
  const ir::ValueType& type = context.type(x);
  if (num_elements(type.shape) != 1 || type.dtype == kString || type.dtype == DType::kBool)
    context.invalid(std::string(what) + " is " + ir::to_string(type) + ", expected one number");
  return Compose(context).reshape(x, {1});
}

ir::ValueId one_integer(NodeContext& context, size_t index, const char* what) {
  return Compose(context).cast(one_number(context, index, what), DType::kInt64);
}

bool is_of_run(const NodeContext& context, size_t index) {
  return context.has_input(index) && !context.is_known(index);
}

ir::ValueId is_within(NodeContext& context, ir::ValueId x, double low, double high) {
  Compose c(context);
  return c.binary("and", c.binary("greater_equal", x, c.number(x, low)),
                  c.binary("less_equal", x, c.number(x, high)));
}

BoundedInt bounded_count(NodeContext& context, ir::ValueId number, int64_t limit, const char* what) {
  const BoundedInts bounds = bounds_of(context, number, std::nullopt);
  const bool is_bounded = bounds && std::all_of(bounds->begin(), bounds->end(), [&](const BoundedInt& each) {
                            return each.least >= 0 && each.most <= limit;
                          });
  if (!context.is_computable(number) && !is_bounded)
    number = checked_number(context, number, is_within(context, number, 0, static_cast<double>(limit)),
                            std::string(what) + " is {}, expected 0 to " + std::to_string(limit));
  return bounded_value(context, number, what);
}

ir::ValueId row_element(NodeContext& context, ir::ValueId row, int64_t at) {
  Compose c(context);
  const ir::ValueId producer = context.graph().value(row).producer;
  const ir::Node* node = producer == ir::kAbsent ? nullptr : &context.graph().node(producer);
  if (node != nullptr && node->op == "cast")
    return c.cast(row_element(context, node->inputs[0], at), c.dtype(row));
  if (node == nullptr || node->op != "concat") return c.slice(row, 0, at, 1);
  int64_t before = 0;
  for (const ir::ValueId part : node->inputs) {
    const int64_t extent = c.shape(part)[0];
    if (at < before + extent) return row_element(context, part, at - before);
    before += extent;
  }
  context.invalid("there is no element " + std::to_string(at));
}

}  // namespace tensormill::frontend::onnx
