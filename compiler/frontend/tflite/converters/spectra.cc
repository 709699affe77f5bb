// Fourier transforms and the parts of complex numbers, which are pairs along a last axis here.
#include <algorithm>
#include <numeric>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr int64_t kLongestLine = int64_t{1} << 24;

/// x with its axis `axis` as long as `extent`: cut, or with zeros behind.
V as_long(NodeContext& node, V x, size_t axis, int64_t extent) {
  ir::SymShape shape = node.shape(x);
  const ir::SymInt own = shape[axis];
  if (same(own, extent)) return x;
  Compose c(node);
  if (ir::demand(ir::Relation::kLessEqual, extent, own))
    return c.slice(x, static_cast<int64_t>(axis), 0, extent);
  shape[axis] = extent - own;
  return c.concat({x, c.filled(c.dtype(x), shape, 0)}, static_cast<int64_t>(axis));
}

/// The transform of each line of x [..., m, 1 or 2], of m numbers.
V transformed(NodeContext& node, V x, int64_t extent) {
  Compose c(node);
  const std::vector<double> ones(static_cast<size_t>(extent), 1);
  return node.add("fourier", {x, c.doubles(DType::kFloat32, ones, {extent})},
                  {{"axis", node.rank(x) - 2}, {"inverse", int64_t{0}}, {"hermitian", int64_t{0}}});
}

}  // namespace

// Operands: x [..., height, width], the extents of the transform. Of a line that is real, half tells all.
void convert_rfft_2d(NodeContext& node) {
  Compose c(node);
  V x = node.real(0);
  const ir::Ints extents = node.known_ints(1, "fft_length");
  if (node.rank(x) < 2 || extents.size() != 2) node.invalid("it has no two axes to transform");
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > kLongestLine) node.invalid("fft_length is " + std::to_string(extent));
  }
  const auto rank = static_cast<size_t>(node.rank(x));
  x = as_long(node, as_long(node, x, rank - 2, extents[0]), rank - 1, extents[1]);
  const V across = transformed(node, c.unsqueeze(x, static_cast<int64_t>(rank)), extents[1]);
  const V half = c.slice(across, static_cast<int64_t>(rank) - 1, 0, extents[1] / 2 + 1);
  ir::Ints perm = c.count_to(static_cast<int64_t>(rank) + 1);
  std::swap(perm[rank - 1], perm[rank - 2]);
  node.set_pair(0, c.transpose(transformed(node, c.transpose(half, perm), extents[0]), perm));
}

namespace {

V part_of(NodeContext& node, V pair, int64_t index) {
  const int64_t last = node.rank(pair) - 1;
  Compose c(node);
  return c.squeeze(c.slice(pair, last, index, 1), last);
}

}  // namespace

void convert_real(NodeContext& node) { node.set_real(0, part_of(node, node.pair(0), 0)); }

void convert_imag(NodeContext& node) { node.set_real(0, part_of(node, node.pair(0), 1)); }

void convert_complex_abs(NodeContext& node) {
  const V x = node.pair(0);
  node.set_real(0, build::hypotenuse(node, part_of(node, x, 0), part_of(node, x, 1)));
}

}  // namespace tensormill::frontend::tflite
