/// What converters of windows share. Thread-safety: as the context.
#pragma once

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

/// Throws Error(kInvalidModel) for an input of another rank.
void check_rank(const LayerContext& context, V x, int64_t rank);
/// Of a map [N,C,spatial...]; throws UnsupportedForm where they are a free dim.
int64_t channels_of(const LayerContext& context, V map);
/// The number in the name of the class: of Conv2D 2.
size_t spatial_rank(const LayerContext& context);
/// The layer's input, which has spatial_rank(context) dims besides batch and channels; throws
/// Error(kInvalidModel) for one of another rank.
V spatial_input(LayerContext& context);
/// Windows over x [N,C,spatial...] with the pads of "valid", "same" or "causal".
build::Windows windows_over(const LayerContext& context, V x, const std::string& padding,
                            const std::vector<int64_t>& kernel, std::vector<int64_t> strides,
                            std::vector<int64_t> dilations);

}  // namespace tensormill::frontend::keras
