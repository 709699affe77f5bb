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
constexpr std::array kOperations = {
#define KERAS_OPERATION(name, convert) LayerRow{name, MaskRule::kDropped, convert},
#include "compiler/frontend/keras/operations.def"
#undef KERAS_OPERATION
};

template <typename Rows>
const LayerRow* row_in(const Rows& rows, std::string_view name) {
  const auto* row =
      std::find_if(rows.begin(), rows.end(), [&](const LayerRow& each) { return each.name == name; });
  return row == rows.end() ? nullptr : row;
}

}  // namespace

const LayerRow* find_row(const Layer& layer) {
  return layer.is_operation ? row_in(kOperations, layer.class_name) : row_in(kLayers, layer.class_name);
}

}  // namespace tensormill::frontend::keras
