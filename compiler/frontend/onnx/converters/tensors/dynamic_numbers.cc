#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

void require_known_extents(const NodeContext& context) { static_cast<void>(context.data_shape_of(0)); }

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

ir::ValueId numbers_of(NodeContext& context, size_t index, int64_t number, const char* what) {
  Compose c(context);
  const ir::ValueId given = context.input(index);
  if (!context.data_shape_of(index).extents.empty()) static_cast<void>(context.known(index, what));
  if (num_elements(c.shape(given)) != number)
    context.invalid(std::string(what) + " has " + std::to_string(num_elements(c.shape(given))) +
                    " values, expected " + std::to_string(number));
  return c.reshape(c.cast(given, DType::kInt64), {number});
}

bool is_run_time_value(const NodeContext& context, size_t index) {
  return context.has_input(index) && !context.is_known(index);
}

int64_t known_length(NodeContext& context, size_t index, const char* what) {
  const int64_t length = context.known_scalar(index, what).element_as_int(0);
  if (length < 0 || length > kMaxLength) context.invalid(std::string(what) + " is " + std::to_string(length));
  return length;
}

ir::ValueId is_within(NodeContext& context, ir::ValueId x, double low, double high) {
  Compose c(context);
  return c.binary("and", c.binary("greater_equal", x, c.number(x, low)),
                  c.binary("less_equal", x, c.number(x, high)));
}

ir::SymInt run_extent(NodeContext& context, ir::ValueId number, int64_t limit, const char* what,
                      int64_t least) {
  if (!context.is_computable(number))
    number = checked_number(
        context, number, is_within(context, number, static_cast<double>(least), static_cast<double>(limit)),
        std::string(what) + " is {}, expected " + std::to_string(least) + " to " + std::to_string(limit));
  return context.symbolic_ints(number, what, least).at(0);
}

ir::ValueId integers_within(NodeContext& context, ir::ValueId integers, ir::ValueId most, const char* what) {
  Compose c(context);
  const ir::ValueId given = c.cast(integers, DType::kInt64);
  if (num_elements(c.shape(given)) == 0) return given;
  if (context.is_computable(integers) && context.is_computable(most)) {
    const int64_t limit = context.known_value(most, what).element_as_int(0);
    const Tensor& known = context.known_value(integers, what);
    for (int64_t i = 0; i < known.num_elements(); ++i) {
      const int64_t each = known.element_as_int(i);
      if (each < 0 || each > limit)
        context.invalid(std::string(what) + " has " + std::to_string(each) + ", expected 0 to " +
                        std::to_string(limit));
    }
    return given;
  }
  ir::Ints axes = c.count_to(context.rank(given));
  const ir::ValueId there = filled_behind(context, given, "zero"), zero = c.ints({0}, {1});
  const auto bound = [&](const char* op) { return c.reshape(c.reduce(op, there, axes, true), {1}); };
  const ir::ValueId least = bound("reduce_min"), greatest = bound("reduce_max");
  const ir::ValueId is_low = c.binary("less", least, zero);
  const ir::ValueId holds = c.binary("and", c.unary("not", is_low), c.binary("less_equal", greatest, most));
  return value_if(
      context, given,
      {holds, std::string(what) + " has {}, expected 0 to {}", {c.where(is_low, least, greatest), most}});
}

RowPart part_of_row(const NodeContext& context, ir::ValueId row, int64_t at) {
  const ir::Graph& graph = context.graph();
  const ir::ValueId producer = graph.value(row).producer;
  const ir::Node* node = producer == ir::kAbsent ? nullptr : &graph.node(producer);
  if (node != nullptr && node->op == "cast") {
    RowPart own = part_of_row(context, node->inputs[0], at);
    own.casts.push_back(graph.value(row).type.dtype);
    return own;
  }
  if (node == nullptr || node->op != "concat") return {row, at, {}};
  for (const ir::ValueId part : node->inputs) {
    const ir::SymInt extent = num_elements(graph.value(part).type.shape);
    if (at < extent) return part_of_row(context, part, at);
    at -= extent;
  }
  context.invalid("a row of numbers is too short");
}

int64_t numbers_left_open(const NodeContext& context, ir::ValueId row) {
  if (context.is_computable(row)) return 0;
  const int64_t count = num_elements(context.type(row).shape);
  int64_t open = 0;
  for (int64_t i = 0; i < count; ++i)
    open += context.is_computable(part_of_row(context, row, i).part) ? 0 : 1;
  return open;
}

bool has_dynamic_shape(const NodeContext& context) {
  if (!context.binds_symbols()) return false;
  const int64_t open = numbers_left_open(context, context.input(1));
  return open > 1 || (open == 1 && same(num_elements(context.type(context.input(0)).shape), 0));
}

ir::ValueId row_element(NodeContext& context, ir::ValueId row, int64_t at) {
  Compose c(context);
  const RowPart own = part_of_row(context, row, at);
  ir::ValueId element = c.slice(own.part, 0, own.at, 1);
  for (const DType dtype : own.casts) element = c.cast(element, dtype);
  return element;
}

}  // namespace tensormill::frontend::onnx
