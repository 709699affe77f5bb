// Elements in order, their places, and places as vectors.
#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

// Operand k: -1 stands for all.
void convert_topk(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const int64_t given = node.integer("k", 1);
  const ir::SymInt k = given == -1 ? extent : ir::SymInt(given);
  if (!ir::demand(ir::Relation::kLess, 0, k) || !ir::demand(ir::Relation::kLessEqual, k, extent))
    node.invalid("k is " + to_string(k) + " for an axis of " + to_string(extent));
  node.skip("sort");                  // what is in order is right where any order is
  node.skip("output_indices_dtype");  // the output says it
  const V places =
      build::ordered_places(node, build::orderable(node, x), axis, k, node.flag("ascending", false));
  node.set_output(0, c.gather_elements(x, places, axis));
  if (node.flag("return_indices", true)) node.set_cast(1, places);
}

void convert_argsort(NodeContext& node) {
  const V x = node.tensor("x");
  const int64_t axis = node.axis("axis", node.rank(x), -1);
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  node.set_cast(
      0, build::ordered_places(node, build::orderable(node, x), axis, extent, node.flag("ascending", false)));
}

void convert_non_zero(NodeContext& node) {
  const V x = node.tensor("x");
  node.set_cast(0, build::places_of_nonzero(node, Compose(node).cast(x, DType::kBool)));
}

// A negative index is no place.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V indices = c.cast(node.tensor("indices"), DType::kInt64);
  const ir::SymInt depth = node.number("one_hot_vector_size", 0);
  const int64_t axis = node.axis("axis", node.rank(indices) + 1, -1);
  const DType dtype = node.output_dtype();
  const V on = c.filled(dtype, {1}, node.real("on_value", 1)),
          off = c.filled(dtype, {1}, node.real("off_value", 0));
  if (!depth.is_constant()) {
    ir::SymShape along(node.shape(indices));
    along.insert(along.begin() + axis, 1);
    const V place = c.positions(depth, static_cast<size_t>(axis), along.size());
    const V is_it = c.binary("equal", c.reshape(indices, along), place);
    return node.set_output(c.where(is_it, c.reshape(on, {}), c.reshape(off, {})));
  }
  const V inside = c.where(c.binary("less", indices, c.number(indices, 0)),
                           c.number(indices, static_cast<double>(depth.hint())), indices);
  node.set_output(
      node.add("one_hot", {inside, c.concat({off, on}, 0)}, {{"axis", axis}, {"depth", depth.hint()}}));
}

}  // namespace tensormill::frontend::coreml
