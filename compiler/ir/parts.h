/// Evaluates parts of a graph's values with the operators' references: what a few rows of a large output are
/// made of is a few rows of its inputs (OpDef::part). Thread-safety: a plan belongs to one thread.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/op_def.h"

namespace tensormill::ir {

class PartPlan {
public:
  /// `graph` has no loops, and outlives the plan.
  explicit PartPlan(const Graph& graph) : graph_(graph) {}
  /// Adds a result: a part of a value, or all of it.
  void add(ValueId value, const std::optional<Part>& part);
  /// Elements that are taken of inputs and computed, each once for the parts that it is in.
  int64_t elements() const { return elements_; }
  /// The results in the order in which they were added. Throws as references do.
  std::vector<Tensor> evaluate(const std::vector<Tensor>& inputs) const;

  /// One operator as the plan runs it: on parts, with the attributes that make the wanted part of them.
  struct Operation {
    const Node& node;
    const Attrs& attrs;
    std::vector<ValueType> outputs;
  };
  /// The same of values of another kind (bounds of elements, say). `algebra` has
  ///   Value whole(const Tensor&), Value part(const Value&, const Part&) and
  ///   std::vector<Value> run(const Operation&, const std::vector<const Value*>&), null where absent.
  template <typename Value, typename Algebra>
  std::vector<Value> evaluate_as(const std::vector<Tensor>& inputs, Algebra& algebra) const;

private:
  using Key = std::pair<ValueId, std::optional<Part>>;
  struct Step {
    Key makes;
    Attrs attrs;
    std::vector<size_t> inputs;  ///< steps; kNone where absent
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  /// The step that makes it, after those that it needs.
  size_t require(ValueId value, const std::optional<Part>& part);
  ValueType type_of(const Key& key) const;
  bool is_given(ValueId value) const { return graph_.value(value).producer == kAbsent; }
  /// Whether the step takes a part of what is only made as a whole.
  bool cuts(const Step& step) const;
  /// The constant or the input that a given value is.
  const Tensor& given(ValueId value, const std::vector<Tensor>& inputs) const;

  const Graph& graph_;
  std::vector<Step> steps_;
  std::map<Key, size_t> step_of_;
  std::vector<size_t> results_;
  int64_t elements_ = 0;
};

/// A copy of a part of a tensor.
Tensor part_of(const Tensor& tensor, const Part& part);

template <typename Value, typename Algebra>
std::vector<Value> PartPlan::evaluate_as(const std::vector<Tensor>& inputs, Algebra& algebra) const {
  std::map<Key, Value> made;
  for (const Step& step : steps_) {
    const auto& [value, part] = step.makes;
    if (made.count(step.makes) != 0) continue;
    if (is_given(value)) {
      const Value& whole = algebra.whole(given(value, inputs));
      made.emplace(step.makes, part ? algebra.part(whole, *part) : whole);
      continue;
    }
    std::vector<const Value*> operands;
    for (const size_t input : step.inputs)
      operands.push_back(input == kNone ? nullptr : &made.at(steps_[input].makes));
    if (cuts(step)) {
      made.emplace(step.makes, algebra.part(*operands[0], *part));
      continue;
    }
    const Node& node = graph_.node(graph_.value(value).producer);
    Operation operation{node, step.attrs, {}};
    for (const ValueId output : node.outputs) operation.outputs.push_back(type_of({output, part}));
    std::vector<Value> results = algebra.run(operation, operands);
    for (size_t i = 0; i < results.size(); ++i)
      made.emplace(Key{node.outputs[i], part}, std::move(results[i]));
  }
  std::vector<Value> results;
  for (const size_t result : results_) results.push_back(made.at(steps_[result].makes));
  return results;
}

}  // namespace tensormill::ir
