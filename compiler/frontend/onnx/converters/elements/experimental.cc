// The operators that ONNX 1.0 had as experimental ones and took away later. ONNX Runtime reads them at any
// opset, since converters from Core ML and Caffe2 went on writing them.
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/ml.h"

namespace tensormill::frontend::onnx {

// alpha * x + beta
void convert_affine(NodeContext& context) {
  Compose c(context);
  const double alpha = context.float_attr("alpha", 1), beta = context.float_attr("beta", 0);
  context.set_output(0, c.plus(c.times(context.input(0), alpha), beta));
}

// alpha * log(1 + e^(beta * x))
void convert_parametric_softplus(NodeContext& context) {
  Compose c(context);
  const double alpha = context.float_attr("alpha", 1), beta = context.float_attr("beta", 1);
  context.set_output(0, c.times(c.unary("softplus", c.times(context.input(0), beta)), alpha));
}

// alpha * tanh(beta * x)
void convert_scaled_tanh(NodeContext& context) {
  Compose c(context);
  const double alpha = context.float_attr("alpha", 1), beta = context.float_attr("beta", 1);
  context.set_output(0, c.times(c.unary("tanh", c.times(context.input(0), beta)), alpha));
}

// Pictures [N,C,H,W] times a number, plus one for each channel.
void convert_image_scaler(NodeContext& context) {
  Compose c(context);
  const ir::SymShape shape = c.shape(context.input(0));
  const ir::CheckedList<double> bias = float_values(context, "bias");
  if (shape.size() != 4 || static_cast<int64_t>(bias.size()) != shape[1])
    context.invalid("an image of shape " + to_string(shape) + " has " + std::to_string(bias.size()) +
                    " numbers in bias");
  const ir::ValueId scaled = c.times(context.input(0), context.float_attr("scale", 1));
  context.set_output(0, c.add(scaled, c.doubles(c.dtype(scaled), bias, {shape[1], 1, 1})));
}

}  // namespace tensormill::frontend::onnx
