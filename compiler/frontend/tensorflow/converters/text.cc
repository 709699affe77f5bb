// Operators on strings.
#include "compiler/build/text/text.h"

#include <algorithm>

#include "compiler/frontend/tensorflow/converters/texts.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

V text_operand(NodeContext& node, size_t index) {
  const V x = node.input(index);
  if (!build::is_text(node, x)) node.invalid("operand " + std::to_string(index) + " holds no strings");
  return x;
}

std::string checked_text(const NodeContext& node, const char* what, std::string text) {
  if (!is_utf8(text)) node.unsupported(what, "bytes that are no UTF-8 are not implemented");
  return text;
}

namespace {

/// Attribute `name`, or in the older form operand `operand`.
std::string text_of(NodeContext& node, const char* name, size_t operand) {
  const bool is_attribute = node.op().starts_with("Static");
  return checked_text(node, name, is_attribute ? node.text(name) : node.known_text(operand, name));
}

bool counts_letters(NodeContext& node) {
  const std::string unit = node.text("unit", "BYTE");
  if (unit != "BYTE" && unit != "UTF8_CHAR") node.invalid("unit is \"" + unit + "\"");
  return unit == "UTF8_CHAR";
}

}  // namespace

void convert_text_change(NodeContext& node) {
  std::string how = "strip";
  if (node.op() != "StringStrip") {
    const std::string encoding = node.text("encoding", "");
    if (!encoding.empty() && encoding != "utf-8")
      node.unsupported("encoding", "\"" + encoding + "\" is not implemented");
    how = std::string(encoding.empty() ? "ascii_" : "") + (node.op() == "StringLower" ? "lower" : "upper");
  }
  node.set_output(0, node.add("change_text", {text_operand(node, 0)}, {{"how", how}}));
}

void convert_text_replace(NodeContext& node) {
  const std::string pattern = text_of(node, "pattern", 1), rewrite = text_of(node, "rewrite", 2);
  const bool all = node.flag("replace_global", true);
  const ir::Attrs attrs{{"pattern", pattern}, {"rewrite", rewrite}, {"all", int64_t{all ? 1 : 0}}};
  node.set_output(0, node.add("replace_text", {text_operand(node, 0)}, attrs));
}

void convert_text_match(NodeContext& node) {
  const std::string pattern = text_of(node, "pattern", 1);
  node.set_output(0, node.add("match_text", {text_operand(node, 0)}, {{"pattern", pattern}}));
}

void convert_text_length(NodeContext& node) {
  const int64_t letters = counts_letters(node) ? 1 : 0;
  const V length = node.add("text_length", {text_operand(node, 0)}, {{"letters", letters}});
  node.set_output(0, Compose(node).cast(length, DType::kInt32));
}

// Operands: strings, where each part begins, how long it is: one number for all strings, or one a string.
void convert_text_part(NodeContext& node) {
  Compose c(node);
  const V first = c.cast(node.input(1), DType::kInt64), count = c.cast(node.input(2), DType::kInt64);
  const V x = text_operand(node, 0);
  if (!ir::demand_equal(c.shape(first), c.shape(count)))
    node.invalid("positions of shape " + to_string(c.shape(first)) + ", lengths of " +
                 to_string(c.shape(count)));
  const ir::SymShape shape = broadcast_shapes(build::model_shape(node, x), c.shape(first));
  const V texts = build::expanded_text(node, x, shape);
  const int64_t letters = counts_letters(node) ? 1 : 0;
  node.set_output(0, node.add("part_of_text", {texts, c.expand(first, shape), c.expand(count, shape)},
                              {{"letters", letters}}));
}

void convert_text_hash(NodeContext& node) {
  const V x = text_operand(node, 0);
  const int64_t buckets = node.integer("num_buckets");
  if (buckets < 1) node.invalid("num_buckets is " + std::to_string(buckets));
  if (node.op() == "StringToHashBucket")
    return node.set_output(
        0, node.add("hash_text", {x}, {{"buckets", buckets}, {"how", std::string("murmur")}}));
  std::vector<int64_t> key;
  if (node.op() == "StringToHashBucketStrong") {
    key = node.ints("key");
    if (key.size() != 2) node.invalid("key has " + std::to_string(key.size()) + " numbers");
  }
  node.set_output(0, build::hashed_text(node, x, buckets, key));
}

void convert_text_number(NodeContext& node) {
  const DType to = node.dtype_attr("out_type", DataType::kFloat);
  node.set_output(0, build::numbers_of_text(node, text_operand(node, 0), to));
}

// Integers alone: real numbers would be as C's printf writes them.
void convert_number_text(NodeContext& node) {
  const V x = node.input(0);
  const bool has_form = node.integer("width", -1) != -1 || !node.text("fill", "").empty();
  if (has_form) node.unsupported("width", "a form of numbers is not implemented");
  if (is_float(node.dtype(x)) || node.dtype(x) == DType::kBool || build::is_text(node, x))
    node.unsupported("operand 0", "other numbers than integers are not implemented");
  node.set_output(0, build::text_of_numbers(node, x));
}

void convert_text_join(NodeContext& node) {
  const std::string separator = checked_text(node, "separator", node.text("separator", ""));
  if (node.num_inputs() == 0) node.invalid("it has no operands");
  V joined = text_operand(node, 0);
  const auto append = [&](V text) {
    const auto [a, b] = build::broadcast_texts(node, joined, text);
    joined = node.add("join_text", {a, b});
  };
  for (size_t i = 1; i < node.num_inputs(); ++i) {
    if (!separator.empty()) append(build::text_constant(node, {}, {separator}));
    append(text_operand(node, i));
  }
  node.set_item(0, {joined, {}});
}

// Strings [n], what stands between their parts -> where the parts are [m,2], the parts [m], rows and columns.
void convert_text_split(NodeContext& node) {
  Compose c(node);
  const V x = text_operand(node, 0);
  const ir::SymShape shape = build::model_shape(node, x);
  if (shape.size() != 1) node.invalid("strings of shape " + to_string(shape) + ", expected a row");
  std::string delimiter = checked_text(node, "operand 1", node.known_text(1, "operand 1")), space;
  const bool is_old = node.op() == "StringSplit";
  if (is_old && delimiter.empty()) node.unsupported("delimiter", "each byte as a part is not implemented");
  // Each byte of it is one, and parts of letters are no strings.
  if (is_old && code_points(delimiter).size() != delimiter.size())
    node.unsupported("delimiter", "letters of several bytes are not implemented");
  if (is_old && !node.flag("skip_empty", true))
    node.unsupported("skip_empty", "parts of nothing are not implemented");
  if (is_old) std::swap(delimiter, space);
  const int64_t limit = is_old ? -1 : node.integer("maxsplit", -1);
  const build::TextParts split = build::split_texts(node, x, delimiter, limit, space);
  const ir::SymShape table{split.rows, split.most};
  const ir::SymInt places = split.rows * split.most;
  const V column = c.expand(c.positions(split.most, 1, 2), table),
          row = c.expand(c.positions(split.rows, 0, 2), table);
  const auto found = std::make_shared<const PaddedRows>(
      PaddedRows{split.counts, c.reshape(split.is_there, {places}), split.rows, split.most});
  const V indices = c.concat({c.reshape(row, {places, 1}), c.reshape(column, {places, 1})}, 1);
  const V parts = build::reshaped_text(node, split.parts, {places});
  node.import_state().padded.emplace(indices, found);
  node.import_state().padded.emplace(parts, found);
  node.set_output(0, indices);
  node.set_output(1, parts);
  const V longest = c.reduce("reduce_max", c.concat({split.counts, c.ints({0}, {1})}, 0), {0}, true);
  node.set_output(2, c.concat({c.dims({split.rows}, {1}), longest}, 0));
}

}  // namespace tensormill::frontend::tensorflow
