#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

namespace {

constexpr std::array kLayers = {
#define KERAS_LAYER(name, mask, convert) LayerRow{name, MaskRule::mask, convert},
#include "compiler/frontend/keras/layers.def"
#undef KERAS_LAYER
};
constexpr std::array kOperations = {
#define KERAS_OPERATION(name, convert) LayerRow{name, MaskRule::kDropped, convert},
#include "compiler/frontend/keras/operations.def"
#undef KERAS_OPERATION
};

}  // namespace

const LayerRow* find_row(const Layer& layer) {
  return layer.is_operation ? build::find_in(kOperations, &LayerRow::name, layer.class_name)
                            : build::find_in(kLayers, &LayerRow::name, layer.class_name);
}

}  // namespace tensormill::frontend::keras
