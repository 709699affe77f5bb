// Layers that move elements.
#include "compiler/frontend/keras/converters/moves.h"

#include <algorithm>
#include <array>

#include "compiler/build/pictures/filter_axis.h"
#include "compiler/build/pictures/resize_nodes.h"
#include "compiler/frontend/keras/converters/windows.h"

namespace tensormill::frontend::keras {

void convert_identity(LayerContext& context) { context.set_output(context.input(), context.mask()); }

// What is drawn in training alone.
void convert_dropout(LayerContext& context) {
  for (const char* option : {"rate", "noise_shape", "stddev", "data_format", "l1", "l2"})
    context.config().skip(option);
  if (context.trains())
    context.unsupported("argument training", "a layer that always trains is not implemented");
  context.set_output(context.input(), context.mask());
}

void convert_flatten(LayerContext& context) {
  const V x = context.input();
  const int64_t rank = context.rank(x);
  Compose c(context);
  if (rank < 2) return context.set_output(c.reshape(x, {num_elements(c.shape(x)), 1}));
  V last = x;
  if (context.is_channels_first() && rank > 2) {
    std::vector<int64_t> perm{0};
    for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
    perm.push_back(1);
    last = c.transpose(x, perm);
  }
  const ir::SymShape shape = c.shape(last);
  ir::SymInt rest = 1;
  for (size_t d = 1; d < shape.size(); ++d) rest = context.product(rest, shape[d]);
  context.set_output(c.reshape(last, {shape[0], rest}));
}

ir::SymShape reshaped_to(const LayerContext& context, const ir::SymShape& from,
                         const std::vector<int64_t>& target, size_t kept) {
  ir::SymShape shape(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(kept));
  ir::SymInt all = 1, known = 1;
  for (size_t d = kept; d < from.size(); ++d) all = context.product(all, from[d]);
  std::optional<size_t> open;
  for (const int64_t extent : target) {
    if (extent < -1 || (extent == -1 && open))
      context.invalid("a shape with the extent " + std::to_string(extent));
    if (extent == -1) open = shape.size();
    if (extent != -1) known = context.product(known, extent);
    shape.push_back(extent);
  }
  const auto fail = [&] {
    std::string text;
    for (const int64_t extent : target) text += (text.empty() ? "" : ",") + std::to_string(extent);
    context.invalid("an input of shape " + to_string(from) + " for the shape [" + text + "] of a sample");
  };
  if (open) {
    if (same(known, 0) || !ir::demand_divisible(all, known)) fail();
    shape[*open] = floordiv(all, known);
  } else if (!ir::demand(ir::Relation::kEqual, all, known)) {
    fail();
  }
  return shape;
}

void convert_reshape(LayerContext& context) {
  const V x = context.input();
  if (context.rank(x) < 1) context.invalid("the input has no batch");
  context.set_output(
      context.reshape(x, reshaped_to(context, context.shape(x), context.config().list("target_shape"), 1)));
}

void convert_permute(LayerContext& context) {
  const V x = context.input();
  std::vector<int64_t> perm{0};
  for (const int64_t axis : context.config().list("dims")) perm.push_back(axis);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) || static_cast<int64_t>(sorted.size()) != context.rank(x))
      context.invalid("option dims is no permutation of the input's axes");
  }
  context.set_output(Compose(context).transpose(x, perm));
}

void convert_repeat_vector(LayerContext& context) {
  const V x = context.input();
  check_rank(context, x, 2);
  Compose c(context);
  const int64_t count = context.config().integer("n");
  if (count < 0) context.invalid("option n is " + std::to_string(count));
  const ir::SymShape shape = c.shape(x);
  context.set_output(c.expand(c.unsqueeze(x, 1), {shape[0], count, shape[1]}));
}

namespace {

/// [begin, end] of each spatial axis: one number for all, one an axis, or a pair an axis.
std::vector<std::array<int64_t, 2>> pairs_of(const LayerContext& context, const char* name, size_t rank) {
  const Json& value = context.config().at(name);
  std::vector<std::array<int64_t, 2>> pairs;
  const std::string what = std::string("option ") + name;
  // Of one axis a pair is that axis'.
  const bool is_pair = rank == 1 && value.is_array() && value.size() == 2;
  for (size_t d = 0; d < rank; ++d) {
    const bool is_each = value.is_array() && !is_pair;
    if (is_each && value.size() != rank)
      context.invalid(what + " has " + std::to_string(value.size()) + " elements, expected " +
                      std::to_string(rank));
    const ir::Ints own = integers_of(is_each ? value[d] : value, what);
    if (own.empty() || own.size() > 2) context.invalid(what + " is neither a number nor a pair");
    pairs.push_back({own.front(), own.back()});
    for (const int64_t number : pairs.back()) {
      if (number < 0 || number > build::kMaxWindowNumber)
        context.invalid(what + " has " + std::to_string(number));
    }
  }
  return pairs;
}

}  // namespace

void convert_zero_padding(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  const V map = context.map(x);
  std::vector<int64_t> pads(2 * (rank + 2), 0);
  const auto pairs = pairs_of(context, "padding", rank);
  for (size_t d = 0; d < rank; ++d) {
    pads[d + 2] = pairs[d][0];
    pads[d + rank + 4] = pairs[d][1];
  }
  context.set_output(context.unmap(
      context.add("pad", {map}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}})));
}

void convert_cropping(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  Compose c(context);
  V map = context.map(x);
  const auto pairs = pairs_of(context, "cropping", rank);
  for (size_t d = 0; d < rank; ++d) {
    const ir::SymInt extent = c.shape(map)[d + 2], left = extent - (pairs[d][0] + pairs[d][1]);
    if (!ir::demand(ir::Relation::kLess, 0, left))
      context.invalid("an axis of " + to_string(extent) + " elements is cropped by " +
                      std::to_string(pairs[d][0] + pairs[d][1]));
    map = c.slice(map, static_cast<int64_t>(d) + 2, pairs[d][0], left);
  }
  context.set_output(context.unmap(map));
}

namespace {

build::ResizeOptions resize_rule(const LayerContext& context, const std::string& interpolation,
                                 bool antialias) {
  build::ResizeOptions rule;
  rule.coordinates = "half_pixel";
  rule.antialias = antialias;
  if (interpolation == "nearest") {
    rule.mode = "nearest";
    rule.coordinates = "tf_half_pixel_for_nn";
    rule.nearest = "floor";
    rule.antialias = false;
  } else if (interpolation == "bilinear") {
    rule.mode = "linear";
  } else if (interpolation == "bicubic") {
    rule.mode = "cubic";
    rule.cubic = -0.5;
    rule.exclude_outside = true;
    if (!antialias) rule.cubic_steps = 1024;  // TensorFlow's table
  } else {
    context.unsupported("option interpolation",
                        "\"" + interpolation.substr(0, 100) + "\" is not implemented");
  }
  return rule;
}

/// By a filter of any width, in float32 as TensorFlow has it.
V filtered_axis(LayerContext& context, V map, size_t d, const ir::SymInt& out, const std::string& filter,
                bool antialias) {
  Compose c(context);
  const V wide = c.cast(map, DType::kFloat32);
  const ir::SymInt in = c.shape(map)[d + 2];
  const V scale = c.div(c.extent(wide, out), c.extent(wide, in));
  const V y = build::filtered(context, wide, static_cast<int64_t>(d) + 2, {in, out, scale, ir::kAbsent},
                              filter, antialias);
  return c.cast(y, c.dtype(map));
}

}  // namespace

V resized(LayerContext& context, V map, const ir::SymShape& sizes, const std::string& interpolation,
          bool antialias) {
  const bool has_filter = interpolation.starts_with("lanczos");
  const build::ResizeOptions rule =
      has_filter ? build::ResizeOptions() : resize_rule(context, interpolation, antialias);
  Compose c(context);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const ir::SymInt in = c.shape(map)[d + 2];
    const ir::SymInt& out = sizes[d];
    if (!ir::demand(ir::Relation::kLess, 0, out)) context.invalid("a size of " + to_string(out));
    const bool is_open = !in.is_constant() || !out.is_constant();
    if (!is_open && same(in, out)) continue;
    if (has_filter) {
      map = filtered_axis(context, map, d, out, interpolation, antialias);
      continue;
    }
    build::ResizeAxis axis;
    axis.in = in;
    axis.out = out;
    axis.by_size = true;
    axis.scale = static_cast<double>(out.hint()) / static_cast<double>(in.hint());
    map = build::resize_along(context, map, static_cast<int64_t>(d) + 2, axis, rule);
  }
  return map;
}

namespace {

/// Each element as often as a number says: an axis of as many behind it, which then joins it.
V repeated(LayerContext& context, V map, const std::vector<int64_t>& sizes) {
  Compose c(context);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    const auto axis = static_cast<int64_t>(d) + 2;
    ir::SymShape shape = c.shape(map), wide = shape;
    wide.insert(wide.begin() + axis + 1, sizes[d]);
    shape[d + 2] = context.product(shape[d + 2], sizes[d]);
    map = c.reshape(c.expand(c.unsqueeze(map, axis + 1), wide), shape);
  }
  return map;
}

}  // namespace

void convert_up_sampling(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  const V map = context.map(x);
  const ir::Ints sizes = context.config().integers("size", rank, 2);
  for (const int64_t size : sizes) {
    if (size < 1 || size > 4096) context.invalid("option size has " + std::to_string(size));
  }
  const std::string interpolation = context.config().text("interpolation", "nearest");
  if (interpolation == "nearest") return context.set_output(context.unmap(repeated(context, map, sizes)));
  ir::SymShape to;
  for (size_t d = 0; d < rank; ++d) to.push_back(context.product(context.shape(map)[d + 2], sizes[d]));
  context.set_output(context.unmap(resized(context, map, to, interpolation, false)));
}

void convert_embedding(LayerContext& context) {
  const LayerConfig& config = context.config();
  for (const char* option : {"input_dim", "output_dim", "sparse"}) config.skip(option);
  if (config.has("lora_rank")) context.unsupported("option lora_rank", "it is not implemented");
  const V table = context.weight("embeddings", 0), given = context.raw(0);
  static_cast<void>(context.weight_shape(table, 2, "the table"));
  Compose c(context);
  const V places = c.cast(given, DType::kInt64);
  const bool has_mask = config.flag("mask_zero", false);
  const V mask = has_mask ? c.unary("not", c.binary("equal", places, c.ints({0}, {}))) : ir::kAbsent;
  context.set_output(c.gather(table, places, 0), mask);
}

// Steps whose features all have one value do not count, and are 0.
void convert_masking(LayerContext& context) {
  Compose c(context);
  const V x = context.input();
  const int64_t last = context.rank(x) - 1;
  if (last < 1) context.invalid("its input has shape " + to_string(c.shape(x)));
  const V is_value = c.binary("equal", x, c.number(x, context.config().number("mask_value", 0)));
  const V all = c.cast(c.reduce("reduce_min", c.cast(is_value, DType::kInt32), {last}, false), DType::kBool);
  context.set_output(c.where(c.unsqueeze(all, last), c.number(x, 0), x), c.unary("not", all));
}

}  // namespace tensormill::frontend::keras
