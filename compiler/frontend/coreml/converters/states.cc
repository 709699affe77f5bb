// States of the function, which are values that operations read and replace.
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

void convert_read_state(NodeContext& node) { node.set_output(node.state("input")); }

void convert_write_state(NodeContext& node) {
  V& state = node.state("input");
  const V value = node.tensor("data");
  if (node.dtype(value) != node.dtype(state) || !ir::demand_equal(node.shape(value), node.shape(state)))
    node.invalid("a state " + ir::to_string(node.type(state)) + " becomes " +
                 ir::to_string(node.type(value)));
  state = value;
}

}  // namespace tensormill::frontend::coreml
