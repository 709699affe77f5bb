#include "compiler/frontend/onnx/extents/predicates.h"

#include <string_view>

#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Predicates = std::vector<std::optional<bool>>;

std::optional<bool> negated(std::optional<bool> result) { return result ? std::optional(!*result) : result; }

/// Whether the most that a can be is in that relation to the least that b can be, at all extents.
bool is_proven_of(ir::Relation relation, const BoundedInt& a, const BoundedInt& b) {
  return a.is_known() && is_proven(relation, a.most, b.least);
}

std::optional<bool> is_less(const BoundedInt& a, const BoundedInt& b) {
  if (is_proven_of(ir::Relation::kLess, a, b)) return true;
  if (is_proven_of(ir::Relation::kLessEqual, b, a)) return false;
  return std::nullopt;
}

std::optional<bool> is_equal(const BoundedInt& a, const BoundedInt& b) {
  if (is_proven_of(ir::Relation::kLess, a, b) || is_proven_of(ir::Relation::kLess, b, a)) return false;
  if (a.is_known() && b.is_known() && is_proven(ir::Relation::kEqual, a.most, b.most)) return true;
  return std::nullopt;
}

std::optional<bool> compare(std::string_view op, const BoundedInt& a, const BoundedInt& b) {
  if (op == "equal") return is_equal(a, b);
  if (op == "less") return is_less(a, b);
  if (op == "greater") return is_less(b, a);
  if (op == "less_equal") return negated(is_less(b, a));
  return op == "greater_equal" ? negated(is_less(a, b)) : std::nullopt;
}

class PredicateFinder {
public:
  PredicateFinder(const ir::Graph& graph, const std::function<BoundedInts(V)>& numbers_of)
      : graph_(graph), numbers_of_(numbers_of) {}

  Predicates of(V id, int depth) const {
    const ir::Value& value = graph_.value(id);
    const auto count = static_cast<size_t>(num_elements(value.type.shape));
    const Tensor* known = value.tensor();
    Predicates results(count);
    if (known != nullptr) {
      for (size_t i = 0; i < count; ++i) results[i] = known->element_as_int(static_cast<int64_t>(i)) != 0;
      return results;
    }
    constexpr int kDeepest = 16;
    if (value.producer == ir::kAbsent || depth == kDeepest) return results;
    const ir::Node& node = graph_.node(value.producer);
    if (node.op == "identity" || node.op == "reshape" || node.op == "cast")
      return moved(node.inputs[0], depth);
    if (node.op == "not" && value.type.dtype == DType::kBool) {
      results = of(node.inputs[0], depth + 1);
      for (std::optional<bool>& result : results) result = negated(result);
      return results;
    }
    if (node.op == "equal" && graph_.value(node.inputs[0]).type.dtype == DType::kBool)
      return as_compared_with(node, depth);
    if (node.inputs.size() == 2) return compared(node, count);
    return results;
  }

private:
  /// Casts there and back of bools, as exporters write them.
  Predicates moved(V from, int depth) const {
    const ir::ValueType& type = graph_.value(from).type;
    const V producer = graph_.value(from).producer;
    const bool is_of_bools = producer != ir::kAbsent && graph_.node(producer).op == "cast";
    if (type.dtype == DType::kBool || is_of_bools) return of(from, depth + 1);
    return Predicates(static_cast<size_t>(num_elements(type.shape)));
  }

  /// As what is not is compared with false.
  Predicates as_compared_with(const ir::Node& node, int depth) const {
    const Predicates a = of(node.inputs[0], depth + 1), b = of(node.inputs[1], depth + 1);
    Predicates result(std::max(a.size(), b.size()));
    if ((a.size() != result.size() && a.size() != 1) || (b.size() != result.size() && b.size() != 1))
      return result;
    for (size_t i = 0; i < result.size(); ++i) {
      const std::optional<bool> x = a[a.size() == 1 ? 0 : i], y = b[b.size() == 1 ? 0 : i];
      if (x && y) result[i] = *x == *y;
    }
    return result;
  }

  Predicates compared(const ir::Node& node, size_t count) const {
    Predicates result(count);
    const BoundedInts a = numbers_of_(node.inputs[0]), b = numbers_of_(node.inputs[1]);
    if (!a || !b) return result;
    const auto fits = [&](const BoundedInts& numbers) {
      return numbers->size() == count || numbers->size() == 1;
    };
    if (!fits(a) || !fits(b)) return result;
    for (size_t i = 0; i < count; ++i)
      result[i] = compare(node.op, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    return result;
  }

  const ir::Graph& graph_;
  const std::function<BoundedInts(V)>& numbers_of_;
};

}  // namespace

std::vector<std::optional<bool>> predicates_of(const ir::Graph& graph, V value,
                                               const std::function<BoundedInts(V)>& numbers_of) {
  return PredicateFinder(graph, numbers_of).of(value, 0);
}

std::optional<bool> static_predicate(const NodeContext& context, V value) {
  const ir::SymShape& shape = context.graph().value(value).type.shape;
  if (!is_proven(ir::Relation::kEqual, num_elements(shape), 1)) return std::nullopt;
  const auto numbers_of = [&](V id) { return bounds_of(context, id); };
  return predicates_of(context.graph(), value, numbers_of).front();
}

}  // namespace tensormill::frontend::onnx
