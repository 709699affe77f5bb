// Attention, the labels of classifiers, and numbers that are quantized while a model runs.
#include <cmath>
#include <limits>

#include "compiler/build/numbers/quantize.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/coreml/node_context.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::coreml {

void convert_scaled_dot_product_attention(NodeContext& node) {
  Compose c(node);
  const V query = node.tensor("query"), key = node.tensor("key"), value = node.tensor("value");
  const ir::SymShape q = node.shape(query);
  if (q.size() < 2) node.invalid("the queries have rank " + std::to_string(q.size()));
  V scores = c.matmul(query, key, true);
  const V factor = q.back().is_constant()
                       ? c.number(scores, 1 / std::sqrt(static_cast<double>(q.back().hint())))
                       : c.unary("rsqrt", c.extent(scores, q.back()));
  scores = c.mul(scores, factor);
  if (node.has("attn_mask")) {
    const V mask = node.tensor("attn_mask");
    scores = node.dtype(mask) == DType::kBool
                 ? c.where(mask, scores, c.number(scores, -std::numeric_limits<double>::infinity()))
                 : c.add(scores, mask);
  }
  const V weights = node.add("softmax", {scores}, {{"axis", node.rank(scores) - 1}});
  node.set_output(c.matmul(weights, value));
}

namespace {

/// What stands at a place, i64 [1], of a list of labels: strings or integers.
V label_at(NodeContext& node, V place, const ir::SymInt& count) {
  Compose c(node);
  const auto check = [&](size_t labels) {
    if (labels == 0 || !ir::demand(ir::Relation::kEqual, count, static_cast<int64_t>(labels)))
      node.invalid(std::to_string(labels) + " classes for " + to_string(count) + " probabilities");
  };
  if (node.output_dtype() == kString) {
    const ir::CheckedList<std::string> classes = node.texts("classes");
    check(classes.size());
    return build::MovedTexts(node, classes).texts_at(place);
  }
  std::vector<int64_t> classes;
  for (const Value* value : node.listed("classes"))
    if (const auto* elements = std::get_if<Elements>(&value->data))
      classes.insert(classes.end(), elements->ints.begin(), elements->ints.end());
  check(classes.size());
  return c.cast(c.gather(node.int64_constant(classes), place, 0), node.output_dtype());
}

}  // namespace

// The label of the largest probability; in place of the dictionary, all of them in order of the labels.
void convert_classify(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("probabilities");
  const ir::SymInt count = num_elements(node.shape(given));
  const V probabilities = c.reshape(given, {count});
  const V label = label_at(node, c.arg_max(probabilities, 0, true), count);
  const ir::SymShape to(node.output_type(0).dims.size(), 1);
  node.set_output(
      0, node.dtype(label) == kString ? build::reshaped_text(node, label, to) : c.reshape(label, to));
  if (node.num_outputs() > 1) node.set_output(1, probabilities);
}

namespace {

/// A scale or zero point, of one number or of one for each place along the axis.
V along_axis(NodeContext& node, V x, const char* name) {
  const V numbers = node.tensor(name);
  if (node.rank(numbers) == 0) return numbers;
  ir::SymShape along(node.shape(x).size(), 1);
  along[static_cast<size_t>(node.axis("axis", node.rank(x)))] = num_elements(node.shape(numbers));
  return Compose(node).reshape(numbers, along);
}

V optional_along_axis(NodeContext& node, V x, const char* name) {
  return node.has(name) ? along_axis(node, x, name) : ir::kAbsent;
}

}  // namespace

void convert_quantize(NodeContext& node) {
  const V x = node.tensor("input");
  node.skip("output_dtype");  // the output says it
  node.skip("axis");
  node.set_output(build::quantize(node, x, along_axis(node, x, "scale"),
                                  optional_along_axis(node, x, "zero_point"), node.output_dtype()));
}

void convert_dequantize(NodeContext& node) {
  const V x = node.tensor("input");
  node.skip("axis");
  const V scale = Compose(node).cast(along_axis(node, x, "scale"), DType::kFloat32);
  node.set_cast(0, build::dequantize(node, x, scale, optional_along_axis(node, x, "zero_point")));
}

}  // namespace tensormill::frontend::coreml
