// Operators on diagonals, quarters of a turn, places in a storage, and what is made of parts next to each
// other.
#include <algorithm>

#include "compiler/build/moves/places.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// x whose last axis becomes a diagonal of two, which stand at the end.
V on_diagonal_of(NodeContext& node, V x, int64_t offset) {
  Compose c(node);
  const int64_t rank = node.rank(x);
  const ir::SymInt extent = node.shape(x).back();
  const ir::SymInt size = extent + std::abs(offset);
  // Along the rows where the diagonal is below, along the columns where it is above.
  const ir::SymInt before = offset < 0 ? ir::SymInt(-offset) : ir::SymInt(0);
  ir::SymShape pads(2 * static_cast<size_t>(rank), 0);
  pads[static_cast<size_t>(rank) - 1] = before;
  pads.back() = size - extent - before;
  const V rows = padded(node, numeric(node, x), pads, "constant", 0);
  const V at = c.sub(c.iota(size, {1, size}), c.iota(size, {size, 1}));
  const V is_on = c.binary("equal", at, c.ints({offset}, {1, 1}));
  const V wide = c.unsqueeze(rows, rank);
  return c.cast(c.where(is_on, wide, c.number(wide, 0)), node.dtype(x));
}

}  // namespace

// The last axis becomes a diagonal of two.
void convert_diag_embed(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t rank = node.rank(x), offset = node.integer("offset");
  const int64_t first = node.axis("dim1", rank + 1), second = node.axis("dim2", rank + 1);
  if (first == second || rank == 0) node.invalid("dim1 and dim2 are one axis");
  const V y = on_diagonal_of(node, x, offset);
  std::vector<int64_t> perm(static_cast<size_t>(rank) + 1, -1);
  perm[static_cast<size_t>(first)] = rank - 1;
  perm[static_cast<size_t>(second)] = rank;
  int64_t next = 0;
  for (int64_t& axis : perm)
    if (axis < 0) axis = next++;
  node.set_output(0, c.transpose(y, perm));
}

// A row as a diagonal, or the diagonal of a matrix.
void convert_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t offset = node.integer("diagonal");
  if (node.rank(x) == 1) return node.set_output(0, on_diagonal_of(node, x, offset));
  if (node.rank(x) != 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const ir::SymInt rows = node.shape(x)[0], columns = node.shape(x)[1];
  const ir::SymInt below = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  const ir::SymInt count = max(min(rows - below, columns - right), 0);
  const V places = c.add(c.mul(c.iota(count), c.dims({columns + 1}, {})),
                         c.dims({same(count, 0) ? ir::SymInt(0) : below * columns + right}, {}));
  node.set_output(0, c.gather(c.reshape(x, {rows * columns}), places, 0));
}

// x with a diagonal of two axes replaced, whose elements stand along the source's last axis.
void convert_diagonal_scatter(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t rank = node.rank(x), offset = node.integer("offset");
  const int64_t first = node.axis("dim1", rank), second = node.axis("dim2", rank);
  if (first == second) node.invalid("dim1 and dim2 are one axis");
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != first && axis != second) perm.push_back(axis);
  perm.insert(perm.end(), {first, second});
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const V matrices = c.transpose(x, perm), source = c.cast(node.tensor("src"), node.dtype(x));
  check_rank(node, source, rank - 1);
  const ir::SymInt rows = node.shape(matrices)[static_cast<size_t>(rank - 2)],
                   columns = node.shape(matrices)[static_cast<size_t>(rank - 1)];
  const ir::SymInt below = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  const ir::SymInt count = max(min(rows - below, columns - right), 0);
  if (!ir::demand(ir::Relation::kEqual, node.shape(source)[static_cast<size_t>(rank - 2)], count))
    node.invalid("a diagonal of " + to_string(count) + " elements from a source of " +
                 to_string(node.shape(source)));
  if (same(count, 0)) return node.set_output(0, node.add("identity", {x}));
  const V place = c.sub(c.iota(rows), c.dims({below}, {})), last = c.dims({count - 1}, {});
  const V inside = c.binary("min", c.binary("max", place, c.number(place, 0)), last);
  const V wide = c.unsqueeze(c.gather(source, inside, rank - 2), rank - 1);
  const V is_on = build::on_diagonal(node, node.shape(matrices), offset);
  node.set_output(0, c.transpose(c.where(is_on, wide, matrices), back));
}

// All elements as a diagonal.
void convert_diagflat(NodeContext& node) {
  const V x = node.tensor("self");
  const V row = Compose(node).reshape(x, {num_elements(node.shape(x))});
  node.set_output(0, on_diagonal_of(node, row, node.integer("offset")));
}

// A matrix with its diagonal filled, or a tensor of axes of one extent with its one.
void convert_fill_diagonal(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  if (node.flag("wrap") && shape.size() == 2 && !is_proven(ir::Relation::kLessEqual, shape[0], shape[1]))
    node.unsupported("wrap", "diagonals that begin again are not implemented");
  V is_on = ir::kAbsent;
  for (size_t axis = 1; axis < shape.size(); ++axis) {
    if (shape.size() > 2 && !ir::demand(ir::Relation::kEqual, shape[0], shape[axis]))
      node.invalid("axes of other extents: " + to_string(shape));
    const V here = c.binary("equal", c.positions(shape[0], 0, shape.size()),
                            c.positions(shape[axis], axis, shape.size()));
    is_on = is_on == ir::kAbsent ? here : both(node, is_on, here);
  }
  node.set_output(0, c.where(is_on, node.as(node.operand("fill_value"), node.dtype(x)), x));
}

void convert_trace(NodeContext& node) {
  Compose c(node);
  const V x = node.as_output(node.tensor("self"));
  const ir::SymShape s = node.shape(x);
  if (s.size() != 2) node.invalid("the input has rank " + std::to_string(s.size()));
  const V is_on = c.binary("equal", c.iota(s[0], {s[0], 1}), c.iota(s[1], {1, s[1]}));
  node.set_output(0, c.reduce("reduce_sum", c.where(is_on, x, c.number(x, 0)), {0, 1}, false));
}

namespace {

V reversed(NodeContext& node, V x, int64_t axis) {
  const ir::SymShape shape = node.shape(x);
  if (same(shape[static_cast<size_t>(axis)], 0)) return x;
  ir::SymShape starts(shape.size(), 0);
  std::vector<int64_t> steps(shape.size(), 1);
  starts[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)] - 1;
  steps[static_cast<size_t>(axis)] = -1;
  return node.add("slice", {x}, {{"starts", starts}, {"extents", shape}, {"steps", steps}});
}

}  // namespace

// Quarters of a turn from the first axis towards the second.
void convert_rot90(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self");
  if (node.rank(x) < 2) node.invalid("the input has rank " + std::to_string(node.rank(x)));
  const ir::Ints axes = node.axes("dims", node.rank(x));
  if (axes.size() != 2) node.invalid("dims has " + std::to_string(axes.size()) + " numbers, expected 2");
  const int64_t turns = ((node.integer("k") % 4) + 4) % 4;
  ir::Ints perm = c.count_to(node.rank(x));
  std::swap(perm[static_cast<size_t>(axes[0])], perm[static_cast<size_t>(axes[1])]);
  if (turns == 2) x = reversed(node, reversed(node, x, axes[0]), axes[1]);
  if (turns == 1) x = c.transpose(reversed(node, x, axes[1]), perm);
  if (turns == 3) x = reversed(node, c.transpose(x, perm), axes[1]);
  node.set_output(0, turns == 0 ? node.add("identity", {x}) : x);
}

// a1 b2 - a2 b1 ...: an axis of 3, without one that is named the first such.
void convert_cross(NodeContext& node) {
  Compose c(node);
  V a = node.as_output(node.tensor("self")), b = node.as_output(node.tensor("other"));
  const ir::SymShape whole = broadcast_shapes(node.shape(a), node.shape(b));
  a = c.expand(a, whole);
  b = c.expand(b, whole);
  if (whole.empty()) node.invalid("the operands have no dims");
  int64_t axis = 0;
  if (node.has("dim")) {
    axis = node.axis("dim", node.rank(a));
  } else {
    while (axis + 1 < node.rank(a) && !same(whole[static_cast<size_t>(axis)], 3)) ++axis;
  }
  if (!same(whole[static_cast<size_t>(axis)], 3))
    node.invalid("an axis of " + to_string(whole[static_cast<size_t>(axis)]));
  const auto turned = [&](V x, int64_t by) {
    return c.concat({c.slice(x, axis, by, 3 - by), c.slice(x, axis, 0, by)}, axis);
  };
  node.set_output(0, c.sub(c.mul(turned(a, 1), turned(b, 2)), c.mul(turned(a, 2), turned(b, 1))));
}

// What each element has more than the one before it.
void convert_diff(NodeContext& node) {
  Compose c(node);
  V x = node.tensor("self");
  const int64_t axis = node.axis("dim", node.rank(x)), times = node.integer("n");
  if (times < 0 || times > 16) node.unsupported("n", std::to_string(times) + " times are not implemented");
  const bool has_prepend = node.has("prepend"), has_append = node.has("append");
  if (times == 0) return node.set_output(0, node.add("identity", {x}));
  std::vector<Operand> operands;
  if (has_prepend) operands.push_back(node.operand("prepend"));
  operands.push_back(node.operand("self"));
  if (has_append) operands.push_back(node.operand("append"));
  const DType dtype = node.common_type(operands);
  std::vector<V> parts;
  for (const Operand& operand : operands) parts.push_back(node.as(operand, dtype));
  x = c.concat(parts, axis);
  for (int64_t i = 0; i < times; ++i) {
    const ir::SymInt left = max(node.shape(x)[static_cast<size_t>(axis)] - 1, 0);
    if (same(left, 0)) {
      x = c.slice(x, axis, 0, 0);
      break;
    }
    const V next = c.slice(x, axis, 1, left), before = c.slice(x, axis, 0, left);
    x = node.dtype(x) == DType::kBool ? node.add("xor", {next, before}) : c.sub(next, before);
  }
  node.set_output(0, x);
}

// beta * self + alpha * vec1 vec2
void convert_addr(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.output_dtype();
  const V a = c.cast(node.tensor("vec1"), dtype), b = c.cast(node.tensor("vec2"), dtype);
  V y = c.mul(c.unsqueeze(a, 1), c.unsqueeze(b, 0));
  const Operand alpha = node.operand("alpha"), beta = node.operand("beta");
  if (node.real("alpha") != 1) y = c.mul(y, node.as(alpha, dtype));
  V self = c.cast(node.tensor("self"), dtype);
  if (node.real("beta") == 0) return node.set_output(0, y);
  if (node.real("beta") != 1) self = c.mul(self, node.as(beta, dtype));
  node.set_output(0, c.add(self, y));
}

namespace {

/// Places `offset` + i * stride[0] + j * stride[1] ... of all elements, row after row of the axes in that
/// order, of which there are more than the last of those.
std::shared_ptr<const ViewStep> strided_step(const std::vector<int64_t>& axes, const ir::SymShape& size,
                                             const ir::SymShape& stride, const ir::SymInt& offset) {
  return std::make_shared<const ViewStep>(
      ViewStep{[=](build::OpBuilder& builder, V whole) {
                 Compose c(builder);
                 V place = c.dims({offset}, {});
                 for (size_t i = 0; i < size.size(); ++i)
                   place = c.add(place, c.mul(c.positions(size[i], i, size.size()), c.dims({stride[i]}, {})));
                 const bool is_in_rows = std::is_sorted(axes.begin(), axes.end());
                 const V rows = is_in_rows ? whole : c.transpose(whole, axes);
                 const V flat = c.reshape(rows, {num_elements(c.shape(whole))});
                 return c.gather(flat, c.reshape(place, size), 0);
               },
               {},
               [=](const Layout&, const te::DimFacts&) {
                 return std::optional(Layout{dims_of(size), dims_of(stride)});
               }});
}

}  // namespace

// Places of a storage by their strides: of tensors that are all of it, row after row of their axes in some
// order, or its first rows. A place behind those of the tensor is refused, by a run where the extents are
// free.
void convert_as_strided(NodeContext& node) {
  const V x = node.tensor("self");
  const ir::SymShape size = node.syms("size"), stride = node.syms("stride");
  const ir::SymInt offset = node.has("storage_offset") ? node.sym("storage_offset") : ir::SymInt(0);
  if (size.size() != stride.size()) node.invalid("sizes and strides are of other numbers of axes");
  const std::optional<std::vector<int64_t>> axes = node.axes_of_whole("self");
  if (!axes)
    node.unsupported("self",
                     "a tensor whose elements do not lie in rows from its storage's begin, or of which that "
                     "is not known, is not implemented");
  if (!ir::demand(ir::Relation::kLessEqual, 0, offset))
    node.invalid("storage_offset is " + to_string(offset));
  const ir::SymInt elements = num_elements(node.shape(x));
  ir::SymInt last = offset;
  const auto check_last = [&] {
    if (!ir::demand(ir::Relation::kLess, last, elements))
      node.unsupported("size", "places behind the elements of the tensor are not implemented");
  };
  bool is_empty = false;
  for (size_t i = 0; i < size.size(); ++i) {
    if (!ir::demand(ir::Relation::kLessEqual, 0, size[i]) ||
        !ir::demand(ir::Relation::kLessEqual, 0, stride[i]))
      node.invalid("size " + to_string(size) + " and strides " + to_string(stride));
    is_empty = is_empty || same(size[i], 0);
    if (is_empty) continue;
    last += node.product(size[i] - 1, stride[i]);
    if (last.is_constant()) check_last();
  }
  if (!is_empty) check_last();
  node.set_view(0, "self", strided_step(*axes, size, stride, offset));
}

// The reverse of im2col: elements of windows that lie on each other are added.
void convert_col2im(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self");
  const V x = node.rank(given) == 2 ? c.unsqueeze(given, 0) : given;
  const ir::Ints size = window_numbers(node, "output_size", 2, 0),
                 kernel = window_numbers(node, "kernel_size", 2, 1),
                 dilation = window_numbers(node, "dilation", 2, 1),
                 padding = window_numbers(node, "padding", 2, 0),
                 stride = window_numbers(node, "stride", 2, 1);
  check_rank(node, x, 3);
  const ir::SymShape s = node.shape(x);
  std::vector<int64_t> windows(2), more(2);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = dilation[d] * (kernel[d] - 1) + 1, room = size[d] + 2 * padding[d] - reach;
    if (room < 0) node.invalid("windows larger than what they go over");
    windows[d] = room / stride[d] + 1;
    more[d] = room % stride[d];
  }
  const int64_t area = kernel[0] * kernel[1];
  if (!s[1].is_constant() || s[1].hint() % area != 0 || area > 1024)
    node.invalid("channels " + to_string(s[1]) + " for windows of " + std::to_string(area));
  const int64_t channels = s[1].hint() / area;
  // Each place of the window is a channel, whose filter has a one there.
  std::vector<double> one(static_cast<size_t>(area * area), 0);
  for (int64_t i = 0; i < area; ++i) one[static_cast<size_t>(i * area + i)] = 1;
  V filters = c.doubles(node.dtype(x), one, {1, area, 1, kernel[0], kernel[1]});
  filters = c.reshape(c.expand(filters, {channels, area, 1, kernel[0], kernel[1]}),
                      {channels * area, 1, kernel[0], kernel[1]});
  const V y = node.add("conv_transpose", {c.reshape(x, {s[0], s[1], windows[0], windows[1]}), filters},
                       {{"strides", stride},
                        {"dilations", dilation},
                        {"pads", std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]}},
                        {"output_padding", more},
                        {"group", channels}});
  node.set_output(0, node.rank(given) == 2 ? c.squeeze(y, 0) : y);
}

// Whether each element is among the others, which are few.
void convert_isin(NodeContext& node) {
  Compose c(node);
  const Operand a = node.operand(takes(node, "element") ? "element" : "elements");
  const Operand b = node.operand(takes(node, "test_element") ? "test_element" : "test_elements");
  static_cast<void>(node.flag("assume_unique"));
  const bool is_inverse = node.flag("invert");
  const DType dtype = node.common_type({a, b});
  const V x = node.as(a, dtype), among = node.as(b, dtype);
  const V flat = c.reshape(among, {num_elements(node.shape(among))});
  const V hits = c.cast(c.binary("equal", c.unsqueeze(x, node.rank(x)), flat), DType::kUInt8);
  const V is_there = c.cast(c.reduce("reduce_max", hits, {node.rank(x)}, false), DType::kBool);
  node.set_output(0, is_inverse ? negated(node, is_there) : is_there);
}

}  // namespace tensormill::frontend::pytorch
