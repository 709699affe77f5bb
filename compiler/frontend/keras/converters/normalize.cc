// Normalizations, at inference.
#include <algorithm>

#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

namespace {

/// Half precision is normalized in single precision, as Keras does.
DType wide_of(const LayerContext& context) {
  return context.compute_dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

ir::Ints axes_of(const LayerContext& context, int64_t rank) {
  const LayerConfig& config = context.config();
  ir::Ints axes = config.has("axis") ? config.list("axis") : std::vector<int64_t>{-1};
  for (int64_t& axis : axes) axis = context.normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (axes.empty() || std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    context.invalid("option axis names no axis, or one twice");
  return axes;
}

/// A weight of the extents of some axes, along these axes of `rank` ones.
V along(LayerContext& context, V weight, const std::vector<int64_t>& axes, int64_t rank) {
  const ir::SymShape own = context.shape(weight);
  if (own.size() != axes.size())
    context.invalid("a weight of shape " + to_string(own) + " for " + std::to_string(axes.size()) + " axes");
  ir::SymShape shape(static_cast<size_t>(rank), 1);
  for (size_t i = 0; i < axes.size(); ++i) shape[static_cast<size_t>(axes[i])] = own[i];
  return Compose(context).reshape(weight, shape);
}

struct BatchStatistics {
  V gamma, beta, mean, variance;
};

BatchStatistics statistics_of(LayerContext& context) {
  const LayerConfig& config = context.config();
  Compose c(context);
  const DType wide = wide_of(context);
  size_t count = 0;
  BatchStatistics made{ir::kAbsent, ir::kAbsent, ir::kAbsent, ir::kAbsent};
  if (config.flag("scale", true)) made.gamma = c.cast(context.stored_weight("gamma", count++), wide);
  if (config.flag("center", true)) made.beta = c.cast(context.stored_weight("beta", count++), wide);
  made.mean = c.cast(context.stored_weight("moving_mean", count), wide);
  made.variance = c.cast(context.stored_weight("moving_variance", count + 1), wide);
  const ir::SymShape shape = c.shape(made.mean);
  if (shape.size() != 1) context.invalid("a moving mean of shape " + to_string(shape));
  if (made.gamma == ir::kAbsent) made.gamma = c.filled(wide, shape, 1);
  if (made.beta == ir::kAbsent) made.beta = c.filled(wide, shape, 0);
  return made;
}

}  // namespace

void convert_batch_normalization(LayerContext& context) {
  const V x = context.input();
  const int64_t rank = context.rank(x);
  const ir::Ints axes = axes_of(context, rank);
  if (axes.size() != 1) context.unsupported("option axis", "several axes are not implemented");
  const BatchStatistics of = statistics_of(context);
  const double epsilon = context.config().number("epsilon", 1e-3);
  const DType dtype = context.type(x).dtype;
  Compose c(context);
  const bool is_last = axes[0] == rank - 1 && rank > 2;
  if (axes[0] != 1 && !is_last) {
    const auto channel = [&](V weight) { return along(context, weight, axes, rank); };
    const V inverse = c.mul(c.unary("rsqrt", c.plus(channel(of.variance), epsilon)), channel(of.gamma));
    const V wide = c.cast(x, wide_of(context));
    const V y = c.add(c.mul(wide, inverse), c.sub(channel(of.beta), c.mul(channel(of.mean), inverse)));
    return context.set_output(c.cast(y, dtype));
  }
  const V map = c.cast(is_last ? context.first(x) : x, wide_of(context));
  if (!demand(ir::Relation::kEqual, c.shape(map)[1], c.shape(of.mean)[0]))
    context.invalid("statistics of " + to_string(c.shape(of.mean)[0]) + " channels for " +
                    to_string(c.shape(map)[1]));
  const V y =
      context.add("batch_norm", {map, of.gamma, of.beta, of.mean, of.variance}, {{"epsilon", epsilon}});
  context.set_output(is_last ? context.last(c.cast(y, dtype)) : c.cast(y, dtype));
}

void convert_layer_normalization(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.input();
  const int64_t rank = context.rank(x);
  const ir::Ints axes = axes_of(context, rank);
  if (config.flag("rms_scaling", false)) context.unsupported("option rms_scaling", "it is not implemented");
  Compose c(context);
  const V wide = c.cast(x, wide_of(context));
  const V centered = c.sub(wide, c.reduce("reduce_mean", wide, axes, true));
  const V variance = c.reduce("reduce_mean", c.mul(centered, centered), axes, true);
  const V inverse = c.unary("reciprocal", c.unary("sqrt", c.plus(variance, config.number("epsilon", 1e-3))));
  V y = c.mul(centered, inverse);
  size_t count = 0;
  const auto weight = [&](const char* name) {
    return along(context, c.cast(context.stored_weight(name, count++), wide_of(context)), axes, rank);
  };
  if (config.flag("scale", true)) y = c.mul(y, weight("gamma"));
  if (config.flag("center", true)) y = c.add(y, weight("beta"));
  context.set_output(c.cast(y, context.compute_dtype()));
}

void convert_rms_normalization(LayerContext& context) {
  const V x = context.input();
  const int64_t rank = context.rank(x);
  const ir::Ints axes = axes_of(context, rank);
  Compose c(context);
  const V wide = c.cast(x, wide_of(context));
  const V mean = c.reduce("reduce_mean", c.mul(wide, wide), axes, true);
  const V inverse =
      c.unary("reciprocal", c.unary("sqrt", c.plus(mean, context.config().number("epsilon", 1e-6))));
  // As Keras multiplies: by the last axes, whichever the mean is of.
  const V scale = c.cast(context.stored_weight("scale", 0), wide_of(context));
  context.set_output(c.cast(c.mul(c.mul(wide, inverse), scale), context.compute_dtype()));
}

void convert_unit_normalization(LayerContext& context) {
  const V x = context.input();
  Compose c(context);
  const V square = c.reduce("reduce_sum", c.mul(x, x), axes_of(context, context.rank(x)), true);
  const V inverse = c.unary("rsqrt", c.binary("max", square, c.number(square, 1e-24)));
  context.set_output(c.mul(x, inverse));
}

// Over [N,groups,channels of a group and all other axes].
void convert_group_normalization(LayerContext& context) {
  const LayerConfig& config = context.config();
  const V x = context.input();
  const int64_t rank = context.rank(x);
  const ir::Ints axes = axes_of(context, rank);
  if (axes.size() != 1 || axes[0] == 0 || (axes[0] != 1 && axes[0] != rank - 1))
    context.unsupported("option axis", "another axis than the channels' is not implemented");
  Compose c(context);
  const bool is_last = rank > 2 && axes[0] == rank - 1;
  const V map = c.cast(is_last ? context.first(x) : x, wide_of(context));
  const ir::SymShape shape = c.shape(map);
  if (!shape[1].is_constant()) context.unsupported("input", "its channels are a free dim");
  const int64_t channels = shape[1].hint();
  int64_t groups = config.integer("groups", 32);
  if (groups == -1) groups = channels;
  if (groups < 1 || channels % groups != 0)
    context.invalid(std::to_string(groups) + " groups of " + std::to_string(channels) + " channels");
  ir::SymInt rest = channels / groups;
  for (size_t d = 2; d < shape.size(); ++d) rest = context.product(rest, shape[d]);
  const V flat = c.reshape(map, {shape[0], groups, rest});
  const V centered = c.sub(flat, c.reduce("reduce_mean", flat, {2}, true));
  const V variance = c.reduce("reduce_mean", c.mul(centered, centered), {2}, true);
  const V inverse = c.unary("rsqrt", c.plus(variance, config.number("epsilon", 1e-3)));
  V y = c.reshape(c.mul(centered, inverse), shape);
  size_t count = 0;
  const auto weight = [&](const char* name) {
    return along(context, c.cast(context.stored_weight(name, count++), wide_of(context)), {1}, rank);
  };
  if (config.flag("scale", true)) y = c.mul(y, weight("gamma"));
  if (config.flag("center", true)) y = c.add(y, weight("beta"));
  y = c.cast(y, context.compute_dtype());
  context.set_output(is_last ? context.last(y) : y);
}

/// The weights are normalized in training; a run has them as they are.
void convert_spectral_normalization(LayerContext& context) {
  context.config().skip("power_iterations");
  const Layer inner = context.inner_layer("layer");
  const auto outputs = context.call_layer(inner, context.weights().part("layer", inner.name),
                                          {{context.input(), context.mask()}});
  context.set_output(outputs.at(0).data, outputs.at(0).mask);
}

}  // namespace tensormill::frontend::keras
