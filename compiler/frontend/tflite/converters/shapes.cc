// Operators that take elements by their places, and shape arithmetic.
#include <algorithm>
#include <cmath>

#include "compiler/build/maps/space.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

void convert_gather(NodeContext& node) {
  const auto options = node.options<GatherOptions>();
  set_moved(node, 0, [&](V x) {
    const V indices = node.stored(1);
    const int64_t axis = node.normalize_axis(options.axis, node.rank(x));
    const int64_t batch =
        options.batch_dims < 0 ? options.batch_dims + node.rank(indices) : options.batch_dims;
    return build::batched_gather(node, x, indices, axis, batch);
  });
}

void convert_gather_nd(NodeContext& node) {
  set_moved(node, 0, [&](V x) { return build::gather_nd(node, x, node.stored(1)); });
}

// The row ids come first.
void convert_embedding_lookup(NodeContext& node) {
  set_moved(node, 1, [&](V table) { return Compose(node).gather(table, node.stored(0), 0); });
}

void convert_tile(NodeContext& node) {
  const ir::SymShape repeats = node.known_ints(1, "multiples");
  set_moved(node, 0, [&](V x) { return node.add("tile", {x}, {{"repeats", repeats}}); });
}

void convert_broadcast_to(NodeContext& node) {
  const ir::SymShape shape = node.known_ints(1, "shape");
  set_moved(node, 0, [&](V x) { return Compose(node).expand(x, shape); });
}

void convert_space_to_depth(NodeContext& node) {
  const int64_t block = node.options<SpaceToDepthOptions>().block_size;
  set_moved(node, 0, [&](V x) { return build::space_to_depth(node, x, block); });
}

void convert_depth_to_space(NodeContext& node) {
  const int64_t block = node.options<DepthToSpaceOptions>().block_size;
  set_moved(node, 0, [&](V x) { return build::depth_to_space(node, x, block); });
}

void convert_space_to_batch(NodeContext& node) {
  const ir::Ints blocks = node.known_ints(1, "block_shape");
  const ir::SymShape paddings = node.known_ints(2, "paddings");
  const Quantization& quantization = node.input_tensor(0).quantization;
  const bool has_zero =
      node.has_output_scale(0) && is_quantized(node.input_tensor(0)) && !quantization.zero_point.empty();
  const double zero = has_zero ? static_cast<double>(quantization.zero_point.front()) : 0;
  set_moved(node, 0, [&](V x) { return build::space_to_batch(node, x, blocks, paddings, zero); });
}

void convert_batch_to_space(NodeContext& node) {
  const ir::Ints blocks = node.known_ints(1, "block_shape");
  const ir::SymShape crops = node.known_ints(2, "crops");
  set_moved(node, 0, [&](V x) { return build::batch_to_space(node, x, blocks, crops); });
}

void convert_shape(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.cast(node.extents(node.shape(node.stored(0))), node.output_dtype(0)));
}

void convert_rank(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.cast(c.ints({node.rank(node.stored(0))}, {}), node.output_dtype(0)));
}

void convert_fill(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.expand(node.stored(1), node.known_ints(0, "dims")));
}

void convert_zeros_like(NodeContext& node) {
  const V x = node.stored(0);
  node.set_stored(0, Compose(node).filled(node.type(x).dtype, node.shape(x), 0));
}

// Of known numbers.
void convert_range(NodeContext& node) {
  Compose c(node);
  const auto number = [&](size_t index, const char* what) -> double {
    if (!node.is_known(index)) node.unsupported(what, "it is worked out by a run");
    const ::tensormill::Tensor* tensor = node.graph().value(node.stored(index)).tensor();
    if (tensor == nullptr || tensor->num_elements() != 1) node.invalid(std::string(what) + " is no number");
    return tensor->element_as_double(0);
  };
  const double start = number(0, "start"), limit = number(1, "limit"), delta = number(2, "delta");
  if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
    node.invalid("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                 std::to_string(delta));
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (count > static_cast<double>(build::kMaxListed)) node.unsupported("limit", "the range is too long");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * delta);
  node.set_stored(0, c.doubles(node.output_dtype(0), values, {static_cast<int64_t>(values.size())}));
}

// Operands: indices, depth, on, off.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V indices = node.stored(0), on = node.stored(2), off = node.stored(3);
  const int64_t depth = node.known_int(1, "depth");
  int64_t axis = node.options<OneHotOptions>().axis;
  axis = axis == -1 ? node.rank(indices) : node.normalize_axis(axis, node.rank(indices) + 1);
  const V values = c.concat({c.reshape(off, {1}), c.reshape(on, {1})}, 0);
  // A negative index is no place here, as it is none in the file's own runtime.
  const V inside = node.add("where", {c.binary("less", indices, c.number(indices, 0)),
                                      c.number(indices, static_cast<double>(depth)), indices});
  node.set_stored(0, node.add("one_hot", {inside, values}, {{"axis", axis}, {"depth", depth}}));
}

}  // namespace tensormill::frontend::tflite
