// Operators that move elements. What only moves quantized numbers of one scale moves their integers.
#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/build/slices.h"
#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

namespace {

/// Extents of which one may be -1: what is left.
ir::SymShape settled(NodeContext& node, const ir::SymShape& from, ir::SymShape to) {
  ir::SymInt others = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < to.size(); ++d) {
    if (same(to[d], -1)) {
      if (open) node.invalid("the shape " + to_string(to) + " has -1 twice");
      open = d;
    } else {
      others = node.product(others, to[d]);
    }
  }
  const ir::SymInt total = num_elements(from);
  const auto refuse = [&] {
    node.invalid("an operand of shape " + to_string(from) + " cannot become " + to_string(to));
  };
  if (open) {
    if (same(others, 0) || !ir::demand_divisible(total, others)) refuse();
    to[*open] = floordiv(total, others);
  } else if (!ir::demand(ir::Relation::kEqual, total, others)) {
    refuse();
  }
  return to;
}

}  // namespace

// The operand wins; old files have the shape in the options alone.
void convert_reshape(NodeContext& node) {
  ir::SymShape to;
  if (node.has_input(1)) {
    to = node.known_ints(1, "shape");
  } else {
    for (const int32_t extent : node.options<ReshapeOptions>().new_shape) to.push_back(extent);
  }
  set_moved(node, 0, [&](V x) { return Compose(node).reshape(x, settled(node, node.shape(x), to)); });
}

void convert_squeeze(NodeContext& node) {
  const Ints dims = node.options<SqueezeOptions>().squeeze_dims;
  set_moved(node, 0, [&](V x) {
    const ir::SymShape shape = node.shape(x);
    std::set<int64_t> dropped;
    for (const int32_t dim : dims) dropped.insert(node.normalize_axis(dim, node.rank(x)));
    ir::SymShape to;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool is_dropped = dims.empty() ? same(shape[d], 1) : dropped.count(static_cast<int64_t>(d)) != 0;
      if (!is_dropped) to.push_back(shape[d]);
      if (is_dropped && !ir::demand(ir::Relation::kEqual, shape[d], 1))
        node.invalid("dimension " + std::to_string(d) + " of " + to_string(shape) + " is no 1");
    }
    return Compose(node).reshape(x, to);
  });
}

void convert_expand_dims(NodeContext& node) {
  const int64_t axis = node.known_int(1, "axis");
  set_moved(node, 0,
            [&](V x) { return Compose(node).unsqueeze(x, node.normalize_axis(axis, node.rank(x) + 1)); });
}

void convert_transpose(NodeContext& node) {
  std::vector<int64_t> perm = node.known_ints(1, "perm");
  set_moved(node, 0, [&](V x) {
    for (int64_t& axis : perm) axis = node.normalize_axis(axis, node.rank(x));
    std::vector<int64_t> sorted = perm, all(static_cast<size_t>(node.rank(x)));
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) node.invalid("perm " + to_string(perm) + " is no permutation");
    return Compose(node).transpose(x, perm);
  });
}

void convert_concatenation(NodeContext& node) {
  const auto options = node.options<ConcatenationOptions>();
  bool is_moved = options.fused_activation_function == Activation::kNone;
  for (size_t i = 0; i < node.num_inputs(); ++i) is_moved = is_moved && node.has_output_scale(i);
  std::vector<V> parts;
  for (size_t i = 0; i < node.num_inputs(); ++i) parts.push_back(is_moved ? node.stored(i) : node.real(i));
  if (parts.empty()) node.invalid("it has no operands");
  Compose c(node);
  const int64_t rank = node.rank(parts[0]);
  const int64_t axis = node.normalize_axis(options.axis, rank);
  const bool is_map =
      rank > 2 && std::any_of(parts.begin(), parts.end(), [&](V part) { return node.is_map(part); });
  if (is_map) {
    for (V& part : parts) part = node.first(part);
  }
  V whole = c.concat(parts, is_map ? build::ChannelsLast::axis_first(axis, rank) : axis);
  if (is_map) whole = node.last(whole);
  is_moved ? node.set_stored(0, whole) : node.set_real(0, whole, options.fused_activation_function);
}

namespace {

/// Operand 1 [rank,2] as pads of all dims, begins, then ends.
ir::SymShape pads_of(NodeContext& node, int64_t rank, bool is_map) {
  const ir::SymShape given = node.known_ints(1, "paddings");
  if (given.size() != 2 * static_cast<size_t>(rank))
    node.invalid("paddings have " + std::to_string(given.size()) + " elements for rank " +
                 std::to_string(rank));
  ir::SymShape pads(given.size(), 0);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t at = is_map ? build::ChannelsLast::axis_first(d, rank) : d;
    pads[static_cast<size_t>(at)] = given[static_cast<size_t>(2 * d)];
    pads[static_cast<size_t>(at + rank)] = given[static_cast<size_t>(2 * d + 1)];
  }
  return pads;
}

/// What is padded with: operand 2, else the integer that stands for 0.
double pad_value(NodeContext& node, bool is_stored) {
  if (node.op() == "PADV2" && node.has_input(2)) {
    if (!node.is_known(2)) node.unsupported("constant_values", "it is worked out by a run");
    const ir::Value& value = node.graph().value(is_stored ? node.stored(2) : node.real(2));
    if (value.constant && value.constant->num_elements() == 1) return value.constant->element_as_double(0);
    node.unsupported("constant_values", "a quantized value of another scale is not implemented");
  }
  const Quantization& quantization = node.input_tensor(0).quantization;
  const bool has_zero = is_stored && is_quantized(node.input_tensor(0)) && !quantization.zero_point.empty();
  return has_zero ? static_cast<double>(quantization.zero_point.front()) : 0;
}

}  // namespace

void convert_pad(NodeContext& node) {
  const bool is_stored = node.has_output_scale(0);
  const double value = pad_value(node, is_stored);
  set_moved(node, 0, [&](V x) {
    const bool is_map = node.is_map(x);
    const ir::Attrs attrs{
        {"pads", pads_of(node, node.rank(x), is_map)}, {"mode", std::string("constant")}, {"value", value}};
    return is_map ? node.last(node.add("pad", {node.first(x)}, attrs)) : node.add("pad", {x}, attrs);
  });
}

// REFLECT leaves the edge out, SYMMETRIC takes it twice.
void convert_mirror_pad(NodeContext& node) {
  const bool is_symmetric = node.options<MirrorPadOptions>().mode == MirrorPadMode::kSymmetric;
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    const int64_t rank = node.rank(x);
    const ir::SymShape pads = pads_of(node, rank, false);
    if (!is_symmetric) return node.add("pad", {x}, {{"pads", pads}, {"mode", std::string("reflect")}});
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t before = pads[static_cast<size_t>(d)], behind = pads[static_cast<size_t>(d + rank)];
      if (before == 0 && behind == 0) continue;
      const int64_t extent = node.shape(x)[static_cast<size_t>(d)];
      if (before < 0 || behind < 0 || std::max(before, behind) > extent)
        node.invalid("pads of " + std::to_string(before) + " and " + std::to_string(behind) +
                     " for an axis of " + std::to_string(extent));
      if (extent > build::kMaxListed)
        node.unsupported("mode", "axes of " + std::to_string(extent) + " elements");
      std::vector<int64_t> places;
      for (int64_t i = 0; i < extent + before + behind; ++i) {
        const int64_t at = i - before;
        places.push_back(at < 0 ? -at - 1 : at < extent ? at : 2 * extent - at - 1);
      }
      x = c.gather(x, c.ints(places, {static_cast<int64_t>(places.size())}), d);
    }
    return x;
  });
}

namespace {

struct Part {
  ir::SymShape starts, extents;
  std::vector<int64_t> steps;
};

/// The part of x, whose map is sliced where that is all the same.
V sliced(NodeContext& node, V x, const Part& part) {
  const int64_t rank = node.rank(x);
  if (!node.is_map(x))
    return node.add("slice", {x},
                    {{"starts", part.starts}, {"extents", part.extents}, {"steps", part.steps}});
  Part moved = part;
  for (int64_t d = 0; d < rank; ++d) {
    const auto from = static_cast<size_t>(d),
               at = static_cast<size_t>(build::ChannelsLast::axis_first(d, rank));
    moved.starts[at] = part.starts[from];
    moved.extents[at] = part.extents[from];
    moved.steps[at] = part.steps[from];
  }
  return node.last(node.add("slice", {node.first(x)},
                            {{"starts", moved.starts}, {"extents", moved.extents}, {"steps", moved.steps}}));
}

}  // namespace

void convert_slice(NodeContext& node) {
  const ir::SymShape begin = node.known_ints(1, "begin"), size = node.known_ints(2, "size");
  set_moved(node, 0, [&](V x) {
    const ir::SymShape shape = node.shape(x);
    if (begin.size() != shape.size() || size.size() != shape.size())
      node.invalid("begin and size have " + std::to_string(begin.size()) + " and " +
                   std::to_string(size.size()) + " elements for rank " + std::to_string(shape.size()));
    Part part{begin, size, std::vector<int64_t>(shape.size(), 1)};
    for (size_t d = 0; d < shape.size(); ++d) {
      if (same(size[d], -1)) part.extents[d] = shape[d] - begin[d];
      const bool fits = ir::demand(ir::Relation::kLessEqual, 0, begin[d]) &&
                        ir::demand(ir::Relation::kLessEqual, 0, part.extents[d]) &&
                        ir::demand(ir::Relation::kLessEqual, begin[d] + part.extents[d], shape[d]);
      if (!fits)
        node.invalid("elements " + to_string(begin[d]) + " to " + to_string(begin[d] + part.extents[d]) +
                     " of an axis of " + to_string(shape[d]));
    }
    return sliced(node, x, part);
  });
}

namespace {

/// One entry of a strided slice, in the order of begin, end and strides.
class StridedSlice {
public:
  StridedSlice(NodeContext& node, const ir::SymShape& shape)
      : node_(node),
        options_(node.options<StridedSliceOptions>()),
        shape_(shape),
        begin_(node.known_ints(1, "begin")),
        end_(node.known_ints(2, "end")),
        strides_(node.known_ints(3, "strides")) {
    if (end_.size() != begin_.size() || strides_.size() != begin_.size())
      node.invalid("begin, end and strides have different lengths");
    if (begin_.size() > kMaxEntries) node.invalid("more than " + std::to_string(kMaxEntries) + " entries");
  }

  void run() {
    size_t axis = 0;
    for (size_t entry = 0; entry < begin_.size(); ++entry) {
      if (has(options_.ellipsis_mask, entry)) {
        // As many axes as the other entries leave.
        size_t others = 0;
        for (size_t i = entry + 1; i < begin_.size(); ++i) others += has(options_.new_axis_mask, i) ? 0 : 1;
        while (axis + others < shape_.size()) keep(axis++);
      } else if (has(options_.new_axis_mask, entry)) {
        result.push_back(1);
      } else {
        if (axis == shape_.size()) node_.invalid("more entries than axes");
        take(entry, axis++);
      }
    }
    while (axis < shape_.size()) keep(axis++);
  }

  Part part;
  ir::SymShape result;  ///< with new axes, and without those of one index

private:
  static constexpr size_t kMaxEntries = 31;
  static bool has(int32_t mask, size_t entry) { return ((mask >> entry) & 1) != 0; }

  void keep(size_t axis) {
    part.starts.push_back(0);
    part.extents.push_back(shape_[axis]);
    part.steps.push_back(1);
    result.push_back(shape_[axis]);
  }

  void take(size_t entry, size_t axis) {
    const ir::SymInt& extent = shape_[axis];
    if (has(options_.shrink_axis_mask, entry)) {
      const ir::SymInt at = begin_[entry] < 0 ? begin_[entry] + extent : begin_[entry];
      if (!ir::demand(ir::Relation::kLessEqual, 0, at) || !ir::demand(ir::Relation::kLess, at, extent))
        node_.invalid("index " + to_string(begin_[entry]) + " of an axis of " + to_string(extent));
      part.starts.push_back(at);
      part.extents.push_back(1);
      part.steps.push_back(1);
      return;
    }
    const int64_t step = strides_[entry];
    if (step == 0) node_.invalid("a stride is 0");
    const bool is_down = step < 0;
    const ir::SymInt low = is_down ? -1 : 0, high = is_down ? extent - 1 : extent;
    const ir::SymInt end_given = options_.offset ? begin_[entry] + end_[entry] : end_[entry];
    const ir::SymInt start = has(options_.begin_mask, entry)
                                 ? (is_down ? high : low)
                                 : build::place_within(begin_[entry], extent, low, high);
    const ir::SymInt stop = has(options_.end_mask, entry) ? (is_down ? low : high)
                                                          : build::place_within(end_given, extent, low, high);
    const ir::SymInt span = is_down ? start - stop : stop - start;
    const ir::SymInt count = max(floordiv(span - 1, is_down ? -step : step) + 1, 0);
    part.starts.push_back(max(start, 0));
    part.extents.push_back(count);
    part.steps.push_back(step);
    if (same(count, 0)) {
      part.starts.back() = 0;
      part.steps.back() = 1;
    }
    result.push_back(count);
  }

  NodeContext& node_;
  const StridedSliceOptions options_;
  const ir::SymShape shape_;
  const ir::SymShape begin_, end_, strides_;
};

}  // namespace

void convert_strided_slice(NodeContext& node) {
  set_moved(node, 0, [&](V x) {
    StridedSlice slice(node, node.shape(x));
    slice.run();
    return Compose(node).reshape(sliced(node, x, slice.part), slice.result);
  });
}

namespace {

void set_parts(NodeContext& node, size_t operand, int64_t axis, const ir::SymShape& sizes) {
  const bool is_moved = [&] {
    for (size_t i = 0; i < node.num_outputs(); ++i) {
      if (!node.has_output_scale(operand, i)) return false;
    }
    return true;
  }();
  const V x = is_moved ? node.stored(operand) : node.real(operand);
  const int64_t rank = node.rank(x);
  const bool is_map = node.is_map(x);
  axis = node.normalize_axis(axis, rank);
  const int64_t at = is_map ? build::ChannelsLast::axis_first(axis, rank) : axis;
  const std::vector<V> parts =
      node.add_many("split", {is_map ? node.first(x) : x}, {{"axis", at}, {"sizes", sizes}});
  for (size_t i = 0; i < parts.size(); ++i) {
    const V part = is_map ? node.last(parts[i]) : parts[i];
    is_moved ? node.set_stored(i, part) : node.set_real(i, part);
  }
}

ir::SymInt extent_along(NodeContext& node, size_t operand, int64_t axis) {
  const ir::SymShape shape = node.shape(node.stored(operand));
  return shape[static_cast<size_t>(node.normalize_axis(axis, static_cast<int64_t>(shape.size())))];
}

}  // namespace

// The axis is operand 0.
void convert_split(NodeContext& node) {
  const int64_t axis = node.known_int(0, "axis");
  const auto count = static_cast<int64_t>(node.num_outputs());
  const ir::SymInt extent = extent_along(node, 1, axis);
  if (count < 1 || !ir::demand_divisible(extent, count))
    node.invalid("an axis of " + to_string(extent) + " in " + std::to_string(count) + " parts");
  set_parts(node, 1, axis, ir::SymShape(static_cast<size_t>(count), floordiv(extent, count)));
}

// One size may be -1: what is left. The axis is operand 2.
void convert_split_v(NodeContext& node) {
  const int64_t axis = node.known_int(2, "axis");
  ir::SymShape sizes = node.known_ints(1, "size_splits");
  const ir::SymInt extent = extent_along(node, 0, axis);
  ir::SymInt total = 0;
  for (const ir::SymInt& size : sizes) total += same(size, -1) ? ir::SymInt(0) : size;
  for (ir::SymInt& size : sizes) {
    if (same(size, -1)) size = extent - total;
  }
  if (sizes.size() != node.num_outputs()) node.invalid("it has another number of sizes than of outputs");
  set_parts(node, 0, axis, sizes);
}

void convert_pack(NodeContext& node) {
  const auto options = node.options<PackOptions>();
  bool is_moved = true;
  for (size_t i = 0; i < node.num_inputs(); ++i) is_moved = is_moved && node.has_output_scale(i);
  Compose c(node);
  std::vector<V> parts;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const V part = is_moved ? node.stored(i) : node.real(i);
    parts.push_back(c.unsqueeze(part, node.normalize_axis(options.axis, node.rank(part) + 1)));
  }
  if (parts.empty()) node.invalid("it has no operands");
  const V whole = c.concat(parts, node.normalize_axis(options.axis, node.rank(parts[0])));
  is_moved ? node.set_stored(0, whole) : node.set_real(0, whole);
}

void convert_unpack(NodeContext& node) {
  Compose c(node);
  const int64_t axis = node.normalize_axis(node.options<UnpackOptions>().axis, node.rank(node.stored(0)));
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const bool is_moved = node.has_output_scale(0, i);
    const V x = is_moved ? node.stored(0) : node.real(0);
    const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
    if (!ir::demand(ir::Relation::kEqual, extent, static_cast<int64_t>(node.num_outputs())))
      node.invalid("an axis of " + to_string(extent) + " in " + std::to_string(node.num_outputs()) +
                   " outputs");
    const V part = c.squeeze(c.slice(x, axis, static_cast<int64_t>(i), 1), axis);
    is_moved ? node.set_stored(i, part) : node.set_real(i, part);
  }
}

void convert_reverse(NodeContext& node) {
  const std::vector<int64_t> axes = node.known_ints(1, "axis");
  set_moved(node, 0, [&](V x) {
    const ir::SymShape shape = node.shape(x);
    Part part{ir::SymShape(shape.size(), 0), shape, std::vector<int64_t>(shape.size(), 1)};
    for (const int64_t given : axes) {
      const auto axis = static_cast<size_t>(node.normalize_axis(given, node.rank(x)));
      if (shape[axis] == 0) continue;
      part.starts[axis] = shape[axis] - 1;
      part.steps[axis] = -1;
    }
    return sliced(node, x, part);
  });
}

}  // namespace tensormill::frontend::tflite
