/// The operands of operators of keras.ops: tensors and numbers. Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/frontend/keras/converters/moves.h"

namespace tensormill::frontend::keras {

/// A tensor of the call, or a constant of a number or a list of numbers: of the type of `like`, unless that
/// is absent.
V operand_of(LayerContext& context, const Json& argument, V like);
/// Casts operands to the type in which Keras computes with them: real numbers win, then width; plain numbers
/// have no type of their own. `wants_float`: integers become float32.
void fit_dtypes(LayerContext& context, std::vector<V>& operands, const std::vector<Json>& arguments,
                bool wants_float);
/// The first `count` arguments so.
std::vector<V> fitted_operands(LayerContext& context, size_t count, bool wants_float);

}  // namespace tensormill::frontend::keras
