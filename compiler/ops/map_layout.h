/// Maps whose channels stand last, [N,spatial...,C], which attribute channels_last (bool, 0) of an operator
/// over maps says. Its type rule, its reference and its parts are then those of [N,C,spatial...], evaluated
/// on the same elements; only its tensor expression has to know where an axis stands, which MapAxes says.
/// Thread-safety: pure functions.
#pragma once

#include <optional>

#include "compiler/ops/type_rules.h"

namespace tensormill::ops {

inline constexpr const char* kChannelsLast = "channels_last";

bool is_channels_last(const ir::Attrs& attrs);

/// Where the axes of a map of `rank` dimensions stand.
struct MapAxes {
  size_t channel = 1;
  size_t spatial = 2;  ///< the first of them; the others follow
};
MapAxes map_axes(const ir::Attrs& attrs, size_t rank);

/// What an operator has besides its map, input 0.
enum class MapWeights : uint8_t {
  kNone,        ///< rows of channels at most
  kConv,        ///< input 1 is [M,C,kernel...]; of channels last [kernel...,C,M]
  kTransposed,  ///< input 1 is [C,M,kernel...]; of channels last [kernel...,C,M]
};

/// Where the axes of a map, and of weights, with the channels first stand in one of channels last.
std::vector<size_t> first_from_last(size_t rank);
std::vector<size_t> weights_from_last(MapWeights weights, size_t rank);
/// The weights' shape with the channels first.
ir::SymShape weights_first(const ir::Attrs& attrs, MapWeights weights, const ir::SymShape& shape);

namespace map_layout {

/// The types of a context's inputs with the channels first, and the context of those.
struct FirstTypes {
  FirstTypes(MapWeights weights, const std::vector<const ir::ValueType*>& inputs);
  std::vector<std::optional<ir::ValueType>> types;
  std::vector<const ir::ValueType*> pointers() const;
};
ir::SymShape last_shape(const ir::SymShape& first);
void reference(const ir::ReferenceContext& context, MapWeights weights,
               void (*plain)(const ir::ReferenceContext&));
bool part(ir::PartContext& context, MapWeights weights, bool (*plain)(ir::PartContext&));

}  // namespace map_layout

/// `rule`, a type rule of maps with the channels first and of one output, for both.
template <auto rule, MapWeights weights = MapWeights::kNone>
std::vector<ir::ValueType> infer_of_map(const ir::InferContext& context) {
  if (!is_channels_last(context.attrs)) return rule(context);
  const map_layout::FirstTypes first(weights, context.inputs);
  std::vector<ir::ValueType> made = rule({context.attrs, first.pointers()});
  made[0].shape = map_layout::last_shape(made[0].shape);
  return made;
}

template <auto plain, MapWeights weights = MapWeights::kNone>
void reference_of_map(const ir::ReferenceContext& context) {
  is_channels_last(context.attrs) ? map_layout::reference(context, weights, plain) : plain(context);
}

template <auto plain, MapWeights weights = MapWeights::kNone>
bool part_of_map(ir::PartContext& context) {
  return is_channels_last(context.attrs) ? map_layout::part(context, weights, plain) : plain(context);
}

}  // namespace tensormill::ops
