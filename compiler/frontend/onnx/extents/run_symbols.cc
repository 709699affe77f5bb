// Integers that a run works out, as symbols of the graph.
#include <string_view>

#include "compiler/build/compose.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/frontend/onnx/extents/bounds.h"
#include "compiler/ops/steps/host_steps.h"

namespace tensormill::frontend::onnx {

namespace {

/// More of them are no shape.
constexpr int64_t kMostBound = 64;

}  // namespace

ir::SymShape NodeContext::bind_numbers(ir::ValueId numbers, std::optional<int64_t> low,
                                       const std::optional<ir::SymInt>& high) {
  const ir::ValueId first = extents_.first_alike(numbers);
  if (const auto found = extents_.bound_numbers().find(first); found != extents_.bound_numbers().end()) {
    // Of fewer there is no plan, as where they are bound with that bound.
    for (const ir::SymInt& number : found->second) {
      if (low) static_cast<void>(decide(ir::Relation::kLessEqual, *low, number));
    }
    return found->second;
  }
  return extents_.bound_numbers()
      .emplace(first, build::bind_run_numbers(*this, numbers, low, high))
      .first->second;
}

ir::SymShape NodeContext::symbolic_ints(ir::ValueId value, const char* what, std::optional<int64_t> low) {
  if (is_computable(value)) {
    if (is_float(type(value).dtype)) invalid(std::string(what) + " is no integer");
    return known_symbolic(value, what).elements();
  }
  const ir::SymInt count = num_elements(type(value).shape);
  const bool is_list = count.is_constant() && count.hint() <= kMostBound && is_integer(type(value).dtype);
  if (!binds_symbols() || !is_list) return known_symbolic(value, what).elements();
  Compose c(*this);
  ir::SymShape numbers;
  for (int64_t i = 0; i < count.hint(); ++i) {
    // Of what is joined some may be known.
    const RowPart own = part_of_row(*this, value, i);
    const bool is_known_part = is_computable(own.part) && !is_float(type(own.part).dtype);
    if (is_known_part) {
      numbers.push_back(known_symbolic(own.part, what).elements()[static_cast<size_t>(own.at)]);
      continue;
    }
    const ir::ValueId row = rank(value) == 1 ? value : c.reshape(value, {count});
    const ir::ValueId element = count.hint() == 1 ? row : row_element(*this, row, i);
    numbers.push_back(bind_numbers(c.reshape(c.cast(element, DType::kInt64), {1}), low, std::nullopt)[0]);
  }
  return numbers;
}

namespace {

/// An operand that says how large something is.
struct ExtentOperand {
  std::string_view op;
  size_t index;
  std::optional<int64_t> low;  ///< what is below it means something else
};

/// Whether a range has as many elements as the run counts (data_dependent_range), and not as a formula of one
/// of its operands says.
bool has_dynamic_count(const NodeContext& context) {
  int64_t open = 0;
  for (size_t i = 0; i < 3; ++i) open += context.is_computable(context.input(i)) ? 0 : 1;
  const DType dtype = context.type(context.input(0)).dtype;
  const bool is_wide = dtype == DType::kInt32 || dtype == DType::kInt64;
  return open > 1 || !is_wide || !context.is_computable(context.input(2));
}

constexpr ExtentOperand kExtentOperands[] = {
#define TM_EXTENT_OPERAND(op, index, low) {op, index, low},
#include "compiler/frontend/onnx/operators/extent_operands.def"
#undef TM_EXTENT_OPERAND
};

}  // namespace

ir::ValueId NodeContext::before_reshapes(ir::ValueId x) const {
  while (binds_symbols() && !type(x).shape.is_constant()) {
    const auto found = extents_.reshaped().find(x);
    if (found == extents_.reshaped().end() || !data_shape(found->second).extents.empty()) break;
    x = found->second;
  }
  return x;
}

void NodeContext::bind_operands() {
  if (!binds_symbols() || !node_.domain.empty()) return;
  for (const ExtentOperand& operand : kExtentOperands) {
    if (operand.op != node_.op_type || !has_input(operand.index)) continue;
    ir::ValueId& value = inputs_[operand.index];
    const ir::ValueType own = type(value);
    const ir::SymInt count = num_elements(own.shape);
    const bool is_list = is_integer(own.dtype) && count.is_constant() && count.hint() <= kMostBound;
    if (!is_list || is_computable(value) || static_ints(*this, value)) continue;
    if (operand.op == "Reshape" && has_dynamic_shape(*this)) continue;
    if (operand.op == "Range" && has_dynamic_count(*this)) continue;
    Compose c(*this);
    const ir::SymShape numbers = symbolic_ints(value, "an operand", operand.low);
    value = c.reshape(extents(numbers), own.shape);
    // Of these the type is the result's.
    if (operand.op == "Range") value = c.cast(value, own.dtype);
  }
}

ir::ValueId NodeContext::dynamic_prefix(ir::ValueId x, ir::ValueId count, int64_t axis) {
  axis = normalize_axis(axis, rank(x));
  const ir::SymInt extent = type(x).shape[static_cast<size_t>(axis)];
  const ir::SymInt number = is_computable(count) ? known_symbolic(count, "a count").elements().at(0)
                                                 : bind_numbers(count, std::nullopt, std::nullopt)[0];
  const ir::SymInt taken = min(max(number, 0), extent);
  if (same(taken, extent)) return x;
  return Compose(*this).slice(x, axis, 0, taken);
}

void NodeContext::fit_results(std::vector<ir::ValueId>& results) {
  if (!binds_symbols()) return;
  const ir::Node node = graph().node(graph().value(results.front()).producer);
  if (node.op == "take_first") return;
  const std::vector<std::optional<size_t>> axes = ops::data_axes(node);
  std::optional<ir::SymInt> high;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i]) high = type(results[i]).shape[*axes[i]];
  }
  if (!high) return;
  extents_.set_exact(results.front());
  const ir::SymInt count = bind_numbers(results.back(), 0, high)[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i] || same(type(results[i]).shape[*axes[i]], count)) continue;
    results[i] = Compose(*this).slice(results[i], static_cast<int64_t>(*axes[i]), 0, count);
  }
}

}  // namespace tensormill::frontend::onnx
