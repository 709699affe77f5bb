// What is done to pictures and categories before a network, and dense layers by an equation.
#include <algorithm>

#include "compiler/build/numbers/einsum.h"
#include "compiler/frontend/keras/converters/categories.h"
#include "compiler/frontend/keras/converters/moves.h"
#include "compiler/frontend/keras/converters/windows.h"

namespace tensormill::frontend::keras {

namespace {

/// Numbers of an option along the last axis, or one.
V numbers_of(LayerContext& context, const char* name, double usual) {
  const ir::CheckedList<double> values =
      context.config().has(name) ? context.config().numbers(name) : std::vector<double>{usual};
  const auto count = static_cast<int64_t>(values.size());
  if (count == 0) context.invalid("option " + std::string(name) + " has no numbers");
  return Compose(context).doubles(context.compute_dtype(), values, count == 1 ? Shape{} : Shape{count});
}

}  // namespace

void convert_rescaling(LayerContext& context) {
  context.config().skip("data_format");
  const V x = context.cast(context.raw(0), context.compute_dtype());
  const V scaled = context.elementwise("mul", {x, numbers_of(context, "scale", 1)});
  context.set_output(context.elementwise("add", {scaled, numbers_of(context, "offset", 0)}));
}

// (x - mean) / max(sqrt(variance), 1e-7) along some axes.
void convert_normalization(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.cast(context.raw(0), context.compute_dtype());
  const int64_t rank = context.rank(x);
  ir::SymShape along(static_cast<size_t>(rank), 1);
  if (config.has("axis")) {
    for (const int64_t axis : config.list("axis")) {
      const auto at = static_cast<size_t>(context.normalize_axis(axis, rank));
      along[at] = context.shape(x)[at];
    }
  }
  Compose c(context);
  const auto statistic = [&](const char* name, size_t index) {
    if (!config.has("mean"))
      return c.reshape(c.cast(context.weight(name, index), context.compute_dtype()), along);
    const ir::CheckedList<double> values = config.numbers(name);
    const auto count = static_cast<int64_t>(values.size());
    if (count == 1) return c.doubles(context.compute_dtype(), values, {});
    if (!demand(ir::Relation::kEqual, num_elements(along), count))
      context.invalid("option " + std::string(name) + " has " + std::to_string(count) + " numbers for " +
                      to_string(along));
    // How free extents share the numbers is a run's.
    if (along.is_constant()) return c.doubles(context.compute_dtype(), values, along);
    return c.reshape(c.doubles(context.compute_dtype(), values, {count}), along);
  };
  const V mean = statistic("mean", 0), variance = statistic("variance", 1);
  config.skip("variance");
  const V deviation = c.binary("max", c.unary("sqrt", variance), c.number(x, 1e-7));
  if (config.flag("invert", false))
    return context.set_output(context.elementwise("add", {context.elementwise("mul", {x, deviation}), mean}));
  context.set_output(context.elementwise("div", {context.elementwise("sub", {x, mean}), deviation}));
}

namespace {

/// How long an axis is for the extents of a map to be as the target's: as Keras has it, at the map's other
/// axis.
ir::SymInt fitting(const ir::SymInt& other, int64_t target, int64_t other_target) {
  return floordiv(other * target, other_target);
}

void check_target(const LayerContext& context, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || std::max(height, width) > (1 << 20))
    context.invalid("a picture of " + std::to_string(height) + " x " + std::to_string(width));
}

/// The middle of map [N,C,H,W], of the target's proportions.
V cropped_to(LayerContext& context, V map, int64_t height, int64_t width) {
  Compose c(context);
  const ir::SymInt rows = c.shape(map)[2], columns = c.shape(map)[3];
  const ir::SymInt high = max(min(rows, fitting(columns, height, width)), 1);
  const ir::SymInt wide = max(min(columns, fitting(rows, width, height)), 1);
  return c.slice(c.slice(map, 2, floordiv(rows - high, 2), high), 3, floordiv(columns - wide, 2), wide);
}

/// Map [N,C,H,W] with as much of a number on both sides as its extents are from the target's proportions.
V padded_to(LayerContext& context, V map, int64_t height, int64_t width, double value) {
  Compose c(context);
  const ir::SymInt rows = c.shape(map)[2], columns = c.shape(map)[3];
  const ir::SymInt above = floordiv(max(rows, fitting(columns, height, width)) - rows, 2);
  const ir::SymInt beside = floordiv(max(columns, fitting(rows, width, height)) - columns, 2);
  const ir::SymShape pads{0, 0, above, beside, 0, 0, above, beside};
  return context.add("pad", {map}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", value}});
}

}  // namespace

void convert_resizing(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.cast(context.raw(0), context.compute_dtype());
  check_rank(context, x, 4);
  const bool crops = config.flag("crop_to_aspect_ratio", false),
             pads = config.flag("pad_to_aspect_ratio", false);
  const std::string fill = config.text("fill_mode", "constant");
  if (pads && fill != "constant")
    context.unsupported("option fill_mode", "\"" + fill + "\" is not implemented");
  const double value = config.number("fill_value", 0);
  const int64_t height = config.integer("height"), width = config.integer("width");
  check_target(context, height, width);
  V map = context.map(x);
  if (crops) {
    map = cropped_to(context, map, height, width);
  } else if (pads) {
    map = padded_to(context, map, height, width, value);
  }
  map = resized(context, map, {height, width}, config.text("interpolation", "bilinear"),
                config.flag("antialias", false));
  context.set_output(context.unmap(map));
}

void convert_center_crop(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.cast(context.raw(0), context.compute_dtype());
  check_rank(context, x, 4);
  Compose c(context);
  V map = context.map(x);
  const int64_t height = config.integer("height"), width = config.integer("width");
  check_target(context, height, width);
  const ir::SymInt rows = c.shape(map)[2], columns = c.shape(map)[3];
  // A picture that is known to be smaller is made larger.
  if ((rows.is_constant() && rows.hint() < height) || (columns.is_constant() && columns.hint() < width)) {
    map = resized(context, cropped_to(context, map, height, width), {height, width}, "bilinear", false);
    // Whose elements stay what they are computed in.
    return context.set_output(context.cast(context.unmap(map), DType::kFloat32));
  }
  if (!ir::demand(ir::Relation::kLessEqual, height, rows) ||
      !ir::demand(ir::Relation::kLessEqual, width, columns))
    context.unsupported("input", "a picture that is smaller than its part is not implemented");
  map = c.slice(map, 2, floordiv(rows - height, 2), height);
  map = c.slice(map, 3, floordiv(columns - width, 2), width);
  context.set_output(context.unmap(map));
}

/// Layers that change pictures in training alone.
void convert_random_change(LayerContext& context) {
  context.config().skip_all();
  if (context.trains())
    context.unsupported("argument training", "a layer that always trains is not implemented");
  context.set_output(context.cast(context.raw(0), context.compute_dtype()));
}

V encoded_categories(LayerContext& context, V categories, int64_t tokens, const std::string& mode) {
  Compose c(context);
  if (tokens < 1 || tokens > build::kMaxListed)
    context.invalid("it has " + std::to_string(tokens) + " categories");
  const DType dtype = context.compute_dtype();
  const V ends = c.doubles(dtype, {0, 1}, {2});
  const V hot = context.add("one_hot", {c.cast(categories, DType::kInt64), ends},
                            {{"axis", int64_t{-1}}, {"depth", tokens}});
  const int64_t rank = context.rank(hot);
  if (mode == "one_hot") {
    const bool is_column = rank > 2 && same(c.shape(hot)[static_cast<size_t>(rank) - 2], 1);
    return is_column ? c.squeeze(hot, rank - 2) : hot;
  }
  if (mode != "multi_hot" && mode != "count")
    context.unsupported("option output_mode", "\"" + mode.substr(0, 100) + "\" is not implemented");
  if (rank < 3) return hot;
  const V made = c.reduce(mode == "count" ? "reduce_sum" : "reduce_max", hot, {rank - 2}, false);
  // Of no category at all there is no greatest.
  return mode == "count" ? made : c.binary("max", made, c.number(made, 0));
}

void convert_category_encoding(LayerContext& context) {
  const LayerConfig& config = context.config();
  config.skip("sparse");
  context.set_output(encoded_categories(context, context.raw(0), config.integer("num_tokens"),
                                        config.text("output_mode", "multi_hot")));
}

void convert_discretization(LayerContext& context) {
  const LayerConfig& config = context.config();
  for (const char* option : {"num_bins", "epsilon", "sparse"}) config.skip(option);
  if (!config.has("bin_boundaries"))
    context.unsupported("option bin_boundaries", "adapted ones are not implemented");
  const ir::CheckedList<double> bounds = config.numbers("bin_boundaries");
  const V x = context.cast(context.raw(0), context.compute_dtype());
  Compose c(context);
  const auto count = static_cast<int64_t>(bounds.size());
  const V reached = c.binary("greater_equal", c.unsqueeze(x, context.rank(x)),
                             c.doubles(context.compute_dtype(), bounds, {count}));
  const V place = c.reduce("reduce_sum", c.cast(reached, DType::kInt32), {context.rank(x)}, false);
  const std::string mode = config.text("output_mode", "int");
  context.set_output(mode == "int" ? place : encoded_categories(context, place, count + 1, mode));
}

namespace {

/// The windows of an axis: from floor(i * in / out) to ceil((i + 1) * in / out).
V adaptive_axis(LayerContext& context, V map, int64_t axis, int64_t out, bool is_max) {
  Compose c(context);
  const ir::SymInt extent = c.shape(map)[static_cast<size_t>(axis)];
  if (!extent.is_constant()) context.unsupported("input", "a free extent is not implemented");
  const int64_t in = extent.hint();
  if (out < 1 || in < 1 || out > build::kMaxListed / in)
    context.invalid("option output_size has " + std::to_string(out));
  const auto begin = [&](int64_t i) { return i * in / out; };
  const auto end = [&](int64_t i) { return ((i + 1) * in + out - 1) / out; };
  if (!is_max) {
    std::vector<double> weights(static_cast<size_t>(in * out), 0);
    for (int64_t i = 0; i < out; ++i) {
      for (int64_t k = begin(i); k < end(i); ++k)
        weights[static_cast<size_t>(k * out + i)] = 1.0 / static_cast<double>(end(i) - begin(i));
    }
    const int64_t rank = context.rank(map);
    ir::Ints perm = c.count_to(rank);
    std::swap(perm[static_cast<size_t>(axis)], perm.back());
    const V table = c.doubles(c.dtype(map), weights, {in, out});
    return c.transpose(c.matmul(c.transpose(map, perm), table), perm);
  }
  int64_t widest = 1;
  for (int64_t i = 0; i < out; ++i) widest = std::max(widest, end(i) - begin(i));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t k = 0; k < widest; ++k) places.push_back(std::min(begin(i) + k, end(i) - 1));
  }
  ir::SymShape shape = c.shape(map);
  shape[static_cast<size_t>(axis)] = out;
  shape.insert(shape.begin() + axis + 1, widest);
  const V windows = c.gather(map, c.ints(places, {out * widest}), axis);
  return c.reduce("reduce_max", c.reshape(windows, shape), {axis + 1}, false);
}

}  // namespace

void convert_adaptive_pool(LayerContext& context) {
  const size_t rank = spatial_rank(context);
  const V x = spatial_input(context);
  const ir::Ints sizes = context.config().integers("output_size", rank);
  V map = context.map(x);
  for (size_t d = 0; d < rank; ++d)
    map = adaptive_axis(context, map, static_cast<int64_t>(d) + 2, sizes[d],
                        context.class_name().starts_with("AdaptiveMax"));
  context.set_output(context.unmap(map));
}

void convert_einsum_dense(LayerContext& context) {
  const LayerConfig& config = context.config();
  config.skip("output_shape");
  Compose c(context);
  const std::string equation = config.text("equation", "");
  V y = build::einsum(context, equation, {context.input(), context.weight("kernel", 0)});
  if (config.has("bias_axes")) {
    // The bias has the result's axes that are named, in their order, and ones between them.
    y = c.add(y, context.weight("bias", 1));
  }
  context.set_output(with_activation(context, y));
}

}  // namespace tensormill::frontend::keras
