/// What operators on strings share. Thread-safety: as the graph.
#pragma once

#include <string>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// The operand; throws Error(kInvalidModel) where it holds no strings.
V text_operand(NodeContext& node, size_t index);
/// `text`, as packages say attributes; throws UnsupportedForm about `what` for bytes that are no UTF-8.
std::string checked_text(const NodeContext& node, const char* what, std::string text);

}  // namespace tensormill::frontend::tensorflow
