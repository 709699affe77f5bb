#include <algorithm>
#include <array>

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

namespace {

constexpr std::array kLayers = {
#define KERAS_LAYER(name, mask, convert) LayerRow{name, MaskRule::mask, convert},
#include "compiler/frontend/keras/layers.def"
#undef KERAS_LAYER
};

}  // namespace

const LayerRow* find_row(const Layer& layer) {
  if (layer.is_operation()) return nullptr;
  const auto* row = std::find_if(kLayers.begin(), kLayers.end(),
                                 [&](const LayerRow& each) { return each.name == layer.class_name; });
  return row == kLayers.end() ? nullptr : row;
}

}  // namespace tensormill::frontend::keras
