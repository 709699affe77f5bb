// Operators on the bits of elements.
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

void convert_right_shift(NodeContext& node) {
  node.set_stored(0, build::right_shift(node, node.stored(0), node.stored(1)));
}

void convert_stablehlo_shift_left(NodeContext& node) {
  node.set_stored(0, build::left_shift(node, node.stored(0), node.stored(1)));
}

void convert_bitcast(NodeContext& node) {
  node.set_stored(0, build::bitcast(node, node.stored(0), node.output_dtype(0)));
}

}  // namespace tensormill::frontend::tflite
