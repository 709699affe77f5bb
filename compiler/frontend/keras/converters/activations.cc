// Functions that layers apply to each element, by name or as layers of their own.
#include <algorithm>
#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/keras/layer_context.h"

namespace tensormill::frontend::keras {

namespace {

using build::OpName;
constexpr std::array kUnary = {OpName{"relu", "relu"},
                               OpName{"elu", "elu"},
                               OpName{"celu", "elu"},
                               OpName{"selu", "selu"},
                               OpName{"softplus", "softplus"},
                               OpName{"softsign", "softsign"},
                               OpName{"tanh", "tanh"},
                               OpName{"sigmoid", "sigmoid"},
                               OpName{"exponential", "exp"},
                               OpName{"mish", "mish"},
                               OpName{"gelu", "gelu"},
                               OpName{"hard_silu", "hard_swish"},
                               OpName{"hard_swish", "hard_swish"}};

/// Functions that are several nodes. kAbsent where the name is none of them.
V composed(Compose& c, std::string_view name, V x) {
  const auto number = [&](double value) { return c.number(x, value); };
  const auto above = [&](double bound, V yes, V no) {
    return c.where(c.binary("greater", x, number(bound)), yes, no);
  };
  if (name == "relu6") return c.clip(x, 0, 6);
  if (name == "hard_tanh") return c.clip(x, -1, 1);
  if (name == "silu" || name == "swish") return c.mul(x, c.unary("sigmoid", x));
  if (name == "log_sigmoid") return c.unary("neg", c.unary("softplus", c.unary("neg", x)));
  if (name == "tanh_shrink") return c.sub(x, c.unary("tanh", x));
  if (name == "hard_shrink")
    return c.where(c.binary("greater", c.unary("abs", x), number(0.5)), x, number(0));
  if (name == "soft_shrink") return c.sub(x, c.clip(x, -0.5, 0.5));
  if (name == "squareplus") {
    // (x + sqrt(x^2 + 4)) / 2, whose terms nearly cancel below 0.
    const V root = c.unary("sqrt", c.plus(c.mul(x, x), 4));
    return c.add(c.unary("relu", x), c.div(number(2), c.add(root, c.unary("abs", x))));
  }
  if (name == "sparse_plus") {
    const V more = c.plus(x, 1), curve = c.times(c.mul(more, more), 0.25);
    return c.where(c.binary("less_equal", x, number(-1)), number(0),
                   c.where(c.binary("less", x, number(1)), curve, x));
  }
  if (name == "sparse_sigmoid") return above(-1, c.clip(c.times(c.plus(x, 1), 0.5), 0, 1), number(0));
  return ir::kAbsent;
}

/// The first half of the last axis by the other one's gate.
V glu(LayerContext& context, V x) {
  Compose c(context);
  const int64_t axis = context.rank(x) - 1;
  const ir::SymInt extent = c.shape(x).back();
  if (!extent.is_constant() || extent.hint() % 2 != 0) context.invalid("glu of an odd number of channels");
  const int64_t half = extent.hint() / 2;
  return c.mul(c.slice(x, axis, 0, half), c.unary("sigmoid", c.slice(x, axis, half, half)));
}

V named(LayerContext& context, const std::string& name, V x) {
  if (name == "linear") return x;
  if (name == "softmax" || name == "log_softmax") return soft_max(context, name, x, -1);
  if (name == "glu") return glu(context, x);
  if (name == "leaky_relu") return context.elementwise("leaky_relu", {x}, {{"alpha", 0.2}});
  if (name == "hard_sigmoid") {
    const double slope = context.has_old_rules() ? 0.2 : 1.0 / 6;
    return context.elementwise("hard_sigmoid", {x}, {{"alpha", slope}, {"beta", 0.5}});
  }
  if (const OpName* unary = build::find_in(kUnary, &OpName::model, name))
    return context.elementwise(unary->graph, {x});
  const V made = context.pointwise(x, [&](V y) {
    Compose c(context);
    const V result = composed(c, name, y);
    if (result == ir::kAbsent)
      context.unsupported("activation " + name.substr(0, 100), "it is not implemented");
    return result;
  });
  return made;
}

}  // namespace

V soft_max(LayerContext& context, const std::string& op, V x, int64_t axis) {
  const int64_t rank = context.rank(x);
  axis = context.normalize_axis(axis, rank);
  if (!context.is_map(x)) return context.add(op, {x}, {{"axis", axis}});
  return context.last(
      context.add(op, {context.first(x)}, {{"axis", build::ChannelsLast::axis_first(axis, rank)}}));
}

V activated(LayerContext& context, const Json& function, V x) {
  if (function.is_null()) return x;
  if (function.is_string()) return named(context, function.get<std::string>(), x);
  if (!function.is_object() || !function.contains("class_name") || !function.at("class_name").is_string())
    context.invalid("an activation is neither a name nor a layer");
  const auto kind = function.at("class_name").get<std::string>();
  const Json& config = function.contains("config") ? function.at("config") : function;
  if (kind == "function") {
    const bool is_own = !function.contains("registered_name") || function.at("registered_name").is_null() ||
                        function.at("registered_name") == "function";
    if (config.is_string() && is_own) return named(context, config.get<std::string>(), x);
    context.unsupported("activation", "it is a Python function, which is not run here");
  }
  Layer layer = read_layer(function);
  if (layer.name.empty()) layer.name = "activation";
  return context.call_layer(layer, context.weights().part("activation", layer.name), {{x, ir::kAbsent}})
      .at(0)
      .data;
}

V with_activation(LayerContext& context, V x, const char* name) {
  return activated(context, context.config().at(name), x);
}

void convert_activation(LayerContext& context) {
  context.set_output(with_activation(context, context.input()));
}

void convert_relu(LayerContext& context) {
  const LayerConfig& config = context.config();
  // Keras 2 writes numbers of numpy as {"class_name": "__numpy__", ...}: those are refused as what they are.
  const double slope = config.number("negative_slope", 0), threshold = config.number("threshold", 0);
  const bool has_most = config.has("max_value");
  const double most = config.number("max_value", 0);
  context.set_output(context.pointwise(context.input(), [&](V x) {
    Compose c(context);
    if (threshold == 0 && slope == 0) return has_most ? c.clip(x, 0, most) : c.unary("relu", x);
    const V rest = slope == 0 ? c.number(x, 0) : c.times(c.minus(x, threshold), slope);
    const V low = c.where(c.binary("greater_equal", x, c.number(x, threshold)), x, rest);
    return has_most ? c.binary("min", low, c.number(x, most)) : low;
  }));
}

void convert_leaky_relu(LayerContext& context) {
  // Keras 2 called it alpha.
  const LayerConfig& config = context.config();
  const double slope = config.number(config.has("negative_slope") ? "negative_slope" : "alpha", 0.3);
  context.set_output(context.elementwise("leaky_relu", {context.input()}, {{"alpha", slope}}));
}

void convert_thresholded_relu(LayerContext& context) {
  const double theta = context.config().number("theta", 1);
  context.set_output(context.pointwise(context.input(), [&](V x) {
    Compose c(context);
    return c.where(c.binary("greater", x, c.number(x, theta)), x, c.number(x, 0));
  }));
}

void convert_elu(LayerContext& context) {
  const double alpha = context.config().number("alpha", 1);
  context.set_output(context.elementwise("elu", {context.input()}, {{"alpha", alpha}}));
}

void convert_prelu(LayerContext& context) {
  // The slopes' shape says along which axes they are shared.
  context.config().skip("shared_axes");
  const V x = context.input(), alpha = context.weight("alpha", 0);
  context.set_output(context.elementwise("prelu", {x, alpha}));
}

void convert_softmax(LayerContext& context) {
  const LayerConfig& config = context.config();
  Compose c(context);
  const std::optional<size_t> given = context.tensor_argument("mask", 1);
  V mask = given ? context.raw(*given) : context.mask(), x = context.input();
  if (mask != ir::kAbsent) {
    if (c.dtype(mask) != DType::kBool) mask = c.binary("greater", mask, c.number(mask, 0.5));
    x = c.where(mask, x, c.number(x, c.dtype(x) == DType::kFloat16 ? -3e4 : -1e9));
  }
  const ir::Ints axes = config.has("axis") ? config.list("axis") : std::vector<int64_t>{-1};
  V y = x;
  if (axes.size() == 1) {
    y = soft_max(context, "softmax", x, axes[0]);
  } else if (!axes.empty()) {
    std::vector<int64_t> all;
    for (const int64_t axis : axes) all.push_back(context.normalize_axis(axis, context.rank(x)));
    std::sort(all.begin(), all.end());
    const V powers = c.unary("exp", c.sub(x, c.reduce("reduce_max", x, all, true)));
    y = c.div(powers, c.reduce("reduce_sum", powers, all, true));
  }
  // Where all are masked, nothing is left.
  context.set_output(mask == ir::kAbsent ? y : c.where(mask, y, c.number(y, 0)), context.mask());
}

}  // namespace tensormill::frontend::keras
