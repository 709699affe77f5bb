#include "compiler/build/numbers/einsum.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

void convert_einsum(NodeContext& context) {
  std::vector<ir::ValueId> operands;
  for (size_t i = 0; i < context.num_inputs(); ++i) operands.push_back(context.input(i));
  context.set_output(0, build::einsum(context, context.string_attr("equation", ""), operands));
}

}  // namespace tensormill::frontend::onnx
