#include "tests/ops/cases/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/parts.h"
#include "runtime/base/narrow.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {
namespace {

/// Signs of the roundings are drawn so often: the furthest movement counts.
constexpr uint64_t kDraws = 4;

/// The distance between 1 and the next number.
double rounding_of_type(DType dtype) {
  if (dtype == DType::kFloat64) return 0x1p-52;
  if (dtype == DType::kFloat32) return 0x1p-23;
  return dtype == DType::kFloat16 ? 0x1p-10 : 0x1p-7;
}

/// Tensors of which each element is off by a rounding, up or down.
class MovedAlgebra {
public:
  MovedAlgebra(const ir::OpRegistry& ops, uint64_t draw) : ops_(ops), random_(draw) {}

  Tensor whole(const Tensor& tensor) {
    Tensor moved = tensor.clone();
    if (!is_float(moved.dtype()) || is_narrow(moved.dtype())) return moved;
    const double by = rounding_of_type(moved.dtype());
    for (int64_t i = 0; i < moved.num_elements(); ++i)
      moved.set_element(i, moved.element_as_double(i) * (random_() % 2 == 0 ? 1 + by : 1 - by));
    return moved;
  }

  static Tensor part(const Tensor& tensor, const ir::Part& part) { return ir::part_of(tensor, part); }

  std::vector<Tensor> run(const ir::PartPlan::Operation& operation,
                          const std::vector<const Tensor*>& inputs) {
    std::vector<Tensor> results;
    for (const ir::ValueType& type : operation.outputs)
      results.push_back(Tensor::zeros(type.dtype, type.shape));
    ir::ReferenceContext context{operation.attrs, inputs, {}};
    for (Tensor& result : results) context.outputs.push_back(&result);
    ops_.get(operation.node.op).reference(context);
    std::vector<Tensor> moved;
    for (const Tensor& result : results) moved.push_back(whole(result));
    if (operation.node.op == "gelu") move_by_terms(*inputs[0], moved[0]);
    return moved;
  }

private:
  /// x / 2 + x / 2 * erf(...): two terms whose magnitudes are those of x, of which little is left where x is
  /// negative.
  void move_by_terms(const Tensor& x, Tensor& moved) {
    if (!is_float(moved.dtype()) || is_narrow(moved.dtype())) return;
    const double by = rounding_of_type(moved.dtype());
    for (int64_t i = 0; i < moved.num_elements(); ++i) {
      const double term = by * x.element_as_double(i);
      moved.set_element(i, moved.element_as_double(i) + (random_() % 2 == 0 ? term : -term));
    }
  }

  const ir::OpRegistry& ops_;
  std::mt19937_64 random_;
};

/// Adds to `most` how far the elements are apart, of a sum of so many terms: without bound beside a pole.
void widen(std::vector<double>& most, const Tensor& moved, const Tensor& expected, double terms) {
  most.resize(static_cast<size_t>(expected.num_elements()), 0);
  if (!is_float(expected.dtype())) return;
  for (size_t i = 0; i < most.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const double apart = std::fabs(moved.element_as_double(at) - expected.element_as_double(at));
    const bool is_pole = std::isfinite(expected.element_as_double(at)) && !std::isfinite(apart);
    if (is_pole) most[i] = std::numeric_limits<double>::infinity();
    if (std::isfinite(apart)) most[i] = std::max(most[i], apart * terms);
  }
}

/// A sum has as many terms as an operand has elements at most.
double most_elements(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  int64_t most = 1;
  for (const ir::ValueId id : values) {
    if (id != ir::kAbsent) most = std::max(most, num_elements(graph.value(id).type.shape).hint());
  }
  return static_cast<double>(most);
}

}  // namespace

std::vector<std::vector<double>> rounding_of(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> expected = ir::evaluate_reference(graph, inputs);
  std::vector<ir::ValueId> all;
  for (size_t i = 0; i < graph.values().size(); ++i) all.push_back(static_cast<ir::ValueId>(i));
  const double terms = most_elements(graph, all);
  std::vector<std::vector<double>> most(expected.size());
  ir::PartPlan plan(graph);
  for (const ir::ValueId output : graph.outputs()) plan.add(output, std::nullopt);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    MovedAlgebra algebra(graph.ops(), draw);
    const std::vector<Tensor> moved = plan.evaluate_as<Tensor>(inputs, algebra);
    for (size_t i = 0; i < moved.size(); ++i) widen(most[i], moved[i], expected[i], terms);
  }
  return most;
}

std::vector<std::vector<double>> rounding_of(const ir::Graph& graph, const ir::Node& node,
                                             const std::vector<Tensor>& values) {
  const double terms = most_elements(graph, node.inputs);
  std::vector<std::vector<double>> most(node.outputs.size());
  std::vector<ir::ValueType> types;
  for (const ir::ValueId id : node.outputs) types.push_back(graph.value(id).type);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    MovedAlgebra algebra(graph.ops(), draw);
    std::vector<Tensor> operands;
    for (const ir::ValueId id : node.inputs)
      operands.push_back(id == ir::kAbsent ? Tensor() : algebra.whole(values[static_cast<size_t>(id)]));
    std::vector<const Tensor*> given;
    for (size_t i = 0; i < operands.size(); ++i)
      given.push_back(node.inputs[i] == ir::kAbsent ? nullptr : &operands[i]);
    const std::vector<Tensor> moved = algebra.run({node, node.attrs, types}, given);
    for (size_t i = 0; i < moved.size(); ++i)
      widen(most[i], moved[i], values[static_cast<size_t>(node.outputs[i])], terms);
  }
  return most;
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance,
                       const std::vector<double>& rounding) {
  const std::string why = difference(actual, expected, tolerance);
  const bool has_floats = is_float(expected.dtype()) && !is_narrow(expected.dtype());
  if (why.empty() || !has_floats || actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    return why;
  // What rounding explains is as it should be: what is left must agree.
  Tensor rest = actual.clone();
  for (int64_t i = 0; i < rest.num_elements(); ++i) {
    const double apart = std::fabs(actual.element_as_double(i) - expected.element_as_double(i));
    if (apart <= rounding[static_cast<size_t>(i)]) rest.set_element(i, expected.element_as_double(i));
  }
  return difference(rest, expected, tolerance);
}

}  // namespace tensormill::ops_cases
