// Shapes, constants and moves whose geometry is known while the graph is built.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_moves.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

/// A constant that the model describes by a shape may be no larger than this; larger ones are a node.
constexpr int64_t kMaxFilledElements = int64_t{1} << 24;

Tensor int64_tensor(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

/// Axes of Squeeze and Unsqueeze: an attribute, from opset 13 on an operand.
std::optional<std::vector<int64_t>> operand_axes(const NodeContext& context) {
  if (context.has_input(1)) return context.known_ints(1, "axes");
  if (context.has_attr("axes")) return context.ints_attr("axes", {});
  return std::nullopt;
}

}  // namespace

void convert_constant(NodeContext& context) {
  const AttributeProto* floats = context.node().find("value_floats");
  if (context.has_attr("value")) {
    context.set_output(0, context.constant(context.any_tensor_attr("value")));
  } else if (context.has_attr("sparse_value")) {
    context.set_output(0, context.constant(context.any_tensor_attr("sparse_value")));
  } else if (floats != nullptr) {
    context.set_output(0, context.constant(Tensor::from<float>({static_cast<int64_t>(floats->floats.size())},
                                                               floats->floats)));
  } else if (context.has_attr("value_float")) {
    Tensor tensor(DType::kFloat32, {});
    tensor.set_element(0, context.float_attr("value_float", 0));
    context.set_output(0, context.constant(std::move(tensor)));
  } else if (context.has_attr("value_int")) {
    Tensor tensor(DType::kInt64, {});
    tensor.set_element_int(0, context.int_attr("value_int", 0));
    context.set_output(0, context.constant(std::move(tensor)));
  } else if (context.has_attr("value_ints")) {
    context.set_output(0, context.constant(int64_tensor(context.ints_attr("value_ints", {}))));
  } else if (context.has_attr("value_string")) {
    context.set_output(0, context.constant(text_tensor(
                              {}, std::vector<std::string>{context.string_attr("value_string", "")})));
  } else if (context.has_attr("value_strings")) {
    context.set_output(0, text_constant(context, text_values(context, "value_strings")));
  } else {
    context.invalid("a constant without a value");
  }
}

namespace {

ir::ValueId filled_constant(NodeContext& context, const Tensor& value, const ir::SymShape& shape) {
  if (!shape.is_constant() || num_elements(shape) > kMaxFilledElements)
    return context.add("expand", {context.constant(value.reshaped({}))}, {{"shape", shape}});
  Tensor filled(value.dtype(), shape);
  for (int64_t i = 0; i < filled.num_elements(); ++i) {
    if (is_float(value.dtype())) {
      filled.set_element(i, value.element_as_double(0));
    } else {
      filled.set_element_int(i, value.element_as_int(0));
    }
  }
  return context.constant(std::move(filled));
}

}  // namespace

void convert_constant_of_shape(NodeContext& context) {
  const BoundedShape shape = bounded_shape(context, 0);
  Tensor value = Tensor::zeros(DType::kFloat32, {1});
  if (context.has_attr("value")) value = context.tensor_attr("value");
  if (value.num_elements() != 1)
    context.invalid("value has " + std::to_string(value.num_elements()) + " elements, expected 1");
  ir::ValueId result = filled_constant(context, value, shape.extents);
  for (const auto& [axis, extent] : shape.open)
    result = take_first(context, result, no_less_than(context, extent, 0, "an extent"),
                        static_cast<int64_t>(axis));
  context.set_output(0, result);
}

void convert_eye_like(NodeContext& context) {
  context.require_fixed_shape(0);
  const ir::ValueType type = context.type(context.input(0));
  if (type.shape.size() != 2)
    context.invalid("the input has shape " + to_string(type.shape) + ", expected a matrix");
  const DType dtype = context.has_attr("dtype") ? context.dtype_attr("dtype") : type.dtype;
  const int64_t k = context.int_attr("k", 0);
  if (!type.shape.is_constant()) {
    Compose c(context);
    const ir::ValueId rows = c.iota(type.shape[0], {type.shape[0], 1}),
                      columns = c.iota(type.shape[1], {1, type.shape[1]});
    const ir::ValueId diagonal = c.add(rows, c.dims({k}, {}));
    return context.set_output(0, c.cast(c.binary("equal", diagonal, columns), dtype));
  }
  Tensor eye = Tensor::zeros(dtype, type.shape);
  for (int64_t row = 0; row < type.shape[0]; ++row) {
    if (row + k >= 0 && row + k < type.shape[1]) eye.set_element(row * type.shape[1] + row + k, 1);
  }
  context.set_output(0, context.constant(std::move(eye)));
}

namespace {

/// The integer that a number was cast from, or the number.
ir::ValueId integer_behind(NodeContext& context, ir::ValueId number) {
  const ir::Graph& graph = context.graph();
  for (ir::ValueId id = number; graph.value(id).producer != ir::kAbsent;) {
    const ir::Node& node = graph.node(graph.value(id).producer);
    if (node.op != "cast" && node.op != "identity" && node.op != "reshape") break;
    id = node.inputs[0];
    if (is_integer(context.type(id).dtype)) return id;
  }
  return number;
}

/// The delta of a range; a run fails in which it is 0.
ir::ValueId checked_delta(NodeContext& context, ir::ValueId delta) {
  Compose c(context);
  if (context.is_known(2)) {
    if (context.known_scalar(2, "delta").element_as_double(0) == 0) context.invalid("delta is 0");
    return delta;
  }
  return checked_number(context, delta, c.unary("not", c.binary("equal", delta, c.number(delta, 0))),
                        "delta is {}");
}

/// How many elements a range has, as i64 [1]: the most of 0 and ceil((limit - start) / delta). Counts of
/// `is_count` start at 0 and go by one.
ir::ValueId range_count(NodeContext& context, bool is_count, bool has_unit_step) {
  Compose c(context);
  const ir::ValueId start = context.input(0), delta = context.input(2);
  const ir::ValueId limit = is_count ? integer_behind(context, context.input(1)) : context.input(1);
  if (is_count && !is_float(c.dtype(limit))) return c.reshape(c.cast(limit, DType::kInt64), {1});
  if (has_unit_step && !is_float(c.dtype(start)))
    return c.reshape(c.sub(c.cast(limit, DType::kInt64), c.cast(start, DType::kInt64)), {1});
  const auto wide = [&](ir::ValueId x) { return c.reshape(c.cast(x, DType::kFloat64), {1}); };
  const ir::ValueId step = checked_delta(context, wide(delta));
  const ir::ValueId steps = c.unary("ceil", c.div(c.sub(wide(limit), wide(start)), step));
  return c.reshape(c.cast(c.binary("max", steps, c.number(steps, 0)), DType::kInt64), {1});
}

/// From numbers that a run works out.
ir::ValueId data_dependent_range(NodeContext& context) {
  Compose c(context);
  const auto is_known_to_be = [&](size_t index, double value) {
    return context.is_known(index) && context.known_scalar(index, "operand").element_as_double(0) == value;
  };
  const DType dtype = context.type(context.input(0)).dtype;
  const bool has_unit_step = is_known_to_be(2, 1);
  const bool is_count = has_unit_step && is_known_to_be(0, 0);
  ir::ValueId number = range_count(context, is_count, has_unit_step);
  if (context.binds_symbols()) number = c.binary("max", number, c.ints({0}, {1}));
  const BoundedInt count = context.binds_symbols() ? BoundedInt{context.symbolic_ints(number, "limit", 0)[0]}
                                                   : bounded_value(context, number, "limit");
  const ir::SymInt most = max(count.most, 0);
  ir::ValueId values = c.cast(c.iota(most), dtype);
  if (!has_unit_step) values = c.mul(values, c.reshape(context.input(2), {1}));
  if (!is_known_to_be(0, 0)) values = c.add(values, c.reshape(context.input(0), {1}));
  return count.is_known() ? values : take_first(context, values, as_count(context, count), 0);
}

/// Of known integers that are symbolic; nothing where they are numbers.
std::optional<ir::ValueId> symbolic_range(NodeContext& context) {
  const auto number = [&](size_t index, const char* what) {
    const ir::SymShape elements = context.known_ints(index, what);
    if (elements.size() != 1)
      context.invalid(std::string(what) + " has " + std::to_string(elements.size()) +
                      " elements, expected 1");
    return elements[0];
  };
  const ir::SymInt start = number(0, "start"), limit = number(1, "limit"), delta = number(2, "delta");
  if (start.is_constant() && limit.is_constant() && delta.is_constant()) return std::nullopt;
  const int64_t step = delta;
  if (step == 0 || step == std::numeric_limits<int64_t>::min())
    context.invalid("delta is " + std::to_string(step));
  const ir::SymInt span = step > 0 ? limit - start : start - limit;
  const ir::SymInt count = max(ceildiv(span, std::abs(step)), 0);
  Compose c(context);
  ir::ValueId values = c.iota(count);
  if (step != 1) values = c.mul(values, c.dims({step}, {1}));
  if (!is_proven(ir::Relation::kEqual, start, 0)) values = c.add(values, c.dims({start}, {1}));
  return c.cast(values, context.type(context.input(0)).dtype);
}

}  // namespace

namespace {

/// Of known float32 numbers that are symbolic; nothing where they are numbers, or of another type.
std::optional<ir::ValueId> symbolic_float_range(NodeContext& context) {
  if (context.type(context.input(0)).dtype != DType::kFloat32) return std::nullopt;
  std::vector<ir::SymInt> codes;
  bool is_symbolic = false;
  for (const size_t index : {0, 1, 2}) {
    const ir::KnownValue& known = context.known_symbolic(context.input(index), "operand");
    is_symbolic = is_symbolic || known.is_symbolic();
    if (known.is_symbolic() && known.elements().size() == 1) {
      codes.push_back(known.elements()[0]);
      continue;
    }
    const double number = context.known_scalar(index, "operand").element_as_double(0);
    const std::optional<int64_t> code = float_code(static_cast<float>(number));
    if (!code) return std::nullopt;
    codes.push_back(*code);
  }
  if (!is_symbolic) return std::nullopt;
  const int64_t delta = codes[2];
  if (delta == 0) context.invalid("delta is 0");
  const ir::SymInt count = max(ir::call("steps_of_f32", codes), 0);
  if (!demand(ir::Relation::kLessEqual, count, kMaxFilledElements))
    context.invalid("the range has more than " + std::to_string(kMaxFilledElements) + " elements");
  Compose c(context);
  const ir::ValueId steps = c.mul(c.cast(c.iota(count), DType::kFloat32), c.reshape(context.input(2), {1}));
  return c.add(steps, c.reshape(context.input(0), {1}));
}

}  // namespace

void convert_range(NodeContext& context) {
  if (!context.is_known(0) || !context.is_known(1) || !context.is_known(2)) {
    context.set_output(0, data_dependent_range(context));
    return;
  }
  const bool is_integer_range = !is_float(context.type(context.input(0)).dtype);
  if (const auto range = is_integer_range ? symbolic_range(context) : symbolic_float_range(context)) {
    context.set_output(0, *range);
    return;
  }
  const Tensor& start = context.known_scalar(0, "start");
  const Tensor& limit = context.known_scalar(1, "limit");
  const Tensor& delta = context.known_scalar(2, "delta");
  const double step = delta.element_as_double(0);
  if (step == 0) context.invalid("delta is 0");
  const double span = (limit.element_as_double(0) - start.element_as_double(0)) / step;
  const double count = std::max(0.0, std::ceil(span));
  if (!(count <= static_cast<double>(kMaxFilledElements)))
    context.invalid("the range has more than " + std::to_string(kMaxFilledElements) + " elements");
  Tensor values(start.dtype(), {static_cast<int64_t>(count)});
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (is_float(start.dtype())) {
      values.set_element(i, start.element_as_double(0) + static_cast<double>(i) * step);
    } else {
      values.set_element_int(i, start.element_as_int(0) + i * delta.element_as_int(0));
    }
  }
  context.set_output(0, context.constant(std::move(values)));
}

namespace {

/// The extents of operand 0 from `start` to `end`: constants, and the counts of axes that depend on data.
ir::ValueId extents_of(NodeContext& context, int64_t start, int64_t end) {
  const ir::SymShape shape = context.type(context.input(0)).shape;
  const DataShape data = context.data_shape_of(0);
  const auto listed = [&](int64_t from, int64_t to) {
    return context.extents({shape.begin() + from, shape.begin() + to});
  };
  std::vector<ir::ValueId> parts;
  int64_t next = start;
  for (const DataExtent& extent : data.extents) {
    const auto at = static_cast<int64_t>(extent.axis);
    if (at < start || at >= end) continue;
    parts.insert(parts.end(), {listed(next, at), extent.count});
    next = at + 1;
  }
  if (parts.empty()) return listed(start, end);
  parts.push_back(listed(next, end));
  return Compose(context).concat(parts, 0);
}

}  // namespace

void convert_shape(NodeContext& context) {
  const int64_t rank = context.rank(context.input(0));
  const auto bound = [&](const char* name, int64_t fallback) {
    const int64_t value = context.int_attr(name, fallback);
    return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const int64_t start = bound("start", 0);
  context.set_output(0, extents_of(context, start, std::max(start, bound("end", rank))));
}

void convert_size(NodeContext& context) {
  if (!context.data_shape_of(0).extents.empty()) {
    const ir::ValueId extents = extents_of(context, 0, context.rank(context.input(0)));
    context.set_output(0, Compose(context).reduce("reduce_prod", extents, {0}, false));
    return;
  }
  const ir::SymInt size = num_elements(context.type(context.input(0)).shape);
  context.set_output(0, context.reshape(context.extents({size}), {}));
}

namespace {

/// The shape operand of Reshape. Extents that depend on data are those of the value itself, where the shape
/// says their counts in their order; nothing where it says other ones, or numbers in their place.
std::optional<ir::SymShape> reshaped_to(NodeContext& context) {
  if (has_dynamic_shape(context)) return std::nullopt;
  BoundedShape shape = bounded_shape(context, 1);
  const std::vector<DataExtent> extents = context.data_shape_of(0).extents;
  const auto is_extent = [](const ir::SymInt& extent) { return extent >= -1; };
  const bool are_extents = std::all_of(shape.extents.begin(), shape.extents.end(), is_extent);
  if (shape.open.empty() && are_extents && !reshape_keeps_counts(context, shape.extents)) return std::nullopt;
  auto next = extents.begin();
  for (const auto& [axis, extent] : shape.open) {
    next = std::find_if(next, extents.end(), [&, number = extent](const DataExtent& own) {
      return is_count_of(context, number, context.input(0), static_cast<int64_t>(own.axis));
    });
    if (next == extents.end()) return std::nullopt;
    shape.extents[axis] = context.type(context.input(0)).shape[next->axis];
    ++next;
  }
  return shape.extents;
}

}  // namespace

void convert_reshape(NodeContext& context) {
  const ir::SymShape input = context.type(context.input(0)).shape;
  const std::optional<ir::SymShape> target =
      context.opset() < 5 ? ir::SymShape(context.required_ints("shape")) : reshaped_to(context);
  if (!target) return dynamic_reshape(context);
  ir::SymShape shape = *target;
  const bool allow_zero = context.int_attr("allowzero", 0) != 0;
  const ir::ValueId x = context.before_reshapes(context.input(0));
  const ir::SymInt elements = num_elements(context.type(x).shape);
  int64_t inferred = -1;
  int64_t large = 1;
  ir::SymInt known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    // An extent of the input's own stays what it is, 0 or not.
    const bool is_own = i < input.size() && same(shape[i], input[i]);
    if (!is_own && shape[i] == 0 && !allow_zero) {
      if (i >= input.size())
        context.invalid("shape has 0 at " + std::to_string(i) + ", the input has rank " +
                        std::to_string(input.size()));
      shape[i] = input[i];
    }
    if (shape[i] < -1) context.invalid("shape has " + std::to_string(shape[i]));
    if (shape[i] == -1) {
      if (inferred >= 0) context.invalid("shape has -1 twice");
      inferred = static_cast<int64_t>(i);
    } else if (__builtin_mul_overflow(large, shape[i].hint(), &large)) {
      context.invalid("shape " + to_string(shape) + " is too large");
    } else {
      known *= shape[i];
    }
  }
  if (inferred >= 0) {
    if (!demand(ir::Relation::kLess, 0, known) || !demand_divisible(elements, known)) {
      context.invalid("an input of " + to_string(elements) + " elements does not reshape to " +
                      to_string(shape));
    }
    shape[static_cast<size_t>(inferred)] = elements / known;
  }
  context.set_output(0, data_dependent_reshape(context, x, shape));
}

void convert_flatten(NodeContext& context) {
  const ir::SymShape& shape = context.type(context.input(0)).shape;
  const ir::SymInt rank = static_cast<int64_t>(shape.size());
  int64_t axis = context.int_attr("axis", 1);
  if (axis < -rank || axis > rank)
    context.invalid("axis " + std::to_string(axis) + " does not fit rank " + std::to_string(rank));
  if (axis < 0) axis += rank;
  ir::SymShape matrix{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    ir::SymInt& extent = matrix[i < axis ? 0 : 1];
    extent = context.product(extent, shape[static_cast<size_t>(i)]);
  }
  context.set_output(0, data_dependent_reshape(context, context.input(0), matrix));
}

void convert_squeeze(NodeContext& context) {
  if (context.has_input(1) && !is_static(context, 1)) return dynamic_squeeze(context);
  ir::ValueId x = context.input(0);
  const int64_t rank = context.rank(x);
  std::optional<std::vector<int64_t>> axes = operand_axes(context);
  for (const int64_t axis : axes.value_or(std::vector<int64_t>{}))
    x = with_extent(context, x, context.normalize_axis(axis, rank), 1);
  const ir::SymShape shape = context.type(x).shape;
  ir::SymShape result;
  for (int64_t i = 0; i < rank; ++i) {
    bool drop = !axes && shape[static_cast<size_t>(i)] == 1;
    for (int64_t axis : axes.value_or(std::vector<int64_t>{}))
      drop = drop || context.normalize_axis(axis, rank) == i;
    if (drop && !demand(ir::Relation::kEqual, shape[static_cast<size_t>(i)], 1)) {
      context.invalid("axis " + std::to_string(i) + " has extent " +
                      std::to_string(shape[static_cast<size_t>(i)]) + ", expected 1");
    }
    if (!drop) result.push_back(shape[static_cast<size_t>(i)]);
  }
  context.set_output(0, context.reshape(x, result));
}

void convert_unsqueeze(NodeContext& context) {
  if (context.has_input(1) && !is_static(context, 1)) return dynamic_unsqueeze(context);
  const ir::SymShape& shape = context.type(context.input(0)).shape;
  std::optional<std::vector<int64_t>> axes = operand_axes(context);
  if (!axes) context.invalid("axes are missing");
  const ir::SymInt rank = static_cast<int64_t>(shape.size() + axes->size());
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (int64_t axis : *axes) {
    const size_t at = static_cast<size_t>(context.normalize_axis(axis, rank));
    if (added[at]) context.invalid("axis " + std::to_string(axis) + " stands twice");
    added[at] = true;
  }
  ir::SymShape result;
  size_t next = 0;
  for (size_t i = 0; i < added.size(); ++i) result.push_back(added[i] ? ir::SymInt(1) : shape[next++]);
  context.set_output(0, context.reshape(context.input(0), result));
}

}  // namespace tensormill::frontend::onnx
