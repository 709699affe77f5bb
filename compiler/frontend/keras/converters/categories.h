/// Categories as Keras' layers have them. Thread-safety: as the context.
#pragma once

#include <string>

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

/// Categories [batch,n] or [batch] as an output mode has them, "one_hot", "multi_hot" or "count":
/// [batch,tokens]. UnsupportedForm for another mode.
V encoded_categories(LayerContext& context, V categories, int64_t tokens, const std::string& mode);

}  // namespace tensormill::frontend::keras
