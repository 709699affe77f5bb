// ai.onnx.ml: preprocessing, linear models and support vectors, as scikit-learn's exporters write them.
#include <algorithm>
#include <cmath>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/ml.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// [N,F] in float32; a vector is one row.
V rows_of(NodeContext& context, size_t index) {
  Compose c(context);
  V x = context.input(index);
  const ir::SymShape shape = c.shape(x);
  if (shape.empty() || shape.size() > 2) context.invalid("the input has shape " + to_string(shape));
  if (shape.size() == 1) x = c.unsqueeze(x, 0);
  return c.cast(x, DType::kFloat32);
}

V row_constant(NodeContext& context, const std::vector<double>& values) {
  return Compose(context).doubles(DType::kFloat32, values, {static_cast<int64_t>(values.size())});
}

/// One value for all columns, or one a column.
V column_constant(NodeContext& context, const std::vector<double>& values, int64_t columns,
                  const char* name) {
  const int64_t count = static_cast<int64_t>(values.size());
  if (count != 1 && count != columns)
    context.invalid(std::string(name) + " has " + std::to_string(count) + " values for " +
                    std::to_string(columns) + " columns");
  return row_constant(context, values);
}

}  // namespace

ir::CheckedList<double> float_values(const NodeContext& context, const char* name) {
  const AttributeProto* found = context.node().find(name);
  if (found == nullptr) return {};
  return {found->floats.begin(), found->floats.end()};
}

V post_transformed(NodeContext& context, V scores) {
  return transformed(context, scores, context.string_attr("post_transform", "NONE"));
}

V transformed(NodeContext& context, V scores, const std::string& name) {
  Compose c(context);
  if (name == "NONE") return scores;
  if (name == "LOGISTIC") return context.add("sigmoid", {scores});
  if (name == "SOFTMAX") return context.add("softmax", {scores}, {{"axis", int64_t{1}}});
  if (name == "SOFTMAX_ZERO") {
    // Scores of zero stay what they are, and do not take part.
    const V zero = c.number(scores, 0), is_zero = c.binary("equal", scores, zero);
    const V largest = c.reduce("reduce_max", scores, {1}, true);
    const V powers = c.where(is_zero, zero, c.unary("exp", c.sub(scores, largest)));
    const V sum = c.reduce("reduce_sum", powers, {1}, true);
    return c.where(is_zero, zero, c.div(powers, sum));
  }
  // PROBIT: sqrt(2) * erfinv(2 * score - 1), by Winitzki's form of the inverse.
  constexpr double kWinitzki = 0.147, kPi = 3.14159265358979323846;
  const V y = c.minus(c.times(scores, 2), 1),
          log = c.unary("log", c.mul(c.sub(c.number(y, 1), y), c.plus(y, 1)));
  const V half = c.plus(c.times(log, 0.5), 2 / (kPi * kWinitzki));
  const V inner = c.sub(c.unary("sqrt", c.sub(c.mul(half, half), c.times(log, 1 / kWinitzki))), half);
  const V size = c.times(c.unary("sqrt", inner), 1.4142135623730951);
  return c.where(c.binary("less", y, c.number(y, 0)), c.unary("neg", size), size);
}

void set_class_outputs(NodeContext& context, V scores, const ClassLabels& labels) {
  Compose c(context);
  context.set_output(0, c.gather(labels.table, c.arg_max(scores, 1, false), 0));
  context.set_output(1, post_transformed(context, scores));
}

void set_binary_outputs(NodeContext& context, V score, const ClassLabels& labels, double threshold,
                        bool complement) {
  Compose c(context);
  const V flat = c.squeeze(score, 1);
  const V positive = c.binary("greater", flat, c.number(flat, threshold));
  context.set_output(0, c.gather(labels.table, c.cast(positive, DType::kInt64), 0));
  const bool logistic = context.string_attr("post_transform", "NONE") == "LOGISTIC";
  const V second = logistic ? context.add("sigmoid", {score}) : score;
  const V first = logistic || complement ? c.sub(c.number(second, 1), second) : c.unary("neg", second);
  context.set_output(1, c.concat({first, second}, 1));
}

// (x - offset) * scale
void convert_scaler(NodeContext& context) {
  Compose c(context);
  V x = rows_of(context, 0);
  const ir::SymInt columns = c.shape(x)[1];
  const ir::CheckedList<double> offset = float_values(context, "offset"),
                                scale = float_values(context, "scale");
  if (!offset.empty()) x = c.sub(x, column_constant(context, offset, columns, "offset"));
  if (!scale.empty()) x = c.mul(x, column_constant(context, scale, columns, "scale"));
  context.set_output(0, x);
}

// Each row divided by its norm; a row of zeros stays.
void convert_normalizer(NodeContext& context) {
  Compose c(context);
  const V x = rows_of(context, 0);
  const std::string norm = context.string_attr("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2") context.invalid("norm is \"" + norm + "\"");
  const V size = norm == "MAX" ? c.reduce("reduce_max", x, {1}, true)
                               : c.reduce(norm == "L1" ? "reduce_l1" : "reduce_l2", x, {1}, true);
  const V zero = c.number(size, 0);
  context.set_output(0, c.where(c.binary("equal", size, zero), x, c.div(x, size)));
}

void convert_binarizer(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0);
  const V above = c.binary("greater", x, c.number(x, context.float_attr("threshold", 0)));
  context.set_output(0, c.cast(above, c.dtype(x)));
}

namespace {

/// Strings that are `replaced` become those of imputed_value_strings: of the column, or the one.
V imputed_text(NodeContext& context, V x) {
  Compose c(context);
  const ir::CheckedList<std::string> values = text_values(context, "imputed_value_strings");
  const ir::SymShape shape = shown_shape(kString, c.shape(x));
  const int64_t count = static_cast<int64_t>(values.size());
  if (shape.empty() || (count != 1 && count != shape.back()))
    context.invalid("imputed_value_strings has " + std::to_string(count) + " values for shape " +
                    to_string(shape));
  const SortedTexts replaced = sorted_texts({context.string_attr("replaced_value_string", "")});
  const V missing = c.binary("equal", found_text(context, x, replaced), c.ints({0}, {}));
  const std::vector<V> texts = of_one_width(context, {text_constant(context, values), x});
  ir::SymShape mask = shape;
  mask.push_back(1);
  return c.where(c.reshape(missing, mask), texts[0], texts[1]);
}

}  // namespace

// Values that are missing become another, of all columns or of each: of floats, integers or strings.
void convert_imputer(NodeContext& context) {
  Compose c(context);
  if (is_text(context, context.input(0)))
    return context.set_output(0, imputed_text(context, context.input(0)));
  const ir::Ints integers = context.ints_attr("imputed_value_int64s", {});
  if (!integers.empty()) {
    const V x = context.input(0);
    const int64_t count = static_cast<int64_t>(integers.size());
    const V missing =
        c.binary("equal", x, c.cast(c.dims({context.int_attr("replaced_value_int64", 0)}, {}), c.dtype(x)));
    if (context.rank(x) < 1 || (count != 1 && count != c.shape(x).back()))
      context.invalid("imputed_value_int64s has " + std::to_string(count) + " values for shape " +
                      to_string(c.shape(x)));
    return context.set_output(0, c.where(missing, c.cast(c.ints(integers, {count}), c.dtype(x)), x));
  }
  const V x = rows_of(context, 0);
  const ir::CheckedList<double> values = float_values(context, "imputed_value_floats");
  const double replaced = context.float_attr("replaced_value_float", 0);
  const V missing = std::isnan(replaced) ? c.unary("is_nan", x) : c.binary("equal", x, c.number(x, replaced));
  const V filler = column_constant(context, values, c.shape(x)[1], "imputed_value_floats");
  context.set_output(0, c.where(missing, filler, x));
}

void convert_feature_vectorizer(NodeContext& context) {
  std::vector<V> parts;
  for (size_t i = 0; i < context.num_inputs(); ++i) parts.push_back(rows_of(context, i));
  if (parts.empty()) context.invalid("has no operands");
  context.set_output(0, Compose(context).concat(std::move(parts), 1));
}

// Columns by their numbers.
void convert_array_feature_extractor(NodeContext& context) {
  Compose c(context);
  const V x = context.input(0), numbers = context.input(1);
  const int64_t rank = context.rank(x);
  if (rank < 1) context.invalid("the input is a scalar");
  const V flat = c.reshape(c.cast(numbers, DType::kInt64), {num_elements(c.shape(numbers))});
  const V result = c.gather(x, flat, rank - 1);
  context.set_output(0, rank == 1 ? c.unsqueeze(result, 0) : result);
}

namespace {

/// X W' + b for coefficients [outputs,F].
V linear_scores(NodeContext& context, int64_t outputs) {
  Compose c(context);
  const V x = rows_of(context, 0);
  const ir::SymInt columns = c.shape(x)[1];
  const ir::CheckedList<double> weights = float_values(context, "coefficients"),
                                intercepts = float_values(context, "intercepts");
  if (outputs < 1 || static_cast<int64_t>(weights.size()) != context.product(outputs, columns))
    context.invalid(std::to_string(weights.size()) + " coefficients for " + std::to_string(outputs) +
                    " outputs of " + std::to_string(columns) + " columns");
  const V scores = c.matmul(x, c.doubles(DType::kFloat32, weights, {outputs, columns}), true);
  return intercepts.empty() ? scores
                            : c.add(scores, column_constant(context, intercepts, outputs, "intercepts"));
}

}  // namespace

void convert_linear_regressor(NodeContext& context) {
  context.set_output(0, post_transformed(context, linear_scores(context, context.int_attr("targets", 1))));
}

void convert_linear_classifier(NodeContext& context) {
  Compose c(context);
  const ClassLabels labels = class_labels(context, "classlabels_ints", "classlabels_strings");
  const ir::SymInt columns = c.shape(rows_of(context, 0))[1];
  const int64_t weights = static_cast<int64_t>(float_values(context, "coefficients").size());
  const V scores = linear_scores(context, columns == 0 ? ir::SymInt(0) : weights / columns);
  const ir::SymInt outputs = c.shape(scores)[1];
  if (outputs == 1 && labels.count == 2) {
    set_binary_outputs(context, scores, labels, 0, true);
  } else if (outputs == labels.count) {
    set_class_outputs(context, scores, labels);
  } else {
    context.invalid(std::to_string(outputs) + " rows of coefficients for " + std::to_string(labels.count) +
                    " labels");
  }
}

namespace {

/// kernel(x, support vector) [N,count] of the rows of x and `count` vectors.
V support_kernel(NodeContext& context, V x, const std::vector<double>& vectors, int64_t count,
                 const std::string& kernel) {
  Compose c(context);
  const ir::SymInt columns = c.shape(x)[1];
  const ir::CheckedList<double> params = float_values(context, "kernel_params");
  if (count < 1 || static_cast<int64_t>(vectors.size()) != context.product(count, columns) ||
      (kernel != "LINEAR" && params.size() != 3))
    context.invalid(std::to_string(vectors.size()) + " numbers for " + std::to_string(count) +
                    " support vectors of " + std::to_string(columns) + " columns");
  const V supports = c.doubles(DType::kFloat32, vectors, {count, columns});
  if (kernel == "RBF") {
    const V apart = c.sub(c.unsqueeze(x, 1), supports);
    return c.unary("exp", c.times(c.reduce("reduce_sum", c.mul(apart, apart), {2}, false), -params[0]));
  }
  const V values = c.matmul(x, supports, true);
  if (kernel == "LINEAR") return values;
  const V shifted = c.plus(c.times(values, params[0]), params[1]);
  if (kernel == "SIGMOID") return c.unary("tanh", shifted);
  if (kernel != "POLY") context.invalid("kernel_type is \"" + kernel + "\"");
  return c.binary("pow", shifted, c.number(shifted, params[2]));
}

}  // namespace

// sum of coefficient * kernel(x, support vector) + rho
void convert_svm_regressor(NodeContext& context) {
  Compose c(context);
  const V x = rows_of(context, 0);
  const ir::CheckedList<double> weights = float_values(context, "coefficients"),
                                rho = float_values(context, "rho");
  const int64_t count = static_cast<int64_t>(weights.size());
  if (rho.empty()) context.invalid("attribute rho is missing");
  // Without support vectors the coefficients are the only one, and the kernel is the product.
  const bool has_supports = context.int_attr("n_supports", 0) > 0;
  const V values = has_supports ? support_kernel(context, x, float_values(context, "support_vectors"), count,
                                                 context.string_attr("kernel_type", "LINEAR"))
                                : support_kernel(context, x, weights, 1, "LINEAR");
  const V sum = c.plus(
      has_supports ? c.matmul(values, c.doubles(DType::kFloat32, weights, {count, 1})) : values, rho[0]);
  const bool one_class = context.int_attr("one_class", 0) != 0;
  const V zero = c.number(sum, 0);
  context.set_output(0, one_class
                            ? c.where(c.binary("greater", sum, zero), c.number(sum, 1), c.number(sum, -1))
                            : post_transformed(context, sum));
}

namespace {

/// Which weight each support vector has in the decision between each two classes: [vectors, pairs]; the rows
/// of the coefficients are those of the other classes (Chang, Lin 2011, "LIBSVM", section 7).
ir::CheckedList<double> pair_weights(const NodeContext& context, const std::vector<int64_t>& counts,
                                     int64_t vectors) {
  const int64_t classes = static_cast<int64_t>(counts.size()), pairs = classes * (classes - 1) / 2;
  const ir::CheckedList<double> weights = float_values(context, "coefficients");
  if (static_cast<int64_t>(weights.size()) != context.product(classes - 1, vectors))
    context.invalid(std::to_string(weights.size()) + " coefficients for " + std::to_string(vectors) +
                    " support vectors of " + std::to_string(classes) + " classes");
  std::vector<int64_t> starts{0};
  for (const int64_t count : counts) starts.push_back(starts.back() + count);
  std::vector<double> table(static_cast<size_t>(context.product(vectors, pairs)), 0);
  int64_t pair = 0;
  const auto set = [&](int64_t row, size_t of) {
    for (int64_t vector = starts[of]; vector < starts[of + 1]; ++vector)
      table[static_cast<size_t>(vector * pairs + pair)] =
          weights[static_cast<size_t>(row * vectors + vector)];
  };
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      set(j - 1, static_cast<size_t>(i));
      set(i, static_cast<size_t>(j));
    }
  }
  return table;
}

/// The label that most decisions [N,pairs] between two classes are for, the first of equals.
V elected(NodeContext& context, V decisions, const ClassLabels& labels) {
  Compose c(context);
  const ir::SymInt classes = labels.count, pairs = c.shape(decisions)[1];
  std::vector<double> first(static_cast<size_t>(pairs * classes), 0), second = first;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      first[static_cast<size_t>(pair * classes + i)] = 1;
      second[static_cast<size_t>(pair * classes + j)] = 1;
    }
  }
  const V won = c.cast(c.binary("greater", decisions, c.number(decisions, 0)), DType::kFloat32);
  const V votes =
      c.add(c.matmul(won, c.doubles(DType::kFloat32, first, {pairs, classes})),
            c.matmul(c.sub(c.number(won, 1), won), c.doubles(DType::kFloat32, second, {pairs, classes})));
  return c.gather(labels.table, c.arg_max(votes, 1, false), 0);
}

/// 1 / (1 + e^(a d + b)) of each decision d between two classes (Platt 1999), coupled to one a class.
V class_probabilities(NodeContext& context, V decisions) {
  Compose c(context);
  const ir::SymInt pairs = c.shape(decisions)[1];
  const ir::CheckedList<double> a = float_values(context, "prob_a"), b = float_values(context, "prob_b");
  if (static_cast<int64_t>(a.size()) != pairs || a.size() != b.size())
    context.invalid("prob_a and prob_b have " + std::to_string(a.size()) + " and " +
                    std::to_string(b.size()) + " values for " + std::to_string(pairs) + " pairs of classes");
  // Coupling divides by the probabilities: as LIBSVM, none is 0 or 1.
  constexpr double kLeast = 1e-7;
  const V fitted = c.add(c.mul(decisions, row_constant(context, a)), row_constant(context, b));
  const V first = c.clip(c.unary("sigmoid", c.unary("neg", fitted)), kLeast, 1 - kLeast);
  return context.add("couple_pairs", {first});
}

/// Without support vectors: X W' + rho for coefficients [classes,F], as ONNX's reference and ONNX Runtime do
/// it.
void linear_svm_outputs(NodeContext& context, const ClassLabels& labels) {
  Compose c(context);
  const ir::CheckedList<double> rho = float_values(context, "rho"),
                                weights = float_values(context, "coefficients");
  const V x = rows_of(context, 0);
  const ir::SymInt columns = c.shape(x)[1];
  if (rho.empty() || labels.count < 2 ||
      static_cast<int64_t>(weights.size()) != context.product(labels.count, columns))
    context.invalid(std::to_string(weights.size()) + " coefficients and " + std::to_string(rho.size()) +
                    " values of rho for " + std::to_string(labels.count) + " labels and " +
                    std::to_string(columns) + " columns");
  if (context.has_attr("prob_a")) context.unsupported("prob_a", "is not implemented without support vectors");
  const V products = c.matmul(x, c.doubles(DType::kFloat32, weights, {labels.count, columns}), true);
  const V scores = c.plus(products, rho[0]);
  V chosen = c.arg_max(scores, 1, false);
  if (rho.size() == 1 && labels.count == 2) {
    // Of two classes the second is taken as soon as any score is high.
    const bool all_positive =
        std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
    const V best = c.reduce("reduce_max", scores, {1}, false);
    const V is_high = all_positive ? c.binary("greater_equal", best, c.number(best, 0.5))
                                   : c.binary("greater", best, c.number(best, 0));
    chosen = c.where(is_high, c.ints({1}, {}), chosen);
  }
  context.set_output(0, c.gather(labels.table, chosen, 0));
  context.set_output(1, post_transformed(context, scores));
}

}  // namespace

// Decisions between each two classes; output 1 has one a pair, or the negative and the positive of the only
// one, or, with prob_a and prob_b, a probability a class.
void convert_svm_classifier(NodeContext& context) {
  Compose c(context);
  const ClassLabels labels = class_labels(context, "classlabels_ints", "classlabels_strings");
  const ir::Ints counts = context.ints_attr("vectors_per_class", {});
  if (counts.empty()) return linear_svm_outputs(context, labels);
  if (static_cast<int64_t>(counts.size()) != labels.count || counts.size() < 2 || counts.size() > 4096)
    context.invalid(std::to_string(labels.count) + " labels for " + std::to_string(counts.size()) +
                    " classes");
  int64_t vectors = 0;
  for (const int64_t count : counts) {
    if (count < 0 || count > (int64_t{1} << 32))
      context.invalid("vectors_per_class has " + std::to_string(count));
    vectors += count;
  }
  const ir::CheckedList<double> rho = float_values(context, "rho");
  const ir::CheckedList<double> weights = pair_weights(context, counts, vectors);
  const int64_t pairs = static_cast<int64_t>(rho.size());
  if (pairs * vectors != static_cast<int64_t>(weights.size()))
    context.invalid(std::to_string(rho.size()) + " values of rho for " + std::to_string(counts.size()) +
                    " classes");
  const V values = support_kernel(context, rows_of(context, 0), float_values(context, "support_vectors"),
                                  vectors, context.string_attr("kernel_type", "LINEAR"));
  const V decisions = c.add(c.matmul(values, c.doubles(DType::kFloat32, weights, {vectors, pairs})),
                            row_constant(context, rho));
  context.set_output(0, elected(context, decisions, labels));
  if (context.has_attr("prob_a"))
    return context.set_output(1, post_transformed(context, class_probabilities(context, decisions)));
  if (context.string_attr("post_transform", "NONE") != "NONE")
    context.unsupported("post_transform", "is not implemented without probabilities");
  context.set_output(1, pairs == 1 ? c.concat({c.unary("neg", decisions), decisions}, 1) : decisions);
}

// A map from label to score a row is the matrix of scores here, columns in the order of the labels.
void convert_zip_map(NodeContext& context) {
  context.set_output(0, context.add("identity", {context.input(0)}));
}

}  // namespace tensormill::frontend::onnx
