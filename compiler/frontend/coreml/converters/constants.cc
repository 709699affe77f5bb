// Constants of the program.
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

void convert_const(NodeContext& node) {
  const auto found = node.node().attributes.find("val");
  if (found == node.node().attributes.end()) node.invalid("attribute val is missing");
  node.skip("val");
  node.set_stored(found->second);
}

}  // namespace tensormill::frontend::coreml
