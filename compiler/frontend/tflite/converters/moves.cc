// Operators that move elements. What only moves quantized numbers of one scale moves their integers.
#include <algorithm>
#include <numeric>

#include "compiler/build/moves/moves.h"
#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

// The operand wins; old files have the shape in the options alone.
void convert_reshape(NodeContext& node) {
  ir::SymShape to;
  if (node.has_input(1)) {
    to = node.known_ints(1, "shape");
  } else {
    for (const int32_t extent : node.options<ReshapeOptions>().new_shape) to.push_back(extent);
  }
  set_moved(node, 0,
            [&](V x) { return Compose(node).reshape(x, build::settled_shape(node, node.shape(x), to)); });
}

void convert_squeeze(NodeContext& node) {
  const Ints dims = node.options<SqueezeOptions>().squeeze_dims;
  set_moved(node, 0, [&](V x) {
    std::optional<std::vector<int64_t>> dropped;
    if (!dims.empty()) dropped.emplace();
    for (const int32_t dim : dims) dropped->push_back(node.normalize_axis(dim, node.rank(x)));
    return Compose(node).reshape(x, build::squeezed_shape(node, node.shape(x), dropped));
  });
}

void convert_expand_dims(NodeContext& node) {
  const int64_t axis = node.known_int(1, "axis");
  set_moved(node, 0,
            [&](V x) { return Compose(node).unsqueeze(x, node.normalize_axis(axis, node.rank(x) + 1)); });
}

void convert_transpose(NodeContext& node) {
  ir::Ints perm = node.known_ints(1, "perm");
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
  const V whole = build::concatenated(node, node.maps(), std::move(parts), options.axis);
  is_moved ? node.set_stored(0, whole) : node.set_real(0, whole, options.fused_activation_function);
}

namespace {

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
  const ir::SymShape paddings = node.known_ints(1, "paddings");
  set_moved(node, 0, [&](V x) { return build::padded(node, node.maps(), x, paddings, value); });
}

// REFLECT leaves the edge out, SYMMETRIC takes it twice.
void convert_mirror_pad(NodeContext& node) {
  const bool is_symmetric = node.options<MirrorPadOptions>().mode == MirrorPadMode::kSymmetric;
  const ir::SymShape paddings = node.known_ints(1, "paddings");
  set_moved(node, 0, [&](V x) { return build::mirror_padded(node, x, paddings, is_symmetric); });
}

void convert_slice(NodeContext& node) {
  const ir::SymShape begin = node.known_ints(1, "begin"), size = node.known_ints(2, "size");
  set_moved(node, 0, [&](V x) { return build::sized_slice(node, node.maps(), x, begin, size); });
}

void convert_strided_slice(NodeContext& node) {
  const auto options = node.options<StridedSliceOptions>();
  const build::StridedSliceSpec spec{
      node.known_ints(1, "begin"), node.known_ints(2, "end"), node.known_ints(3, "strides"),
      options.begin_mask,          options.end_mask,          options.ellipsis_mask,
      options.new_axis_mask,       options.shrink_axis_mask,  options.offset};
  set_moved(node, 0, [&](V x) { return build::strided_slice(node, node.maps(), x, spec); });
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
  const std::vector<V> parts = build::split(node, node.maps(), x, axis, sizes);
  for (size_t i = 0; i < parts.size(); ++i) {
    is_moved ? node.set_stored(i, parts[i]) : node.set_real(i, parts[i]);
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
  const ir::Ints axes = node.known_ints(1, "axis");
  set_moved(node, 0, [&](V x) { return build::reversed(node, node.maps(), x, axes); });
}

}  // namespace tensormill::frontend::tflite
