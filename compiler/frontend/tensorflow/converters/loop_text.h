/// Loops as they are written: what their conditions compare, and what iterations hand on. Thread-safety: pure
/// functions.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/frontend/tensorflow/model.h"

namespace tensormill::frontend::tensorflow {

/// A loop's condition or its body as it is written: what becomes of the values that iterations hand on, by
/// the texts of its nodes' inputs.
class LoopText {
public:
  /// A function, whose arguments are the values.
  explicit LoopText(const Function& function);
  /// Nodes of a graph, by their names: `values` are those that stand for the values, which Switch hands on;
  /// `results`: what the values become, or the condition.
  LoopText(const std::vector<Node>& nodes, std::map<std::string_view, size_t> values,
           std::vector<std::string_view> results);

  size_t num_results() const { return results_.size(); }
  /// What result `index` is, and what a text names, behind all nodes that hand a value on as it is.
  std::string_view result(size_t index) const { return source(results_[index]); }
  std::string_view source(std::string_view text) const;
  /// Null for one of the values.
  const Node* node_of(std::string_view text) const;
  /// Which of the values that is.
  std::optional<size_t> argument(std::string_view text) const;

private:
  bool is_function_;
  std::map<std::string_view, const Node*> nodes_ = {};
  std::map<std::string_view, size_t> values_;
  std::vector<std::string_view> results_;
};

/// That iterations go on while a counter is less than a number: which of the values these are.
struct LoopLimit {
  std::optional<size_t> counter, limit;
};
/// All limits of a condition; nothing where it is not made of such ones.
std::optional<std::vector<LoopLimit>> limits_of(const LoopText& condition);

}  // namespace tensormill::frontend::tensorflow
