#include "compiler/passes/values/value_facts.h"

#include <vector>

#include "compiler/passes/match.h"
#include "runtime/base/narrow.h"

namespace tensormill::passes {

namespace {

constexpr int kMostSteps = 8;  // from a product back to the narrow types

Interval interval_of_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const double span = std::ldexp(1.0, info.bits);
  return info.is_signed ? Interval{-span / 2, span / 2 - 1} : Interval{0, span - 1};
}

Interval interval_of_constant(const Tensor& tensor) {
  Interval found;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.element_as_double(i);
    found = {i == 0 ? value : std::min(found.low, value), i == 0 ? value : std::max(found.high, value)};
  }
  return found;
}

std::optional<Interval> follow(const ir::Graph& graph, ir::ValueId id, int steps) {
  if (id == ir::kAbsent) return std::nullopt;
  const ir::Value& value = graph.value(id);
  const DType dtype = value.type.dtype;
  if (is_float(dtype) || dtype_info(dtype).bits > 32) return std::nullopt;
  if (value.constant) return interval_of_constant(*value.constant);
  if (dtype == DType::kBool || dtype_info(dtype).bits <= 8) return interval_of_type(dtype);
  const ir::Node* node = producer_of(graph, id);
  if (node == nullptr || steps == 0 || dtype != DType::kInt32) return std::nullopt;
  std::vector<Interval> args;
  if (node->op == "cast" || node->op == "reshape" || node->op == "transpose" || node->op == "sub") {
    for (const ir::ValueId input : node->inputs) {
      const std::optional<Interval> arg = follow(graph, input, steps - 1);
      if (!arg) return std::nullopt;
      args.push_back(*arg);
    }
  }
  if (args.empty()) return std::nullopt;
  const Interval result =
      args.size() == 1 ? args[0] : Interval{args[0].low - args[1].high, args[0].high - args[1].low};
  if (result.magnitude() > kExactInFloat) return std::nullopt;
  return result;
}

bool is_whole_constant(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.element_as_double(i);
    if (std::isfinite(value) && value != std::floor(value)) return false;
  }
  return true;
}

bool is_whole(const ir::Graph& graph, ir::ValueId id, int steps) {
  if (id == ir::kAbsent) return false;
  const ir::Value& value = graph.value(id);
  // Types without fractions of their own steps only: a sum rounded to a few bits is whole where it is large.
  if (!is_float(value.type.dtype) || is_narrow(value.type.dtype)) return false;
  if (value.constant) return is_whole_constant(*value.constant);
  const ir::Node* node = producer_of(graph, id);
  if (node == nullptr || steps == 0) return false;
  if (node->op == "round" || node->op == "floor" || node->op == "ceil") return true;
  if (node->op == "cast") {
    const DType from = graph.value(node->inputs[0]).type.dtype;
    // Narrowing keeps whole numbers whole: a number that loses digits has none behind the point left.
    return !is_float(from) || is_whole(graph, node->inputs[0], steps - 1);
  }
  if (node->op == "add" || node->op == "sub")
    return is_whole(graph, node->inputs[0], steps - 1) && is_whole(graph, node->inputs[1], steps - 1);
  return (node->op == "reshape" || node->op == "transpose") && is_whole(graph, node->inputs[0], steps - 1);
}

}  // namespace

std::optional<Interval> interval_of(const ir::Graph& graph, ir::ValueId id) {
  return follow(graph, id, kMostSteps);
}

bool is_whole(const ir::Graph& graph, ir::ValueId id) { return is_whole(graph, id, kMostSteps); }

}  // namespace tensormill::passes
