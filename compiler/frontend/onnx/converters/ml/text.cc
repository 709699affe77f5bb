// Operators on strings: what their elements become, and where they move.
#include "compiler/frontend/onnx/converters/ml/text.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/tensors/run_axes.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/pattern.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Positions that an operator moves in place of strings stand in the graph.
constexpr int64_t kMaxPositions = int64_t{1} << 20;

ir::SymShape strings_shape(const NodeContext& context, V x) {
  return shown_shape(kString, context.type(x).shape);
}

/// first, first + 1 ... in the shape.
V positions(NodeContext& context, ir::SymShape shape, int64_t first) {
  const ir::SymInt count = num_elements(shape);
  if (count > kMaxPositions)
    context.unsupported("operand",
                        "more than " + std::to_string(kMaxPositions) + " strings are not implemented");
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  Compose c(context);
  return c.ints(values, std::move(shape));
}

/// The strings as rows of one table, all of one width.
V pool_of(NodeContext& context, const std::vector<V>& texts) {
  Compose c(context);
  std::vector<V> parts;
  for (const V x : of_one_width(context, texts))
    parts.push_back(c.reshape(x, {num_elements(strings_shape(context, x)), context.type(x).shape.back()}));
  return parts.size() == 1 ? parts[0] : c.concat(parts, 0);
}

V gathered(NodeContext& context, V pool, V at) {
  Compose c(context);
  if (num_elements(c.shape(at)) != 0) return c.gather(pool, at, 0);
  ir::SymShape empty = c.shape(at);
  empty.push_back(c.shape(pool).back());
  return context.constant(Tensor(kString, std::move(empty)));
}

V expanded(NodeContext& context, V x, const ir::SymShape& shape) {
  const ir::SymShape own = strings_shape(context, x);
  if (own == shape) return x;
  return gathered(context, pool_of(context, {x}), Compose(context).expand(positions(context, own, 0), shape));
}

/// Both strings in the shape that they broadcast to.
std::pair<V, V> broadcast(NodeContext& context) {
  const V a = context.input(0), b = context.input(1);
  const ir::SymShape shape = broadcast_shapes(strings_shape(context, a), strings_shape(context, b));
  return {expanded(context, a, shape), expanded(context, b, shape)};
}

/// Whether the operand of an operator that moves elements holds some, and no positions.
bool holds_elements(const std::string& op, size_t operand) {
  if (op == "Concat") return true;
  if (op == "Where") return operand > 0;
  if (op == "OneHot") return operand == 2;
  if (op == "TensorScatter") return operand < 2;
  return operand == 0 || (operand == 2 && (op == "Pad" || op.starts_with("Scatter")));
}

/// The operands, positions of their strings in place of those that hold any; `pool` gets the strings'
/// operands. The first string is at position `first`.
std::vector<V> positions_of_operands(NodeContext& context, std::vector<V>& pool, int64_t first = 0) {
  std::vector<V> operands;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    const V x = context.optional_input(i);
    operands.push_back(x);
    if (x == ir::kAbsent || !is_text(context, x)) continue;
    if (!holds_elements(context.node().op_type, i))
      context.invalid("operand " + std::to_string(i) + " holds strings");
    const ir::SymShape shape = strings_shape(context, x);
    operands.back() = positions(context, shape, first);
    first += num_elements(shape);
    pool.push_back(x);
  }
  return operands;
}

}  // namespace

bool is_text(const NodeContext& context, V value) { return context.type(value).dtype == kString; }

int64_t shown_rank(const NodeContext& context, V value) {
  return context.rank(value) - (is_text(context, value) ? 1 : 0);
}

std::vector<V> of_one_width(NodeContext& context, std::vector<V> values) {
  int64_t width = 1;
  for (const V x : values)
    width = is_text(context, x) ? std::max<int64_t>(width, context.type(x).shape.back()) : width;
  for (V& x : values) {
    const ir::SymShape shape = context.type(x).shape;
    if (!is_text(context, x) || shape.back() == width) continue;
    std::vector<int64_t> pads(2 * shape.size(), 0);
    pads.back() = width - shape.back();
    x = context.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  return values;
}

std::vector<std::string> text_values(const NodeContext& context, const char* name) {
  const AttributeProto* found = context.node().find(name);
  if (found == nullptr) return {};
  return {found->strings.begin(), found->strings.end()};
}

V text_constant(NodeContext& context, const std::vector<std::string>& texts) {
  return context.constant(text_tensor({static_cast<int64_t>(texts.size())}, texts));
}

V text_of_numbers(NodeContext& context, V x) {
  if (is_text(context, x)) return x;
  const DType dtype = context.type(x).dtype;
  if (is_narrow(dtype)) x = Compose(context).cast(x, is_float(dtype) ? DType::kFloat32 : DType::kInt32);
  return context.add("text_from_numbers", {x});
}

V numbers_of_text(NodeContext& context, V x, DType to) {
  const DType read = !is_narrow(to) ? to : is_float(to) ? DType::kFloat32 : DType::kInt32;
  const V numbers = context.add("numbers_from_text", {x}, {{"to", std::string(dtype_name(read))}});
  return Compose(context).cast(numbers, to);
}

SortedTexts sorted_texts(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> order;
  for (const std::string& text : texts) order.emplace(text, 0);
  SortedTexts sorted;
  for (auto& [text, place] : order) {
    place = static_cast<int64_t>(sorted.keys.size());
    sorted.keys.push_back(text);
  }
  for (const std::string& text : texts) sorted.place.push_back(order.at(text));
  return sorted;
}

V found_text(NodeContext& context, V x, const SortedTexts& texts) {
  return context.add("find_text", {x, text_constant(context, texts.keys)});
}

namespace {

/// What the operator does to the positions of strings is done to the strings; `texts` are at the first ones.
void move_texts(NodeContext& context, std::vector<V> texts) {
  const std::vector<V> operands = positions_of_operands(context, texts, static_cast<int64_t>(texts.size()));
  const V pool = pool_of(context, texts);
  const std::vector<V> moved = context.results_of_row(operands);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (moved[i] != ir::kAbsent) context.set_output(i, gathered(context, pool, moved[i]));
  }
}

}  // namespace

void convert_text_moves(NodeContext& context) { move_texts(context, {}); }

// Where numbers would be 0, strings are empty.
void convert_text_fills(NodeContext& context) { move_texts(context, {text_constant(context, {""})}); }

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
  std::vector<V> texts;
  const V moved = context.results_of_row(positions_of_operands(context, texts)).at(0);
  if (context.has_input(1) && !is_told(context, 1))
    return context.set_output(0, gathered(context, pool_of(context, texts), moved));
  ir::SymShape shape = context.type(moved).shape;
  shape.push_back(context.type(x).shape.back());
  context.set_output(0, context.reshape(x, std::move(shape)));
}

void convert_text_shape(NodeContext& context) {
  context.require_fixed_shape(0);
  std::vector<V> texts;
  context.set_output(0, context.results_of_row(positions_of_operands(context, texts)).at(0));
}

void convert_text_equal(NodeContext& context) {
  if (!is_text(context, context.input(0)) || !is_text(context, context.input(1)))
    context.invalid("strings are compared with numbers");
  const auto [a, b] = broadcast(context);
  context.set_output(0, context.add("equal_text", {a, b}));
}

void convert_regex_full_match(NodeContext& context) {
  context.set_output(
      0, context.add("match_text", {context.input(0)}, {{"pattern", context.string_attr("pattern", "")}}));
}

void convert_string_concat(NodeContext& context) {
  const auto [a, b] = broadcast(context);
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
  const std::vector<std::string> stops = text_values(context, "stopwords");
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
  std::vector<std::string> patterns = text_values(context, "separators");
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
