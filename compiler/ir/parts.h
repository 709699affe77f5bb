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
  void run(const Step& step, std::map<Key, Tensor>& made) const;

  const Graph& graph_;
  std::vector<Step> steps_;
  std::map<Key, size_t> step_of_;
  std::vector<size_t> results_;
  int64_t elements_ = 0;
};

/// A copy of a part of a tensor.
Tensor part_of(const Tensor& tensor, const Part& part);

}  // namespace tensormill::ir
