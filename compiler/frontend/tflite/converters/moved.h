/// Operators that only move elements. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

/// Output 0 is what `move` makes of operand `index`: of its integers where the output has their scale.
template <typename Move>
void set_moved(NodeContext& node, size_t index, const Move& move) {
  if (node.has_output_scale(index)) return node.set_stored(0, move(node.stored(index)));
  node.set_real(0, move(node.real(index)));
}

}  // namespace tensormill::frontend::tflite
