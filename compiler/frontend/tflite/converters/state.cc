// Variables of a file. A run begins with them as their initializer leaves them: what a run assigns is read
// by what stands behind it, and forgotten when the run ends.
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

void convert_var_handle(NodeContext& node) {
  const auto options = node.options<VarHandleOptions>();
  auto& handles = node.import_state().handles;
  const std::string name = std::string(options.container) + "/" + std::string(options.shared_name);
  const auto number = static_cast<int64_t>(handles.size());
  const int64_t known = handles.emplace(name, number).first->second;
  node.set_stored(0, node.constant(::tensormill::Tensor::from<int64_t>({}, std::vector<int64_t>{known})));
}

void convert_read_variable(NodeContext& node) {
  const auto& variables = node.import_state().variables;
  const auto found = variables.find(node.handle(0));
  if (found == variables.end()) node.invalid("the variable is read before anything is assigned to it");
  node.set_stored(0, found->second);
}

void convert_assign_variable(NodeContext& node) {
  node.import_state().variables.insert_or_assign(node.handle(0), node.stored(1));
}

void convert_call_once(NodeContext& node) {
  const auto options = node.options<CallOnceOptions>();
  if (!node.import_state().initialized.insert(options.init_subgraph_index).second) return;
  node.call(static_cast<uint32_t>(options.init_subgraph_index), {});
}

}  // namespace tensormill::frontend::tflite
