// Constants, and numbers that stand for real ones.
#include "compiler/build/numbers/quantize.h"
#include "compiler/frontend/caffe2/node_context.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::caffe2 {

void convert_given_fill(NodeContext& node) {
  node.has("shape");
  node.has("values");
  node.set_stored(node.loaded().filled(node.node()));
}

void convert_int8_given_fill(NodeContext& node) {
  node.has("shape");
  node.has("values");
  const Scale scale{node.real("Y_scale", 1), node.integer("Y_zero_point", 0)};
  if (!(scale.scale > 0)) node.invalid("argument Y_scale is " + std::to_string(scale.scale));
  node.set_stored(node.loaded().filled(node.node()), scale);
}

// Of the shape that an argument says, that of an operand, or, with input_as_shape, that its elements say.
void convert_constant_fill(NodeContext& node) {
  node.has("shape");
  node.has("value");
  node.has("dtype");
  const bool is_shape = node.flag("input_as_shape", false);
  const std::optional<int64_t> elements = filled_elements(node.node());
  if (!elements) node.invalid("argument shape is none");
  const bool is_said = node.num_operands() == 0;
  if (is_said && *elements <= kMostEqual) return node.set_stored(node.loaded().filled(node.node()));
  const std::optional<DType> dtype = filled_dtype(node.node());
  if (!dtype) node.unsupported("dtype", "elements of this type are not implemented");
  const ir::SymShape to = is_said    ? ir::SymShape(node.ints("shape"))
                          : is_shape ? node.numbers(0, 0)
                                     : node.shape(node.operand(0));
  node.set_output(Compose(node).filled(*dtype, to, node.has("value") ? node.real("value") : 0));
}

void convert_int8_quantize(NodeContext& node) { node.set_rounded(node.operand(0)); }

void convert_int8_dequantize(NodeContext& node) {
  Compose c(node);
  const V x = node.integers(0);
  const Scale scale = node.scale_of(0);
  node.set_output(build::dequantize(node, x, c.doubles(DType::kFloat32, {scale.scale}, {}),
                                    c.number(x, static_cast<double>(scale.zero))));
}

}  // namespace tensormill::frontend::caffe2
