/// Loops over lists that are as long as a free dim or a run says, as tf.map_fn makes them: they stay loops of
/// the graph (ir/loops.h). Thread-safety: as the graph.
#pragma once

#include <vector>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// Whether one of them is such a list.
bool has_open_list(const std::vector<Item>& items);
/// The node, a While, whose loop goes once over all elements of its open lists: iterations count from a
/// number that is known by 1 to the lists' length, get their own elements, and set each one of the lists that
/// they make. Throws UnsupportedForm for another loop.
std::vector<Item> looped_over_rows(NodeContext& node, const FunctionRef& condition, const FunctionRef& body,
                                   const std::vector<Item>& initial);

}  // namespace tensormill::frontend::tensorflow
