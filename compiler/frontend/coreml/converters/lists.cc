// Lists of tensors, as tensors whose first axis is the list's: of a length, and written at places, that the
// import knows.
#include <algorithm>

#include "compiler/build/moves/places.h"
#include "compiler/frontend/coreml/node_context.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::coreml {

namespace {

/// Integers that are known, of any shape.
ir::Ints known_places(NodeContext& node, const char* name) {
  const Tensor* known = node.graph().value(node.tensor(name)).tensor();
  if (known == nullptr) node.unsupported(name, "places of a list that a run works out are not implemented");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < known->num_elements(); ++i) {
    const int64_t place = known->element_as_int(i);
    if (place < 0 || place >= build::kMaxListed)
      node.invalid("place " + std::to_string(place) + " of a list");
    places.push_back(place);
  }
  return places;
}

/// Operand ls, whose first axis is the list's.
V list_of(NodeContext& node) {
  const V list = node.tensor("ls");
  if (node.rank(list) < 1) node.invalid("ls is no list");
  return list;
}

/// The list with rows at places, longer where one of them is behind its end.
V list_with(NodeContext& node, const std::vector<int64_t>& places, V rows) {
  Compose c(node);
  V list = list_of(node);
  ir::SymShape shape = node.shape(list);
  const int64_t length = shape[0];
  if (ir::SymShape row = node.shape(rows);
      row.empty() || !ir::demand(ir::Relation::kEqual, row[0], static_cast<int64_t>(places.size())) ||
      !ir::demand_equal(ir::SymShape(row.begin() + 1, row.end()),
                        ir::SymShape(shape.begin() + 1, shape.end())))
    node.invalid("rows of shape " + to_string(row) + " for a list of shape " + to_string(shape));
  const int64_t needed = places.empty() ? length : *std::max_element(places.begin(), places.end()) + 1;
  if (needed > length) {
    shape[0] = needed - length;
    list = c.concat({list, c.filled(node.dtype(list), shape, 0)}, 0);
  }
  if (places.empty()) return list;
  const auto count = static_cast<int64_t>(places.size());
  return build::scattered(node, list, c.ints(places, {count}), rows, "none");
}

}  // namespace

// Elements that are not written are 0.
void convert_make_list(NodeContext& node) {
  const int64_t length = node.integer("init_length", 1);
  if (length < 0 || length > build::kMaxListed) node.invalid("a list of " + std::to_string(length));
  node.skip("dynamic_length");  // a list grows where something is written behind its end
  const std::string name = node.text("dtype", "fp32");
  const std::optional<DType> dtype = dtype_of(type_named(name));
  if (!dtype) node.unsupported("dtype", "\"" + name + "\" is not implemented");
  ir::SymShape shape{length};
  if (node.has("elem_shape")) {
    for (const V each : node.tensors("elem_shape")) {
      const Tensor* extent = node.graph().value(each).tensor();
      if (extent == nullptr || extent->num_elements() != 1 || is_float(extent->dtype()) ||
          extent->dtype() == kString || extent->element_as_int(0) < 0)
        node.unsupported("elem_shape", "elements of free shapes are not implemented");
      shape.push_back(extent->element_as_int(0));
    }
  }
  node.set_output(Compose(node).filled(*dtype, shape, 0));
}

void convert_list_write(NodeContext& node) {
  const ir::Ints places = known_places(node, "index");
  if (places.size() != 1) node.invalid(std::to_string(places.size()) + " places for one element");
  node.set_output(list_with(node, places, Compose(node).unsqueeze(node.tensor("value"), 0)));
}

void convert_list_scatter(NodeContext& node) {
  node.set_output(list_with(node, known_places(node, "indices"), node.tensor("value")));
}

void convert_list_read(NodeContext& node) {
  Compose c(node);
  const V place = c.reshape(c.cast(node.tensor("index"), DType::kInt64), {});
  node.set_output(c.gather(node.tensor("ls"), place, 0));
}

void convert_list_gather(NodeContext& node) {
  Compose c(node);
  node.set_output(c.gather(node.tensor("ls"), c.cast(node.tensor("indices"), DType::kInt64), 0));
}

void convert_list_length(NodeContext& node) {
  Compose c(node);
  node.set_cast(0, c.dims({node.shape(list_of(node))[0]}, {}));
}

}  // namespace tensormill::frontend::coreml
