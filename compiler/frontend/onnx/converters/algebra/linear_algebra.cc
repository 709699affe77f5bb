// Triangles and determinants of matrices, and counts of n-grams.
#include <algorithm>
#include <set>

#include "compiler/build/compose.h"
#include "compiler/build/numbers/matrices.h"
#include "compiler/frontend/onnx/converters/ml/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The n-grams of one length: their elements, and their positions in the pool.
struct Grams {
  int64_t length;
  std::vector<int64_t> elements;
  std::vector<size_t> positions;
};

/// Matches of each n-gram that begins at one of the first `windows` elements of each row of x [rows, more],
/// its elements `distance` apart: [rows, grams].
V count_grams(Compose& c, V x, const ir::SymInt& windows, const Grams& grams, int64_t distance) {
  const ir::SymInt rows = c.shape(x)[0], count = static_cast<int64_t>(grams.positions.size());
  ir::Ints places = c.count_to(grams.length);
  for (int64_t& place : places) place *= distance;
  const V from = c.add(c.iota(windows, {windows, 1}), c.ints(places, {1, grams.length}));
  const V seen = c.reshape(c.gather(x, from, 1), {rows, windows, 1, grams.length});
  const V equal =
      c.cast(c.binary("equal", seen, c.ints(grams.elements, {count, grams.length})), DType::kFloat32);
  return c.reduce("reduce_sum", c.reduce("reduce_min", equal, {3}, false), {1}, false);
}

std::vector<Grams> read_grams(const NodeContext& context, const std::vector<int64_t>& pool) {
  const ir::Ints starts = context.required_ints("ngram_counts");
  const int64_t shortest = context.required_int("min_gram_length"),
                longest = context.required_int("max_gram_length");
  std::vector<Grams> result;
  size_t position = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    Grams grams{static_cast<int64_t>(i) + 1, {}, {}};
    if (starts[i] < 0 || end < starts[i] || end > static_cast<int64_t>(pool.size()) ||
        (end - starts[i]) % grams.length != 0)
      context.invalid("ngram_counts do not fit a pool of " + std::to_string(pool.size()));
    grams.elements.assign(pool.begin() + starts[i], pool.begin() + end);
    for (int64_t at = starts[i]; at < end; at += grams.length) grams.positions.push_back(position++);
    if (!grams.positions.empty() && grams.length >= shortest && grams.length <= longest)
      result.push_back(std::move(grams));
  }
  return result;
}

/// An integer that stands in no n-gram.
int64_t element_of_none(const std::vector<Grams>& all) {
  std::set<int64_t> elements;
  for (const Grams& grams : all) elements.insert(grams.elements.begin(), grams.elements.end());
  int64_t none = -1;
  while (elements.count(none) != 0) --none;
  return none;
}

/// Rows [rows, extent + reach] of the elements, an element of no n-gram behind each, so that all n-grams
/// begin at any element, however far they reach.
V padded_rows(NodeContext& context, V elements, const std::vector<Grams>& all, int64_t reach) {
  Compose c(context);
  const ir::SymShape shape = c.shape(elements);
  const ir::SymInt rows = shape.size() == 2 ? shape[0] : ir::SymInt(1);
  const V row = c.reshape(c.cast(elements, DType::kInt64), {rows, shape.back()});
  if (reach == 0) return row;
  return c.concat({row, c.expand(c.dims({element_of_none(all)}, {1, 1}), {rows, reach})}, 1);
}

/// The columns that ngram_indexes gives.
int64_t column_count(const NodeContext& context, const std::vector<int64_t>& columns) {
  int64_t width = 0;
  for (int64_t column : columns) {
    if (column < 0 || column > (1 << 20)) context.invalid("ngram_indexes has " + std::to_string(column));
    width = std::max(width, column + 1);
  }
  return width;
}

/// A matrix [n-grams, width] that takes counts to their columns, with the n-grams' weights where `weighs`.
V column_matrix(NodeContext& context, const Grams& grams, const std::vector<int64_t>& columns, int64_t width,
                bool weighs) {
  const AttributeProto* weights = context.node().find("weights");
  const int64_t count = static_cast<int64_t>(grams.positions.size());
  std::vector<double> to_columns(static_cast<size_t>(context.product(count, width)), 0);
  for (size_t i = 0; i < grams.positions.size(); ++i) {
    const size_t position = grams.positions[i];
    if (position >= columns.size())
      context.invalid("ngram_indexes has " + std::to_string(columns.size()) + " values");
    const bool has_weight = weighs && weights != nullptr && position < weights->floats.size();
    to_columns[i * static_cast<size_t>(width) + static_cast<size_t>(columns[position])] =
        has_weight ? static_cast<double>(weights->floats[position]) : 1;
  }
  return Compose(context).doubles(DType::kFloat32, to_columns, {count, width});
}

}  // namespace

// Counts of the pool's n-grams, whose elements may stand up to max_skip_count further apart.
void convert_tf_idf_vectorizer(NodeContext& context) {
  Compose c(context);
  const bool is_strings = is_text(context, context.input(0));
  const SortedTexts sorted = sorted_texts(text_values(context, "pool_strings"));
  const V elements = is_strings ? found_text(context, context.input(0), sorted) : context.input(0);
  const ir::Ints columns = context.required_ints("ngram_indexes");
  const std::vector<Grams> all =
      read_grams(context, is_strings ? sorted.place : context.required_ints("pool_int64s"));
  const int64_t skips = context.required_int("max_skip_count");
  const std::string mode = context.string_attr("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") context.invalid("mode is \"" + mode + "\"");
  const ir::SymShape shape = c.shape(elements);
  if (shape.empty() || shape.size() > 2)
    context.invalid("X has shape " + to_string(shape) + ", expected rank 1 or 2");
  context.require_bound_extents(elements, static_cast<int64_t>(shape.size()) - 1);
  const ir::SymInt rows = shape.size() == 2 ? shape[0] : ir::SymInt(1);
  // Distances past a row's end find nothing; the first ones are looked at in short rows too, so that the
  // graph is the same for each extent that may be free.
  constexpr int64_t kFirst = 64;
  const ir::SymInt& extent = shape.back();
  const int64_t most =
      (skips <= kFirst ? std::max<int64_t>(skips, 0) : std::min<int64_t>(skips, max(extent, kFirst))) + 1;
  int64_t reach = 0;
  for (const Grams& grams : all) reach = std::max<int64_t>(reach, context.product(grams.length - 1, most));
  const V x = padded_rows(context, elements, all, reach);
  const int64_t width = column_count(context, columns);
  V sum = c.filled(DType::kFloat32, {rows, width}, 0);
  for (const Grams& grams : all) {
    V counts = ir::kAbsent;
    // Distances make no difference to a single element.
    for (int64_t distance = 1; distance <= (grams.length == 1 ? 1 : most); ++distance) {
      const V part = count_grams(c, x, extent, grams, distance);
      counts = counts == ir::kAbsent ? part : c.add(counts, part);
    }
    if (counts == ir::kAbsent) continue;
    if (mode == "IDF") counts = c.binary("min", counts, c.number(counts, 1));
    sum = c.add(sum, c.matmul(counts, column_matrix(context, grams, columns, width, mode != "TF")));
  }
  context.set_output(0, shape.size() == 1 ? c.reshape(sum, {width}) : sum);
}

void convert_det(NodeContext& context) {
  context.set_output(0, build::determinants(context, context.input(0)));
}

namespace {

/// What is on or above the diagonal that the run or its extents say, or on and below it.
V dynamic_triangle(NodeContext& context, bool upper) {
  Compose c(context);
  const V x = context.input(0), k = context.input(1);
  const ir::SymShape shape = c.shape(x);
  if (shape.size() < 2 || num_elements(c.shape(k)) != 1)
    context.invalid("input has shape " + to_string(shape) + ", k " + to_string(c.shape(k)));
  const ir::SymInt &rows = shape[shape.size() - 2], &columns = shape.back();
  const V right = c.sub(c.iota(columns, {1, columns}), c.iota(rows, {rows, 1}));
  const V diagonal = c.reshape(c.cast(k, DType::kInt64), {1, 1});
  const V inside = c.binary(upper ? "greater_equal" : "less_equal", right, diagonal);
  return c.where(inside, x, c.filled(c.dtype(x), {}, 0));
}

}  // namespace

void convert_trilu(NodeContext& context) {
  const bool is_given = context.has_input(1);
  if (is_given && (!context.is_known(1) || context.known_symbolic(context.input(1), "k").is_symbolic()))
    return context.set_output(0, dynamic_triangle(context, context.int_attr("upper", 1) != 0));
  const int64_t k = is_given ? context.known_scalar(1, "k").element_as_int(0) : 0;
  context.set_output(
      0, context.add("trilu", {context.input(0)}, {{"upper", context.int_attr("upper", 1)}, {"k", k}}));
}

}  // namespace tensormill::frontend::onnx
