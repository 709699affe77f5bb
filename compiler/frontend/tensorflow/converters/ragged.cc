// Rows of different lengths: how many parts strings have, and the parts as a table.
#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/text/text.h"
#include "compiler/frontend/tensorflow/converters/ragged_rows.h"

namespace tensormill::frontend::tensorflow {

namespace {

const PaddedRows* padding_of(NodeContext& node, size_t operand) {
  const auto& padded = node.import_state().padded;
  const auto found = padded.find(node.input(operand));
  return found == padded.end() ? nullptr : found->second.get();
}

/// Whether the operand says of the rows how long they are: where each ends, or of which row each part is.
V fits_rows(NodeContext& node, const PaddedRows& rows, const std::string& form, size_t operand) {
  Compose c(node);
  const V x = c.cast(node.input(operand), DType::kInt64);
  const ir::SymShape shape = c.shape(x);
  if (form == "FIRST_DIM_SIZE") return c.binary("equal", c.reshape(x, {}), c.dims({rows.rows}, {}));
  if (form == "ROW_SPLITS") {
    if (shape.size() != 1 || !ir::demand(ir::Relation::kEqual, shape[0], rows.rows + 1))
      node.unsupported("row_partition_types", "rows that are not those of the parts are not implemented");
    const V lengths = c.sub(c.slice(x, 0, 1, rows.rows), c.slice(x, 0, 0, rows.rows));
    return c.binary("equal", lengths, rows.counts);
  }
  const PaddedRows* own_rows = padding_of(node, operand);
  const bool is_alike =
      own_rows != nullptr && same(own_rows->rows, rows.rows) && same(own_rows->most, rows.most);
  if (form != "VALUE_ROWIDS" || !is_alike)
    node.unsupported("row_partition_types", "rows that are not those of the parts are not implemented");
  const ir::SymShape table{rows.rows, rows.most};
  const V own = c.reshape(c.expand(c.positions(rows.rows, 0, 2), table), {rows.rows * rows.most});
  const V fits = c.binary("or", c.unary("not", rows.is_there), c.binary("equal", x, own));
  return own_rows == &rows ? fits : c.concat({fits, c.binary("equal", own_rows->counts, rows.counts)}, 0);
}

}  // namespace

// Operands: the shape of the table, the parts, what stands where none is, and how long the rows are.
void convert_ragged_to_tensor(NodeContext& node) {
  if (padding_of(node, 1) == nullptr) return convert_rows_to_tensor(node);
  Compose c(node);
  const std::vector<std::string> forms = node.texts("row_partition_types");
  const PaddedRows* rows = padding_of(node, 1);
  if (node.num_inputs() != 3 + forms.size() || build::model_shape(node, node.input(1)).size() != 1)
    node.unsupported("operand 1", "other rows than those of strings' parts are not implemented");
  ir::SymShape shape = node.known_ints(0, "shape");
  if (shape.empty() || node.rank(node.input(0)) == 0) shape = {-1, -1};
  if (shape.size() != 2) node.invalid("shape " + to_string(shape) + " for a table of rows");
  if (!same(shape[0], -1) && !ir::demand(ir::Relation::kEqual, shape[0], rows->rows))
    node.unsupported("shape", "another number of rows is not implemented");
  if (!build::model_shape(node, node.input(2)).empty())
    node.unsupported("default_value", "a row is not implemented");
  V no = c.ints({0}, {});
  for (size_t i = 0; i < forms.size(); ++i)
    no = build::required(node, no, fits_rows(node, *rows, forms[i], 3 + i),
                         "the rows are not those of the strings' parts");
  const V is_there = c.binary("or", rows->is_there, c.cast(no, DType::kBool));
  build::MovedTexts texts(node);
  const bool is_text = build::is_text(node, node.input(1));
  const V values = is_text ? texts.positions_of(node.input(1)) : node.input(1);
  const V otherwise = is_text ? texts.positions_of(node.input(2)) : node.input(2);
  V table = c.reshape(c.where(is_there, values, otherwise), {rows->rows, rows->most});
  if (!same(shape[1], -1)) {
    table = build::of_columns(node, table, shape[1], otherwise);
  } else {
    const V longest = c.reduce("reduce_max", c.concat({rows->counts, c.ints({0}, {1})}, 0), {0}, true);
    table = build::bound_part(node, table, 1, longest);
  }
  node.set_output(0, is_text ? texts.texts_at(table) : table);
}

// How often each number below a size is there, or the sum of the weights of each, in all or in each row; of
// parts' rows, how many parts each has.
void convert_bincount(NodeContext& node) {
  Compose c(node);
  V given = node.input(0), weights = node.input(2);
  const PaddedRows* rows = padding_of(node, 0);
  const bool is_of_all = node.op() == "Bincount";
  if (is_of_all && rows == nullptr) {
    given = c.reshape(given, {num_elements(node.shape(given))});
    weights = c.reshape(weights, {num_elements(node.shape(weights))});
  }
  const bool is_binary = !is_of_all && node.flag("binary_output", false),
             has_weights = !same(num_elements(node.shape(weights)), 0);
  if (node.rank(given) > 2) node.invalid("an input of rank " + std::to_string(node.rank(given)));
  if (has_weights && node.rank(weights) != node.rank(given))
    node.invalid("weights of shape " + to_string(node.shape(weights)) + " for " +
                 to_string(node.shape(given)));
  if (rows != nullptr && (has_weights || is_binary || node.rank(given) != 1))
    node.unsupported("weights", "of parts of strings they are not implemented");
  const DType to = node.dtype(weights);
  const ir::SymInt size =
      rows == nullptr ? build::only_integer(node, node.extents_at(1, "size"), "size") : rows->rows;
  V one = c.ints({1}, {1});
  if (rows != nullptr) {
    const V wanted = c.reshape(c.cast(node.input(1), DType::kInt64), {});
    one = build::required(node, one, c.binary("equal", wanted, c.dims({size}, {})),
                          "the number of rows is not that of the strings");
  }
  one = c.cast(one, to);
  // The tables of rows stand behind each other, each with a place for what is not in it.
  const ir::SymShape shape = node.shape(given);
  const bool is_table = shape.size() == 2;
  const ir::SymInt tables = is_table ? shape[0] : ir::SymInt(1), total = num_elements(shape);
  const V flat = c.reshape(c.cast(given, DType::kInt64), {total});
  V present = c.binary("and", c.binary("greater_equal", flat, c.number(flat, 0)),
                       c.binary("less", flat, c.dims({size}, {})));
  if (rows != nullptr) present = c.binary("and", present, rows->is_there);
  V places = c.where(present, flat, c.dims({size}, {}));
  if (is_table) {
    const V begins = c.mul(c.iota(tables, {tables, 1}), c.dims({size + 1}, {}));
    places = c.reshape(c.add(c.reshape(places, shape), begins), {total});
  }
  const V added = has_weights && !is_binary ? c.reshape(weights, {total}) : c.expand(one, {total});
  const V all = build::scattered(node, c.filled(to, {tables * (size + 1)}, 0), places, added,
                                 is_binary ? "max" : "add");
  const V table = c.slice(c.reshape(all, {tables, size + 1}), 1, 0, size);
  node.set_output(0, is_table ? table : c.reshape(table, {size}));
}

// Operands: where rows end, numbers, how many there are to count, weights: a row of counts for each row.
void convert_ragged_bincount(NodeContext& node) {
  const V given = node.input(1);
  if (node.rank(given) != 1) node.invalid("numbers of shape " + to_string(node.shape(given)));
  const ir::SymInt size = build::only_integer(node, node.extents_at(2, "size"), "size");
  const RaggedRows rows = rows_of_splits(node, node.input(0), node.shape(given)[0]);
  node.set_output(0, counts_in_rows(node, given, row_ids(node, rows), {rows.rows, size}, node.input(3)));
}

namespace {

/// Rows that are taken one by one; of more a loop stays a loop.
constexpr int64_t kMostRows = 1024, kMostDepth = 16;
constexpr const char* kNestedRows =
    "rows that are ragged themselves are not implemented where a run says how many there are";

/// Elements with rows of rows, as one value: another one than the elements themselves.
V with_levels(NodeContext& node, V values, const std::vector<V>& lengths) {
  auto& levels = node.import_state().ragged_levels;
  const V own = node.add("identity", {values});
  if (own == values || !levels.emplace(own, lengths).second) node.unsupported("rt_dense_values", kNestedRows);
  return own;
}

/// How long the rows of each level are, by the operands up to the elements.
std::vector<RaggedRows> rows_of_levels(NodeContext& node) {
  std::vector<RaggedRows> levels;
  for (size_t level = 0; level + 1 < node.num_inputs(); ++level) {
    const ir::SymShape within = node.shape(node.input(level + 1));
    if (within.empty()) node.invalid("operand " + std::to_string(level + 1) + " has no axis");
    const bool is_last = level + 2 == node.num_inputs();
    levels.push_back(rows_of_splits(node, node.input(level), is_last ? within[0] : within[0] - 1));
  }
  return levels;
}

/// Each of the outermost rows with the rows of the levels in it.
void set_nested_rows(NodeContext& node, const std::vector<RaggedRows>& levels) {
  Compose c(node);
  const V values = node.input(levels.size());
  const ir::SymInt count = levels[0].rows;
  if (!count.is_constant() || count.hint() > kMostRows) node.unsupported("RAGGED_RANK", kNestedRows);
  TensorList list;
  list.has_rows = true;
  list.dtype = node.dtype(values);
  ir::SymShape begins(levels.size(), ir::SymInt(0));
  for (int64_t row = 0; row < count.hint(); ++row) {
    // What a row has of each level, behind what those before it have.
    V lengths = c.slice(levels[0].lengths, 0, row, 1);
    std::vector<V> own;
    for (size_t level = 0; level < levels.size(); ++level) {
      const V sum = c.reduce("reduce_sum", c.concat({lengths, c.ints({0}, {1})}, 0), {0}, true);
      const ir::SymInt length = build::bind_run_numbers(node, sum, 0, levels[level].total - begins[level])[0];
      const bool is_last = level + 1 == levels.size();
      lengths = c.slice(is_last ? values : levels[level + 1].lengths, 0, begins[level], length);
      own.push_back(lengths);
      begins[level] += length;
    }
    own.pop_back();
    list.elements.push_back(with_levels(node, lengths, own));
  }
  node.set_list(0, std::move(list));
}

/// The rows of each level of a ragged tensor of variants, and its elements.
void set_ragged(NodeContext& node, const std::vector<V>& lengths, V values, DType to) {
  for (size_t level = 0; level < lengths.size(); ++level) {
    const ir::SymInt total = node.shape(level + 1 < lengths.size() ? lengths[level + 1] : values)[0];
    node.set_output(level, splits_of(node, rows_of_lengths(node, lengths[level], total), to));
  }
  node.set_output(lengths.size(), values);
}

/// One behind the other.
void set_joined_rows(NodeContext& node, const std::vector<V>& rows, size_t rank, DType to) {
  Compose c(node);
  const auto& levels = node.import_state().ragged_levels;
  std::vector<std::vector<V>> parts(rank);
  ir::SymShape counts;
  for (const V row : rows) {
    const auto found = levels.find(row);
    if (found == levels.end() || found->second.size() + 1 != rank)
      node.unsupported("encoded_ragged", "rows of another depth are not implemented");
    counts.push_back(node.shape(found->second[0])[0]);
    for (size_t level = 1; level < rank; ++level) parts[level].push_back(found->second[level - 1]);
  }
  std::vector<V> lengths{node.extents(counts)};
  for (size_t level = 1; level < rank; ++level) lengths.push_back(c.concat(parts[level], 0));
  set_ragged(node, lengths, c.concat(rows, 0), to);
}

}  // namespace

// What loops go over and make: a row is its elements, the rows of a ragged tensor are a list of them.
// Operands: where rows end, the elements.
void convert_ragged_to_variant(NodeContext& node) {
  Compose c(node);
  const int64_t rank = node.integer("RAGGED_RANK");
  const bool has_rows = node.flag("batched_input");
  if (rank < (has_rows ? 1 : 0) || rank > kMostDepth || node.num_inputs() != static_cast<size_t>(rank) + 1)
    node.invalid("RAGGED_RANK is " + std::to_string(rank));
  if (rank == 0) return node.set_item(0, {node.input(0), {}});
  if (rank != (has_rows ? 1 : 0)) {
    const std::vector<RaggedRows> levels = rows_of_levels(node);
    if (has_rows) return set_nested_rows(node, levels);
    std::vector<V> lengths;
    for (const RaggedRows& level : levels) lengths.push_back(level.lengths);
    return node.set_item(0, {with_levels(node, node.input(levels.size()), lengths), {}});
  }
  const V values = node.input(1);
  if (node.rank(values) < 1) node.invalid("elements without an axis");
  const RaggedRows rows = rows_of_splits(node, node.input(0), node.shape(values)[0]);
  TensorList list;
  list.has_rows = true;
  list.dtype = node.dtype(values);
  if (!rows.rows.is_constant() || rows.rows.hint() > kMostRows) {
    list.length = rows.rows;
    list.whole = values;
    list.begins = rows.begins;
    list.lengths = rows.lengths;
    list.most = longest_extent(node, rows);
    return node.set_list(0, std::move(list));
  }
  ir::SymInt begin = 0;
  for (int64_t row = 0; row < rows.rows.hint(); ++row) {
    // No row reaches past the elements: rows_of_splits requires that their lengths add up to these.
    const ir::SymInt length =
        build::bind_run_numbers(node, c.slice(rows.lengths, 0, row, 1), 0, rows.total - begin)[0];
    list.elements.push_back(c.slice(values, 0, begin, length));
    begin += length;
  }
  node.set_list(0, std::move(list));
}

// The rows of a list as a ragged tensor, or one of them.
void convert_ragged_from_variant(NodeContext& node) {
  Compose c(node);
  const auto* given = std::get_if<std::shared_ptr<const TensorList>>(&node.item(0).value);
  const DType to = node.dtype_attr("Tsplits", DataType::kInt64);
  const int64_t rank = node.integer("output_ragged_rank");
  if (rank < (given == nullptr ? 0 : 1) || rank > kMostDepth)
    node.invalid("output_ragged_rank is " + std::to_string(rank));
  if (given == nullptr) {
    const auto& levels = node.import_state().ragged_levels;
    const auto found = levels.find(node.input(0));
    const std::vector<V> lengths = found == levels.end() ? std::vector<V>{} : found->second;
    if (lengths.size() != static_cast<size_t>(rank))
      node.unsupported("output_ragged_rank", "rows of another depth are not implemented");
    return set_ragged(node, lengths, node.input(0), to);
  }
  const TensorList& list = **given;
  if (rank > 1 && list.length) node.unsupported("output_ragged_rank", kNestedRows);
  if (list.begins != ir::kAbsent && list.whole != ir::kAbsent) {
    const RaggedRows own{list.begins, list.lengths, *list.length, node.shape(list.whole)[0]};
    node.set_output(0, splits_of(node, own, to));
    return node.set_output(1, list.whole);
  }
  std::vector<V> rows = list.elements;
  if (list.length) rows = {list.whole};
  if (rows.empty()) node.unsupported("encoded_ragged", "a ragged tensor without rows is not implemented");
  for (const V row : rows) {
    if (row == ir::kAbsent) node.unsupported("encoded_ragged", "a row that is not set");
    if (rank == 1 && node.import_state().ragged_levels.contains(row))
      node.unsupported("encoded_ragged", "rows of another depth are not implemented");
    if (node.rank(row) < (list.length ? 2 : 1)) node.invalid("a row without an axis");
  }
  if (rank > 1) return set_joined_rows(node, rows, static_cast<size_t>(rank), to);
  if (list.length) {
    // Of iterations of one loop rows are as long as each other.
    const ir::SymShape shape = node.shape(rows[0]);
    ir::SymShape merged(shape.begin() + 1, shape.end());
    merged[0] = node.product(shape[0], shape[1]);
    node.set_output(0, c.cast(c.mul(c.iota(shape[0] + 1), c.dims({shape[1]}, {})), to));
    return node.set_output(1, c.reshape(rows[0], merged));
  }
  ir::SymShape ends{0};
  for (const V row : rows) ends.push_back(ends.back() + node.shape(row)[0]);
  node.set_output(0, c.cast(node.extents(ends), to));
  node.set_output(1, c.concat(rows, 0));
}

}  // namespace tensormill::frontend::tensorflow
