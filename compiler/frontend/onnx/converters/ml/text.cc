// Operators on strings: what their elements become, and where they move.
#include "compiler/frontend/onnx/converters/ml/text.h"

#include "compiler/build/compose.h"
#include "compiler/build/text/text_operands.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_axes.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/pattern.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Whether the operand of an operator that moves elements holds some, and no positions.
bool holds_elements(const std::string& op, size_t operand) {
  if (op == "Concat") return true;
  if (op == "Where") return operand > 0;
  if (op == "OneHot") return operand == 2;
  if (op == "TensorScatter") return operand < 2;
  return operand == 0 || (operand == 2 && (op == "Pad" || op.starts_with("Scatter")));
}

/// The operands, positions of their strings in place of those that hold any.
std::vector<V> positions_of_operands(NodeContext& context, build::MovedTexts& texts) {
  std::vector<V> operands;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const V x = context.optional_input(i);
    operands.push_back(x);
    if (x == ir::kAbsent || !is_text(context, x)) continue;
    if (!holds_elements(context.node().op_type, i))
      context.invalid("operand " + std::to_string(i) + " holds strings");
    operands.back() = texts.positions_of(x);
  }
  return operands;
}

/// What the operator does to the positions of strings is done to the strings.
void move_texts(NodeContext& context, build::MovedTexts texts) {
  const std::vector<V> moved = context.results_of_row(positions_of_operands(context, texts));
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] != ir::kAbsent) context.set_output(i, texts.texts_at(moved[i]));
  }
}

}  // namespace

int64_t shown_rank(const NodeContext& context, V value) {
  return context.rank(value) - (is_text(context, value) ? 1 : 0);
}

ir::CheckedList<std::string> text_values(const NodeContext& context, const char* name) {
  const AttributeProto* found = context.node().find(name);
  if (found == nullptr) return {};
  return {found->strings.begin(), found->strings.end()};
}

void convert_text_moves(NodeContext& context) { move_texts(context, build::MovedTexts(context)); }

// Where numbers would be 0, strings are empty.
void convert_text_fills(NodeContext& context) { move_texts(context, build::MovedTexts(context, {""})); }

// Of strings there are none between two.
void convert_text_samples(NodeContext& context) {
  const std::string mode =
      context.string_attr("mode", context.node().op_type == "Resize" ? "nearest" : "linear");
  if (mode != "nearest") context.invalid("mode is \"" + mode + "\", and strings have no weighted sums");
  convert_text_fills(context);
}

// Positions stay as they are: the strings in the shape that the positions get, where that is known.
void convert_text_reshape(NodeContext& context) {
  const V x = context.input(0);
  build::MovedTexts texts(context);
  const V moved = context.results_of_row(positions_of_operands(context, texts)).at(0);
  const bool is_run_shape = context.has_input(1) && !is_static(context, 1);
  context.set_output(
      0, is_run_shape ? texts.texts_at(moved) : build::reshaped_text(context, x, context.type(moved).shape));
}

void convert_text_shape(NodeContext& context) {
  context.require_fixed_shape(0);
  build::MovedTexts texts(context);
  context.set_output(0, context.results_of_row(positions_of_operands(context, texts)).at(0));
}

void convert_text_equal(NodeContext& context) {
  context.set_output(0, build::equal_texts(context, context.input(0), context.input(1)));
}

void convert_regex_full_match(NodeContext& context) {
  context.set_output(
      0, context.add("match_text", {context.input(0)}, {{"pattern", context.string_attr("pattern", "")}}));
}

void convert_string_concat(NodeContext& context) {
  const auto [a, b] = build::broadcast_texts(context, context.input(0), context.input(1));
  context.set_output(0, context.add("join_text", {a, b}));
}

void convert_string_split(NodeContext& context) {
  const V x = context.input(0);
  const ir::Attrs attrs{{"delimiter", context.string_attr("delimiter", "")},
                        {"maxsplit", context.int_attr("maxsplit", -1)},
                        {"axis", context.rank(x) - 1}};
  const std::vector<V> results = context.add_many("split_text", {x}, attrs);
  context.set_output(0, results[0]);
  context.set_output(1, results[1]);
}

void convert_string_normalizer(NodeContext& context) {
  const V x = context.input(0);
  const std::string change = context.string_attr("case_change_action", "NONE");
  if (change != "NONE" && change != "LOWER" && change != "UPPER")
    context.invalid("case_change_action is \"" + change + "\"");
  const ir::CheckedList<std::string> stops = text_values(context, "stopwords");
  ir::Attrs attrs{{"case", int64_t{change == "NONE"    ? 0
                                   : change == "LOWER" ? 1
                                                       : 2}},
                  {"case_sensitive", context.int_attr("is_case_sensitive", 0)},
                  {"axis", context.rank(x) - 2}};
  // Without stop words all strings stay.
  if (stops.empty() && context.type(x).shape[0] > 0) attrs.set("keeps_all", int64_t{1});
  const V words = text_constant(context, stops);
  context.set_output(0, context.add_many("normalize_text", {x, words}, attrs)[0]);
}

// com.microsoft: the tokens of each string along a new last axis.
void convert_tokenizer(NodeContext& context) {
  const V x = context.input(0);
  ir::CheckedList<std::string> patterns = text_values(context, "separators");
  std::string form = "separators";
  if (patterns.empty()) {
    form = "expression";
    patterns = {context.string_attr("tokenexp", "")};
    if (patterns[0].empty()) context.invalid("has neither separators nor an expression");
  } else if (patterns == std::vector<std::string>{""}) {
    form = "letters";
    patterns.clear();
  }
  const int64_t least = context.required_int("mincharnum");
  if (least < 1) context.invalid("mincharnum is " + std::to_string(least));
  // A pattern that is none is wrong in the model, not in a run.
  for (const std::string& pattern : patterns) host_ops::Pattern{pattern};
  const ir::Attrs attrs{{"form", form},
                        {"pad", context.string_attr("pad_value", "")},
                        {"least", least},
                        {"mark", context.required_int("mark")},
                        {"axis", context.rank(x) - 1}};
  const V known =
      patterns.empty() ? context.constant(Tensor::zeros(kString, {0, 1})) : text_constant(context, patterns);
  context.set_output(0, context.add_many("tokenize_text", {x, known}, attrs)[0]);
}

}  // namespace tensormill::frontend::onnx
