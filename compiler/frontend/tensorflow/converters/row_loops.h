/// Loops over lists that are as long as a free dim or a run says, as tf.map_fn makes them: they stay loops of
/// the graph (ir/loops.h). Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/frontend/tensorflow/node_context.h"

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

struct LoopForm {
  LoopText condition, body;
  /// What an iteration makes of its values. Throws CallFails.
  std::function<std::vector<Item>(NodeContext& node, const std::vector<Item>& values)> step;
};

/// Whether one of them is such a list.
bool has_open_list(const std::vector<Item>& items);
/// What a loop makes of its first values, which are the node's operands: it goes once over the elements of
/// its open lists, from the first one on that is not set yet: iterations count from a number that is known by
/// 1 to the lists' length, get their own elements, and set each one of the lists that they make. Throws
/// UnsupportedForm for another loop.
std::vector<Item> looped_over_rows(NodeContext& node, const LoopForm& form, const std::vector<Item>& initial);
/// The same of a While of these functions.
std::vector<Item> looped_over_rows(NodeContext& node, const FunctionRef& condition, const FunctionRef& body,
                                   const std::vector<Item>& initial);

}  // namespace tensormill::frontend::tensorflow
