// Values that operators make of attributes and shapes.
#include <cmath>

#include "compiler/frontend/mxnet/node_context.h"

namespace tensormill::frontend::mxnet {

namespace {

/// `count` numbers from `start` on, each so often.
V numbers(NodeContext& node, DType dtype, int64_t count, double start, double step, int64_t repeat) {
  if (repeat < 1 || count > build::kMaxListed / repeat)
    node.invalid(std::to_string(count) + " numbers, each " + std::to_string(repeat) + " times");
  std::vector<double> all;
  for (int64_t i = 0; i < count * repeat; ++i) all.push_back(start + step * static_cast<double>(i / repeat));
  return Compose(node).doubles(dtype, all, {count * repeat});
}

}  // namespace

// _zeros, _ones and _full. An extent of 0 is one that MXNet works out from what reads it.
void convert_fill(NodeContext& node) {
  node.skip("ctx");
  ir::SymShape shape;
  for (const int64_t extent : node.ints("shape", std::vector<int64_t>())) {
    if (extent < 1) node.unsupported("shape", "an extent that is not given is not implemented");
    shape.emplace_back(extent);
  }
  if (shape.empty()) shape.push_back(1);
  const double value = node.op() == "_ones" ? 1 : node.op() == "_full" ? node.real("value") : 0;
  node.set_output(Compose(node).filled(node.dtype_named("dtype", DType::kFloat32), shape, value));
}

// zeros_like and ones_like.
void convert_fill_like(NodeContext& node) {
  const V x = node.input(0);
  node.set_output(Compose(node).filled(node.dtype(x), node.shape(x), node.op() == "ones_like" ? 1 : 0));
}

void convert_arange(NodeContext& node) {
  node.skip("ctx");
  if (node.flag("infer_range", false))
    node.unsupported("infer_range", "an end that is not given is not implemented");
  double start = node.real("start", 0), stop = start;
  const double step = node.real("step", 1);
  // One number is the end.
  if (node.has("stop")) {
    stop = node.real("stop");
  } else {
    start = 0;
  }
  const double count = std::ceil((stop - start) / step);
  if (!(count >= 0) || count > static_cast<double>(build::kMaxListed))
    node.invalid("numbers from " + std::to_string(start) + " to " + std::to_string(stop) + " by " +
                 std::to_string(step));
  node.set_output(numbers(node, node.dtype_named("dtype", DType::kFloat32), static_cast<int64_t>(count),
                          start, step, node.integer("repeat", 1)));
}

// As many numbers as an axis has elements, or in the input's shape.
void convert_arange_like(NodeContext& node) {
  Compose c(node);
  node.skip("ctx");
  const V x = node.input(0);
  if (node.integer("repeat", 1) != 1) node.unsupported("repeat", "it is not implemented");
  const ir::SymShape shape = node.shape(x);
  const ir::SymShape to =
      node.has("axis") ? ir::SymShape{shape[static_cast<size_t>(node.axis("axis", node.rank(x)))]} : shape;
  const V places = c.cast(c.iota(num_elements(to), to), node.dtype(x));
  node.set_output(c.plus(c.times(places, node.real("step", 1)), node.real("start", 0)));
}

// The extents, or their product.
void convert_shape_array(NodeContext& node) {
  const ir::SymShape shape = node.shape(node.input(0));
  node.set_output(node.extents(node.op() == "shape_array" ? shape : ir::SymShape{num_elements(shape)}));
}

void convert_div_sqrt_dim(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  if (node.rank(x) < 1) node.invalid("the input has no dims");
  const V size = c.extent(x, node.shape(x)[node.shape(x).size() - 1]);
  node.set_output(c.div(x, c.unary("sqrt", size)));
}

}  // namespace tensormill::frontend::mxnet
