// Operators of TensorFlow that a file holds by their own description (flex.h).
#include "compiler/frontend/tflite/flex.h"

#include "compiler/frontend/tflite/node_context.h"
#include "compiler/frontend/wire/flexbuffer.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::tflite {

void convert_flex(NodeContext& node) {
  const Json options = wire::flexbuffer_to_json(node.node().custom_options);
  if (!options.is_array() || options.size() != 2 || !options[1].is_string())
    node.invalid("its options are no name and description of an operator");
  std::vector<V> operands;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    if (is_quantized(node.input_tensor(i)))
      node.unsupported("operand " + std::to_string(i),
                       "integers that stand for real numbers are not implemented");
    operands.push_back(node.stored(i));
  }
  const ImportState& state = node.import_state();
  const auto& definition = options[1].get_ref<const std::string&>();
  const std::vector<V> results = state.flex.add(state.graph, state.reserved, definition, operands);
  if (results.size() < node.num_outputs())
    node.invalid("it has " + std::to_string(node.num_outputs()) + " results, its operator " +
                 std::to_string(results.size()));
  for (size_t i = 0; i < node.num_outputs(); ++i) node.set_stored(i, results[i]);
}

}  // namespace tensormill::frontend::tflite
