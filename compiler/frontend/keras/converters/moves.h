/// What converters of moves share. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

/// `from`, whose first `kept` axes stay, with the others as `target` says, in which -1 is what is left.
ir::SymShape reshaped_to(const LayerContext& context, const ir::SymShape& from,
                         const std::vector<int64_t>& target, size_t kept);
/// A map [N,C,spatial...] with spatial axes of other sizes, by Keras' word for how.
V resized(LayerContext& context, V map, const ir::SymShape& sizes, const std::string& interpolation,
          bool antialias);
/// Values one behind the other, computed with their channels first where one of them is.
V concatenated(LayerContext& context, const std::vector<V>& parts, int64_t axis);

}  // namespace tensormill::frontend::keras
