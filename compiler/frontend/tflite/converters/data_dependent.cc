// Operators whose results have data-dependent extents.
#include "compiler/build/extents/data_dependent.h"

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

void convert_where(NodeContext& node) { node.set_stored(0, build::places_of_nonzero(node, node.stored(0))); }

// The distinct elements of a row, and which of them each one is.
void convert_unique(NodeContext& node) {
  const V x = node.stored(0);
  if (node.rank(x) != 1) node.invalid("an operand of shape " + to_string(node.shape(x)) + ", expected a row");
  const std::optional<DType> places = dtype_of(node.options<UniqueOptions>().idx_out_type);
  if (!places || *places != node.output_dtype(1)) node.invalid("idx_out_type is not the type of output 1");
  const build::DistinctSlices made = build::distinct_slices(node, x, 0);
  node.set_stored(0, made.values);
  node.set_stored(1, Compose(node).cast(made.which, *places));
}

}  // namespace tensormill::frontend::tflite
