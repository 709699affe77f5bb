// Operators of StableHLO, and those like them, which say in numbers what others mean by their name.
#include <algorithm>
#include <limits>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

/// Elements of a window, each of which becomes a part of the graph.
constexpr int64_t kMostOfWindow = 1024;
constexpr int64_t kMostPadding = int64_t{1} << 30;

/// x along `axis` with `step` - 1 elements `fill` (of one element) between each two.
V spread(NodeContext& node, V x, int64_t axis, int64_t step, V fill) {
  if (step < 1 || step > kMostPadding)
    node.invalid("a step of " + std::to_string(step) + " between elements");
  const ir::SymShape shape = node.shape(x);
  const ir::SymInt& extent = shape[static_cast<size_t>(axis)];
  if (step == 1 || same(extent, 0)) return x;
  Compose c(node);
  ir::SymShape gap = shape, whole = shape;
  gap.insert(gap.begin() + axis + 1, step - 1);
  whole[static_cast<size_t>(axis)] = extent * step;
  const V filled = c.expand(c.reshape(fill, ir::SymShape(gap.size(), 1)), gap);
  const V both = c.concat({c.unsqueeze(x, axis + 1), filled}, axis + 1);
  return c.slice(c.reshape(both, whole), axis, 0, (extent - 1) * step + 1);
}

/// x with so many elements `fill` before and behind, or so many fewer elements.
V edged(NodeContext& node, V x, int64_t axis, int64_t low, int64_t high, V fill) {
  if (std::max(std::abs(low), std::abs(high)) > kMostPadding)
    node.invalid("a padding of " + std::to_string(low) + " and " + std::to_string(high));
  Compose c(node);
  const auto at = static_cast<size_t>(axis);
  const auto edge = [&](int64_t count) {
    ir::SymShape shape = node.shape(x);
    shape[at] = count;
    return c.expand(c.reshape(fill, ir::SymShape(shape.size(), 1)), shape);
  };
  const int64_t cut_low = std::max<int64_t>(-low, 0), cut = cut_low + std::max<int64_t>(-high, 0);
  if (cut > 0) {
    const ir::SymInt extent = node.shape(x)[at];
    if (!ir::demand(ir::Relation::kLessEqual, cut, extent))
      node.invalid("an axis of " + to_string(extent) + " with " + std::to_string(cut) + " elements less");
    x = c.slice(x, axis, cut_low, extent - cut);
  }
  std::vector<V> parts;
  if (low > 0) parts.push_back(edge(low));
  parts.push_back(x);
  if (high > 0) parts.push_back(edge(high));
  return parts.size() == 1 ? x : c.concat(parts, axis);
}

/// A number an axis, or `otherwise` where the file has none.
std::vector<int64_t> each_axis(const NodeContext& node, Longs given, size_t rank, int64_t otherwise,
                               const char* what) {
  if (given.empty()) return std::vector<int64_t>(rank, otherwise);
  if (given.size() != rank)
    node.invalid(std::string(what) + " has " + std::to_string(given.size()) + " elements, expected " +
                 std::to_string(rank));
  return {given.begin(), given.end()};
}

void check_scalar(const NodeContext& node, V x, const char* what) {
  if (!same(num_elements(node.type(x).shape), 1)) node.invalid(std::string(what) + " is no single number");
}

}  // namespace

void convert_stablehlo_pad(NodeContext& node) {
  const auto options = node.options<StablehloPadOptions>();
  V x = node.stored(0);
  const V fill = node.stored(1);
  check_scalar(node, fill, "the padding");
  const auto rank = static_cast<size_t>(node.rank(x));
  const auto low = each_axis(node, options.edge_padding_low, rank, 0, "edge_padding_low");
  const auto high = each_axis(node, options.edge_padding_high, rank, 0, "edge_padding_high");
  const auto inside = each_axis(node, options.interior_padding, rank, 0, "interior_padding");
  for (size_t d = 0; d < rank; ++d) {
    if (inside[d] < 0) node.invalid("interior_padding is " + std::to_string(inside[d]));
    x = edged(node, spread(node, x, static_cast<int64_t>(d), inside[d] + 1, fill), static_cast<int64_t>(d),
              low[d], high[d], fill);
  }
  node.set_stored(0, x);
}

// Operands: x, a step an axis, what stands between.
void convert_dilate(NodeContext& node) {
  V x = node.stored(0);
  const V fill = node.stored(2);
  check_scalar(node, fill, "the padding");
  const ir::Ints steps = node.known_ints(1, "dilations");
  if (static_cast<int64_t>(steps.size()) != node.rank(x))
    node.invalid(std::to_string(steps.size()) + " dilations for rank " + std::to_string(node.rank(x)));
  for (size_t d = 0; d < steps.size(); ++d) x = spread(node, x, static_cast<int64_t>(d), steps[d], fill);
  node.set_stored(0, x);
}

namespace {

struct HloWindow {
  std::vector<int64_t> extents, strides, dilations;
};

/// All elements of a window of x, one after the other: `add` takes the sum so far and the next ones.
template <typename Add>
V folded(NodeContext& node, V x, V start, const HloWindow& window, const Add& add) {
  Compose c(node);
  const ir::SymShape shape = node.shape(x);
  ir::SymShape results;
  int64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t extent = window.extents[d], stride = window.strides[d], step = window.dilations[d];
    if (std::min({extent, stride, step}) < 1 || std::max({extent, stride, step}) > kMostPadding)
      node.invalid("a window, stride or dilation below 1 or beyond " + std::to_string(kMostPadding));
    elements = std::min(elements * extent, kMostOfWindow + 1);
    const ir::SymInt span = shape[d] - ((extent - 1) * step + 1);
    if (!ir::demand(ir::Relation::kLessEqual, 0, span))
      node.invalid("a window of " + std::to_string((extent - 1) * step + 1) + " over " + to_string(shape[d]));
    results.push_back(floordiv(span, stride) + 1);
  }
  if (elements > kMostOfWindow)
    node.unsupported("window",
                     "more than " + std::to_string(kMostOfWindow) + " elements are not implemented");
  V sum = c.expand(c.reshape(start, ir::SymShape(shape.size(), 1)), results);
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t i = 0; i < elements; ++i) {
    V part = x;
    for (size_t d = 0; d < shape.size(); ++d)
      part =
          c.slice(part, static_cast<int64_t>(d), at[d] * window.dilations[d], results[d], window.strides[d]);
    sum = add(sum, part);
    for (size_t d = shape.size(); d-- > 0 && ++at[d] == window.extents[d];) at[d] = 0;
  }
  return sum;
}

}  // namespace

// The body of two numbers is called with whole tensors, element by element.
void convert_stablehlo_reduce_window(NodeContext& node) {
  const auto options = node.options<StablehloReduceWindowOptions>();
  if (node.num_inputs() != 2) node.unsupported("operands", "more than one tensor at once is not implemented");
  V x = node.stored(0);
  const V start = node.stored(1);
  check_scalar(node, start, "the initial value");
  const auto rank = static_cast<size_t>(node.rank(x));
  const HloWindow window{each_axis(node, options.window_dimensions, rank, 1, "window_dimensions"),
                         each_axis(node, options.window_strides, rank, 1, "window_strides"),
                         each_axis(node, options.window_dilations, rank, 1, "window_dilations")};
  const auto inside = each_axis(node, options.base_dilations, rank, 1, "base_dilations");
  const auto pads = each_axis(node, options.padding, 2 * rank, 0, "padding");
  for (size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<int64_t>(d);
    x = edged(node, spread(node, x, axis, inside[d], start), axis, pads[2 * d], pads[2 * d + 1], start);
  }
  node.set_stored(
      0, folded(node, x, start, window, [&](V sum, V part) {
        const auto made = node.call(static_cast<uint32_t>(options.body_subgraph_index), {sum, part});
        if (made.size() != 1) node.invalid("its body has more than one output");
        return made[0];
      }));
}

// Operands: x, the initial value, the window's extents, strides, dilations.
void convert_reduce_window(NodeContext& node) {
  const auto function = node.options<ReduceWindowOptions>().reduce_function;
  const V x = node.stored(0), start = node.stored(1);
  check_scalar(node, start, "the initial value");
  const HloWindow window{node.known_ints(2, "window_shape"), node.known_ints(3, "window_strides"),
                         node.known_ints(4, "window_dilations")};
  for (const auto* numbers : {&window.extents, &window.strides, &window.dilations}) {
    if (static_cast<int64_t>(numbers->size()) != node.rank(x))
      node.invalid("a window of " + std::to_string(numbers->size()) + " axes for rank " +
                   std::to_string(node.rank(x)));
  }
  const char* op = nullptr;
  switch (function) {
    case ReduceWindowFunction::kAdd:
      op = "add";
      break;
    case ReduceWindowFunction::kMul:
      op = "mul";
      break;
    case ReduceWindowFunction::kMinimum:
      op = "min";
      break;
    case ReduceWindowFunction::kMaximum:
      op = "max";
      break;
    case ReduceWindowFunction::kAll:
      op = "and";
      break;
    case ReduceWindowFunction::kAny:
      op = "or";
      break;
    case ReduceWindowFunction::kUnsupported:
      node.unsupported("reduce_function", "it is said to be unsupported");
  }
  node.set_stored(
      0, folded(node, x, start, window, [&](V sum, V part) { return Compose(node).binary(op, sum, part); }));
}

namespace {

/// Places in a tensor of `shape`, as one number each: what indices say of some axes, and offsets along all.
struct HloPlaces {
  V place = ir::kAbsent;      ///< i64
  V is_inside = ir::kAbsent;  ///< bool
};

/// Indices with their components along a last axis.
V components_last(NodeContext& node, V indices, int64_t axis) {
  Compose c(node);
  indices = c.cast(indices, DType::kInt64);
  const int64_t rank = node.rank(indices);
  if (axis < 0 || axis > rank) node.invalid("index_vector_dim is " + std::to_string(axis));
  if (axis == rank) return c.unsqueeze(indices, rank);
  ir::Ints perm = c.count_to(rank);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  return c.transpose(indices, perm);
}

/// The dims of 0 to rank - 1 that are not among `taken`, which are in range and once each.
ir::Ints other_dims(NodeContext& node, int64_t rank, Longs taken, const char* what) {
  ir::Ints rest = Compose(node).count_to(rank);
  for (const int64_t dim : taken) {
    const auto found = std::find(rest.begin(), rest.end(), dim);
    if (found == rest.end()) node.invalid(std::string(what) + " has dim " + std::to_string(dim));
    rest.erase(found);
  }
  return rest;
}

/// The flat place in `shape` of each of [groups..., window...]: `starts` [groups...,components] are of the
/// dims `of`, and the window runs along `along`.
HloPlaces hlo_places(NodeContext& node, V starts, Longs of, const std::vector<int64_t>& along,
                     const ir::SymShape& window, const ir::SymShape& shape) {
  Compose c(node);
  const auto last = node.rank(starts) - 1;
  if (!same(node.shape(starts).back(), static_cast<int64_t>(of.size())))
    node.invalid("indices of " + to_string(node.shape(starts)) + " for " + std::to_string(of.size()) +
                 " dims");
  const size_t rank = static_cast<size_t>(last) + along.size();
  ir::SymShape stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  HloPlaces made;
  for (size_t d = 0; d < shape.size(); ++d) {
    V at = ir::kAbsent;
    const auto component = std::find(of.begin(), of.end(), static_cast<int64_t>(d));
    if (component != of.end()) {
      ir::SymShape as = node.shape(starts);
      as.pop_back();
      as.insert(as.end(), along.size(), 1);
      at = c.reshape(c.slice(starts, last, component - of.begin(), 1), as);
    }
    const auto run = std::find(along.begin(), along.end(), static_cast<int64_t>(d));
    if (run != along.end()) {
      const auto axis = static_cast<size_t>(run - along.begin());
      const V offset = c.positions(window[axis], static_cast<size_t>(last) + axis, rank);
      at = at == ir::kAbsent ? offset : c.add(at, offset);
    }
    if (at == ir::kAbsent) continue;
    const V inside = c.binary("and", c.binary("greater_equal", at, c.ints({0}, {})),
                              c.binary("less", at, c.dims({shape[d]}, {})));
    made.is_inside = made.is_inside == ir::kAbsent ? inside : c.binary("and", made.is_inside, inside);
    const V part = c.mul(at, c.dims({stride[d]}, {}));
    made.place = made.place == ir::kAbsent ? part : c.add(made.place, part);
  }
  if (made.place == ir::kAbsent) node.unsupported("operand 0", "a tensor without axes is not implemented");
  return made;
}

/// [groups..., window...] with the window's axes at `places` of the result, or back.
std::vector<int64_t> window_perm(NodeContext& node, Longs places, int64_t rank, bool is_back) {
  const ir::Ints groups = other_dims(node, rank, places, "the window's dims");
  std::vector<int64_t> from(groups);
  from.insert(from.end(), places.begin(), places.end());
  if (is_back) return from;
  std::vector<int64_t> perm(from.size());
  for (size_t i = 0; i < from.size(); ++i) perm[static_cast<size_t>(from[i])] = static_cast<int64_t>(i);
  return perm;
}

}  // namespace

// A start is moved so that its slice lies inside.
void convert_stablehlo_gather(NodeContext& node) {
  const auto options = node.options<StablehloGatherOptions>();
  Compose c(node);
  const V x = node.stored(0);
  const ir::SymShape shape = node.shape(x);
  const auto sizes = each_axis(node, options.slice_sizes, shape.size(), 1, "slice_sizes");
  const ir::Ints along = other_dims(node, node.rank(x), options.collapsed_slice_dims, "collapsed_slice_dims");
  static_cast<void>(other_dims(node, node.rank(x), options.start_index_map, "start_index_map"));
  V starts = components_last(node, node.stored(1), options.index_vector_dim);
  ir::SymShape most, window;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (sizes[d] < 0 || !ir::demand(ir::Relation::kLessEqual, sizes[d], shape[d]))
      node.invalid("slices of " + std::to_string(sizes[d]) + " of an axis of " + to_string(shape[d]));
  }
  for (const int64_t dim : options.start_index_map)
    most.push_back(shape[static_cast<size_t>(dim)] - sizes[static_cast<size_t>(dim)]);
  for (const int64_t dim : along) window.push_back(sizes[static_cast<size_t>(dim)]);
  if (!most.empty()) {
    const auto count = static_cast<int64_t>(most.size());
    starts = c.binary("min", c.binary("max", starts, c.ints({0}, {})), c.dims(most, {count}));
  }
  const HloPlaces places = hlo_places(node, starts, options.start_index_map, along, window, shape);
  ir::SymShape whole = node.shape(starts);
  whole.pop_back();
  whole.insert(whole.end(), window.begin(), window.end());
  if (options.offset_dims.size() != window.size()) node.invalid("offset_dims are not those of the slices");
  const V taken = c.gather(c.reshape(x, {num_elements(shape)}), c.expand(places.place, whole), 0);
  node.set_stored(0, c.transpose(taken, window_perm(node, options.offset_dims, node.rank(taken), false)));
}

namespace {

/// How the body of a scatter combines what is there with what comes.
const char* combination_of(NodeContext& node, int32_t index) {
  const Subgraph& body = node.subgraph(index);
  if (body.inputs.size() != 2 || body.outputs.size() != 1) node.invalid("its body is none of two numbers");
  if (body.operators.empty() && body.outputs[0] == body.inputs[1]) return "none";
  const auto is_of_both = [&](const Operator& op) {
    return op.inputs.size() == 2 && op.outputs.size() == 1 && op.outputs[0] == body.outputs[0] &&
           std::is_permutation(op.inputs.begin(), op.inputs.end(), body.inputs.begin());
  };
  if (body.operators.size() == 1 && is_of_both(body.operators[0])) {
    const std::string_view op = node.op_of(body.operators[0]);
    if (op == "STABLEHLO_ADD" || op == "ADD") return "add";
    if (op == "STABLEHLO_MULTIPLY" || op == "MUL") return "mul";
    if (op == "STABLEHLO_MAXIMUM" || op == "MAXIMUM") return "max";
    if (op == "STABLEHLO_MINIMUM" || op == "MINIMUM") return "min";
  }
  node.unsupported("update_computation",
                   "other bodies than a sum, a product, an extreme or the update itself are not implemented");
}

}  // namespace

// Updates that lie outside go to an element behind all others, which is cut off.
void convert_stablehlo_scatter(NodeContext& node) {
  const auto options = node.options<StablehloScatterOptions>();
  Compose c(node);
  if (node.num_inputs() != 3) node.unsupported("operands", "more than one tensor at once is not implemented");
  const V x = node.stored(0);
  const ir::SymShape shape = node.shape(x);
  const char* reduction = combination_of(node, options.update_computation_subgraph_index);
  const ir::Ints along = other_dims(node, node.rank(x), options.inserted_window_dims, "inserted_window_dims");
  static_cast<void>(
      other_dims(node, node.rank(x), options.scatter_dims_to_operand_dims, "scatter_dims_to_operand_dims"));
  const V starts = components_last(node, node.stored(1), options.index_vector_dim);
  if (options.update_window_dims.size() != along.size())
    node.invalid("update_window_dims are not those of the tensor");
  const V given = node.stored(2);
  const V updates = c.transpose(given, window_perm(node, options.update_window_dims, node.rank(given), true));
  const ir::SymShape whole = node.shape(updates);
  if (node.rank(starts) - 1 + static_cast<int64_t>(along.size()) != node.rank(updates))
    node.invalid("updates of " + to_string(whole) + " for indices of " + to_string(node.shape(starts)));
  const ir::SymShape window(whole.end() - static_cast<std::ptrdiff_t>(along.size()), whole.end());
  const HloPlaces places =
      hlo_places(node, starts, options.scatter_dims_to_operand_dims, along, window, shape);
  const ir::SymInt total = num_elements(shape), count = num_elements(whole);
  const V chosen = c.where(places.is_inside, places.place, c.dims({total}, {}));
  const V flat = c.concat({c.reshape(x, {total}), c.filled(c.dtype(x), {1}, 0)}, 0);
  const V done =
      node.add("scatter", {flat, c.reshape(c.expand(chosen, whole), {count}), c.reshape(updates, {count})},
               {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}});
  node.set_stored(0, c.reshape(c.slice(done, 0, 0, total), shape));
}

}  // namespace tensormill::frontend::tflite
