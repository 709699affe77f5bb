/// Loops over lists that are as long as a free dim or a run says, as tf.map_fn makes them, and others that
/// count to such a number: they stay loops of the graph (ir/loops.h). Thread-safety: as the graph.
#pragma once

#include <functional>
#include <vector>

#include "compiler/frontend/tensorflow/converters/loop_text.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

struct LoopForm {
  LoopText condition, body;
  /// What an iteration makes of its values. Throws CallFails.
  std::function<std::vector<Item>(NodeContext& node, const std::vector<Item>& values)> step;
};

/// Whether one of them is such a list.
bool has_open_list(const std::vector<Item>& items);
/// Whether it is a number that is not one for all runs. A bound of such a limit may show that the first
/// iterations are there, whereas it does not say how many there are.
bool is_free_number(const ir::Graph& graph, const Item& item);
/// Whether a While of that condition counts to one.
bool ends_at_free_number(NodeContext& node, const FunctionRef& condition, const std::vector<Item>& initial);
/// What a loop makes of its first values, which are the node's operands. Iterations count from a number that
/// is known by 1 to one that stays. They set one element each of the lists that they make, from the first one
/// on that is not set yet to the last, and read any elements of others. Throws UnsupportedForm for another
/// loop.
std::vector<Item> looped_over_rows(NodeContext& node, const LoopForm& form, const std::vector<Item>& initial);
/// The same of a While of these functions.
std::vector<Item> looped_over_rows(NodeContext& node, const FunctionRef& condition, const FunctionRef& body,
                                   const std::vector<Item>& initial);

}  // namespace tensormill::frontend::tensorflow
