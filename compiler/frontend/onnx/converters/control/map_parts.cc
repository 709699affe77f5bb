// CastMap: a map's values as a row.
#include "compiler/frontend/onnx/converters/control/map_parts.h"

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

V cast_values(NodeContext& context, V values) {
  Compose c(context);
  const std::string to = context.string_attr("cast_to", "TO_FLOAT");
  if (to == "TO_STRING") return is_text(context, values) ? values : text_of_numbers(context, values);
  if (to != "TO_FLOAT" && to != "TO_INT64") context.invalid("cast_to is \"" + to + "\"");
  const DType type = to == "TO_FLOAT" ? DType::kFloat32 : DType::kInt64;
  return is_text(context, values) ? numbers_of_text(context, values, type) : c.cast(values, type);
}

}  // namespace

MapParts map_parts(NodeContext& context) {
  if (!context.has_input(1)) context.unsupported("X", "a map that a node makes is not implemented");
  const MapParts parts{context.input(0), context.input(1)};
  if (shown_rank(context, parts.keys) != 1 || shown_rank(context, parts.values) != 1 ||
      context.type(parts.keys).shape[0] != context.type(parts.values).shape[0])
    context.invalid("a map has keys of shape " + to_string(context.type(parts.keys).shape) +
                    " and values of " + to_string(context.type(parts.values).shape));
  return parts;
}

// map_form DENSE: the values in the order of their keys. SPARSE: max_map of them, each at the place that its
// key says, 0 or an empty string elsewhere.
void convert_cast_map(NodeContext& context) {
  Compose c(context);
  const MapParts map = map_parts(context);
  if (is_text(context, map.keys)) context.invalid("the keys of the map are strings");
  V values = cast_values(context, map.values);
  const ir::SymInt entries = c.shape(map.keys)[0];
  const std::string form = context.string_attr("map_form", "DENSE");
  V from = ir::kAbsent;
  if (form == "DENSE") {
    from = context.add("sort_positions", {map.keys},
                       {{"axis", int64_t{0}}, {"k", entries}, {"largest", int64_t{0}}});
  } else if (form == "SPARSE") {
    const int64_t most = context.int_attr("max_map", 1);
    if (most < 1 || most > (int64_t{1} << 24)) context.invalid("max_map is " + std::to_string(most));
    ir::SymShape pad = c.shape(values);
    pad[0] = 1;
    values = c.concat({values, c.filled(c.dtype(values), pad, 0)}, 0);
    const V inside = c.binary("and", c.binary("greater_equal", map.keys, c.number(map.keys, 0)),
                              c.binary("less", map.keys, c.number(map.keys, static_cast<double>(most))));
    const V places = c.where(inside, map.keys, c.number(map.keys, static_cast<double>(most)));
    // The pad is the value of places without a key.
    const V none = c.expand(c.filled(DType::kInt64, {1}, static_cast<double>(entries)), {most + 1});
    const V placed = context.add("scatter", {none, places, c.iota(entries)},
                                 {{"axis", int64_t{0}}, {"reduction", std::string("none")}});
    from = c.slice(placed, 0, 0, most);
  } else {
    context.invalid("map_form is \"" + form + "\"");
  }
  context.set_output(0, c.unsqueeze(c.gather(values, from, 0), 0));
}

}  // namespace tensormill::frontend::onnx
