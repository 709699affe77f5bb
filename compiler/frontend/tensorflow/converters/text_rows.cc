// Rows of strings as strings, and strings as rows of code points.
#include <algorithm>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/text/grams.h"
#include "compiler/frontend/tensorflow/converters/ragged_rows.h"
#include "compiler/frontend/tensorflow/converters/texts.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Letters of a string that a run makes of code points: as many as an input's string has bytes.
constexpr int64_t kMostJoined = kTextWidth;

V nothing_below_0(Compose& c, V x) { return c.binary("max", x, c.number(x, 0)); }

/// The n-grams of each row: how many strings each has, how many of them are padding in front of the row's,
/// and which of the n-grams of its length it is, i64 [grams].
struct Grams {
  RaggedRows rows;
  V row = ir::kAbsent;  ///< i64 [grams]
  V lengths = ir::kAbsent, pads = ir::kAbsent, index = ir::kAbsent;
};

struct GramForm {
  std::vector<int64_t> lengths;
  int64_t pad = 0;
  bool keeps_short = false;

  int64_t pad_of(int64_t length) const { return pad < 0 ? length - 1 : std::min(pad, length - 1); }
};

Grams grams_of(NodeContext& node, const RaggedRows& rows, const GramForm& form) {
  Compose c(node);
  std::vector<V> counts;
  V all = c.filled(DType::kInt64, {rows.rows}, 0);
  for (const int64_t length : form.lengths) {
    const auto more = static_cast<double>(2 * form.pad_of(length) - length + 1);
    counts.push_back(nothing_below_0(c, c.plus(rows.lengths, more)));
    all = c.add(all, counts.back());
  }
  if (form.keeps_short && form.pad >= 0) {
    // A row of strings that makes no n-gram is one, with its padding.
    const V is_short = c.binary("and", c.binary("equal", all, c.number(all, 0)),
                                c.binary("greater", rows.lengths, c.number(all, 0)));
    all = c.add(all, c.cast(is_short, DType::kInt64));
  }
  Grams grams{run_time_rows(node, all)};
  grams.row = row_ids(node, grams.rows);
  std::vector<int64_t> lengths = form.lengths, pads;
  for (V& count : counts) count = c.gather(count, grams.row, 0);
  for (const int64_t length : lengths) pads.push_back(form.pad_of(length));
  const build::PlacedGrams placed =
      build::placed_grams(node, places_in_rows(node, grams.rows, grams.row), counts);
  // What has none of the lengths is as long as its row.
  lengths.push_back(0);
  pads.push_back(form.pad);
  const auto of_which = [&](const std::vector<int64_t>& numbers) {
    return c.gather(c.ints(numbers, {static_cast<int64_t>(numbers.size())}), placed.which, 0);
  };
  const V whole = c.plus(c.gather(rows.lengths, grams.row, 0), static_cast<double>(2 * form.pad));
  const V known = of_which(lengths);
  grams.lengths = c.where(c.binary("equal", known, c.number(known, 0)), whole, known);
  grams.pads = of_which(pads);
  grams.index = placed.index;
  return grams;
}

}  // namespace

// Operands: strings, where rows of them end; a row becomes strings of so many of its neighbours each.
void convert_text_ngrams(NodeContext& node) {
  Compose c(node);
  const V x = text_operand(node, 0);
  const ir::SymShape shape = build::model_shape(node, x);
  if (shape.size() != 1) node.invalid("strings of shape " + to_string(shape) + ", expected a row");
  GramForm form{node.ints("ngram_widths"), node.integer("pad_width"), node.flag("preserve_short_sequences")};
  constexpr int64_t kMostWidth = std::numeric_limits<int32_t>::max();
  if (form.pad > kMostWidth) node.invalid("pad_width is " + std::to_string(form.pad));
  int64_t most = 0;
  for (const int64_t length : form.lengths) {
    if (length < 1 || length > kMostWidth)
      node.invalid("ngram_widths has a number of " + std::to_string(length));
    most = std::max(most, length);
  }
  if (most == 0) node.invalid("ngram_widths is empty");
  const auto text = [&](const char* name) { return checked_text(node, name, node.text(name)); };
  const RaggedRows rows = rows_of_splits(node, node.input(1), shape[0]);
  const Grams grams = grams_of(node, rows, form);
  constexpr int64_t kLeft = 0, kRight = 1, kFirst = 2;
  build::MovedTexts texts(node, {text("left_pad"), text("right_pad")});
  const V pool = c.concat({c.ints({kLeft, kRight}, {2}), texts.positions_of(x)}, 0);
  // Of each n-gram and each place in it, the place in the row, and there the string.
  const ir::SymInt count = grams.rows.total;
  const auto column = [&](V values) { return c.reshape(c.expand(values, {count}), {count, 1}); };
  const V place = c.add(column(c.sub(grams.index, grams.pads)), c.positions(most, 1, 2));
  const V length = column(c.gather(rows.lengths, grams.row, 0)),
          begin = column(c.gather(rows.begins, grams.row, 0));
  const V own = c.plus(c.add(begin, place), kFirst);
  const V padded =
      c.where(c.binary("less", place, c.number(place, 0)), c.number(own, kLeft), c.number(own, kRight));
  const V is_own =
      c.binary("and", c.binary("greater_equal", place, c.number(place, 0)), c.binary("less", place, length));
  const V table = texts.texts_at(c.gather(pool, c.where(is_own, own, padded), 0));
  node.set_output(0, build::joined_rows(node, table, grams.lengths, text("separator")));
  node.set_output(1, splits_of(node, grams.rows, node.dtype_attr("Tsplits", DataType::kInt64)));
}

// Operands: strings, the axes along which they are joined, one after the other.
void convert_text_reduce_join(NodeContext& node) {
  Compose c(node);
  const V x = text_operand(node, 0);
  const ir::SymShape shape = build::model_shape(node, x);
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> axes;
  for (const ir::SymInt& axis : node.known_ints(1, "reduction_indices"))
    axes.push_back(node.normalize_axis(axis, rank));
  const std::string separator = checked_text(node, "separator", node.text("separator", ""));
  const bool keeps = node.flag("keep_dims", false);
  std::vector<int64_t> order;
  ir::SymShape to;
  ir::SymInt rows = 1, columns = 1;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const ir::SymInt& extent = shape[static_cast<size_t>(axis)];
    const bool is_joined = std::find(axes.begin(), axes.end(), axis) != axes.end();
    (is_joined ? columns : rows) = (is_joined ? columns : rows) * extent;
    if (!is_joined) order.push_back(axis);
    if (!is_joined || keeps) to.push_back(is_joined ? ir::SymInt(1) : extent);
  }
  if (!columns.is_constant())
    node.unsupported("reduction_indices", "as many strings as a free dim or a run says are not joined");
  order.insert(order.end(), axes.rbegin(), axes.rend());
  if (order.size() != shape.size()) node.invalid("reduction_indices names an axis twice");
  build::MovedTexts texts(node);
  const V places = c.transpose(texts.positions_of(x), order);
  const V table = texts.texts_at(c.reshape(places, {rows, columns}));
  const V counts = c.filled(DType::kInt64, {rows}, static_cast<double>(columns.hint()));
  node.set_output(0, build::reshaped_text(node, build::joined_rows(node, table, counts, separator), to));
}

namespace {

void check_encoding(NodeContext& node, const char* name) {
  const std::string encoding = node.text(name);
  if (encoding != "UTF-8") node.unsupported(name, "\"" + encoding + "\" is not implemented");
}

/// Code points below 32 stay.
void check_decoding(NodeContext& node) {
  check_encoding(node, "input_encoding");
  if (node.flag("replace_control_characters", false))
    node.unsupported("replace_control_characters", "it is not implemented");
}

}  // namespace

// Where the code points of each string end, these, and at which byte of the string each begins.
void convert_code_points(NodeContext& node) {
  Compose c(node);
  check_decoding(node);
  const V given = text_operand(node, 0);
  const ir::SymInt count = num_elements(build::model_shape(node, given));
  const std::vector<V> made = node.add_many("points_of_text", {build::reshaped_text(node, given, {count})});
  const RaggedRows rows = run_time_rows(node, made[1]);
  const V row = row_ids(node, rows), width = c.dims({c.shape(made[0])[1]}, {});
  const V places = c.add(c.mul(row, width), places_in_rows(node, rows, row));
  const auto there = [&](V table) {
    return c.gather(c.reshape(table, {num_elements(c.shape(table))}), places, 0);
  };
  node.set_output(0, splits_of(node, rows, node.dtype_attr("Tsplits", DataType::kInt64)));
  node.set_output(1, c.cast(there(made[0]), DType::kInt32));
  if (node.op() == "UnicodeDecodeWithOffsets") node.set_output(2, there(made[2]));
}

namespace {

/// Code points of letters, which numbers that are none become as the node says.
V letters_alone(NodeContext& node, V points) {
  Compose c(node);
  const auto between = [&](int64_t low, int64_t high) {
    return c.binary("and", c.binary("greater_equal", points, c.ints({low}, {})),
                    c.binary("less_equal", points, c.ints({high}, {})));
  };
  const V is_letter = c.binary("and", between(0, 0x10ffff), c.unary("not", between(0xd800, 0xdfff)));
  const std::string errors = node.text("errors", "replace");
  const int64_t otherwise = node.integer("replacement_char", 0xfffd);
  if (errors == "strict") {
    points = build::required(node, points, is_letter, "a number is no code point");
  } else if (errors == "replace") {
    if (otherwise < 1 || otherwise > 0x10ffff || (otherwise >= 0xd800 && otherwise <= 0xdfff))
      node.invalid("replacement_char is " + std::to_string(otherwise));
    points = c.where(is_letter, points, c.ints({otherwise}, {}));
  } else {
    node.unsupported("errors", "\"" + errors + "\" is not implemented");
  }
  const V none = c.number(points, 0);
  return build::required(node, points, c.unary("not", c.binary("equal", points, none)),
                         "strings with zero bytes are not implemented");
}

}  // namespace

// Operands: code points, where the rows of them end that are strings.
void convert_text_of_points(NodeContext& node) {
  Compose c(node);
  check_encoding(node, "output_encoding");
  const V points = letters_alone(node, c.cast(node.input(0), DType::kInt64));
  const ir::SymShape shape = c.shape(points);
  if (shape.size() != 1) node.invalid("code points of shape " + to_string(shape));
  RaggedRows rows = rows_of_splits(node, node.input(1), shape[0]);
  const V longest = longest_of(node, rows);
  const ir::SymInt most =
      shape[0].is_constant() ? std::clamp<int64_t>(shape[0].hint(), 1, kMostJoined) : kMostJoined;
  rows.lengths = build::required(
      node, rows.lengths, c.binary("less_equal", longest, c.dims({most}, {1})),
      "a string of {} letters is made, of more than " + std::to_string(kMostJoined), {longest});
  const V place = c.positions(most, 1, 2);
  const V at = c.add(c.reshape(rows.begins, {rows.rows, 1}), place);
  // A place behind the last one for what is not there.
  const V all = c.concat({points, c.ints({0}, {1})}, 0);
  const V within = c.binary("min", at, c.dims({rows.total}, {}));
  const V letters = node.add("letters_of_points", {c.gather(all, within, 0)});
  node.set_output(0, build::joined_rows(node, letters, rows.lengths, ""));
}

// Of UTF-8 the same.
void convert_transcode(NodeContext& node) {
  check_decoding(node);
  check_encoding(node, "output_encoding");
  node.set_output(0, text_operand(node, 0));
}

}  // namespace tensormill::frontend::tensorflow
