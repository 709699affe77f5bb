#include "compiler/frontend/tensorflow/converters/ragged_rows.h"

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/text/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// A symbol for an integer of a run, 0 or more.
ir::SymInt run_number(NodeContext& node, V number, const std::optional<ir::SymInt>& high) {
  if (high && same(*high, 0)) return 0;
  Compose c(node);
  return build::bind_run_numbers(node, c.cast(c.reshape(number, {1}), DType::kInt64), 0, high)[0];
}

}  // namespace

RaggedRows rows_of_splits(NodeContext& node, V splits, const ir::SymInt& total) {
  Compose c(node);
  const ir::SymShape shape = node.shape(splits);
  if (shape.size() != 1 || !ir::demand(ir::Relation::kLess, 0, shape[0]))
    node.invalid("ends of rows of shape " + to_string(shape));
  V ends = c.cast(splits, DType::kInt64);
  const ir::SymInt rows = shape[0] - 1;
  const V first = c.slice(ends, 0, 0, 1), last = c.slice(ends, 0, rows, 1);
  const V fits = c.binary("and", c.binary("equal", first, c.ints({0}, {1})),
                          c.binary("equal", last, c.dims({total}, {1})));
  ends = build::required(node, ends, fits, "rows do not end where the elements do");
  const V begins = c.slice(ends, 0, 0, rows);
  V lengths = c.sub(c.slice(ends, 0, 1, rows), begins);
  lengths = build::required(node, lengths, c.binary("greater_equal", lengths, c.number(lengths, 0)),
                            "a row ends before it begins");
  return {begins, lengths, rows, total};
}

RaggedRows rows_of_lengths(NodeContext& node, V lengths, const ir::SymInt& total) {
  Compose c(node);
  if (node.rank(lengths) != 1) node.invalid("lengths of shape " + to_string(node.shape(lengths)));
  const V wide = c.cast(lengths, DType::kInt64);
  const V begins =
      node.add("cumsum", {wide}, {{"axis", int64_t{0}}, {"exclusive", int64_t{1}}, {"reverse", int64_t{0}}});
  return {begins, wide, node.shape(lengths)[0], total};
}

RaggedRows run_time_rows(NodeContext& node, V lengths) {
  Compose c(node);
  if (same(num_elements(node.shape(lengths)), 0)) return rows_of_lengths(node, lengths, 0);
  const V sum = c.reduce("reduce_sum", c.cast(lengths, DType::kInt64), {0}, true);
  return rows_of_lengths(node, lengths, run_number(node, sum, std::nullopt));
}

RaggedRows rows_of_ids(NodeContext& node, V ids, const ir::SymInt& rows) {
  Compose c(node);
  const ir::SymShape shape = node.shape(ids);
  if (shape.size() != 1) node.invalid("numbers of rows of shape " + to_string(shape));
  const V lengths = build::scattered(node, c.filled(DType::kInt64, {rows}, 0), c.cast(ids, DType::kInt64),
                                     c.filled(DType::kInt64, {shape[0]}, 1), "add");
  return rows_of_lengths(node, lengths, shape[0]);
}

V splits_of(NodeContext& node, const RaggedRows& rows, DType to) {
  Compose c(node);
  return c.cast(c.concat({rows.begins, c.dims({rows.total}, {1})}, 0), to);
}

// How many rows begin at an element or before it. Rows without elements behind the last one begin in a place
// of their own.
V row_ids(NodeContext& node, const RaggedRows& rows) {
  Compose c(node);
  const V marks = build::scattered(node, c.filled(DType::kInt64, {rows.total + 1}, 0), rows.begins,
                                   c.filled(DType::kInt64, {rows.rows}, 1), "add");
  const V begun =
      node.add("cumsum", {marks}, {{"axis", int64_t{0}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}});
  return c.minus(c.slice(begun, 0, 0, rows.total), 1);
}

V places_in_rows(NodeContext& node, const RaggedRows& rows, V ids) {
  Compose c(node);
  return c.sub(c.iota(rows.total), c.gather(rows.begins, ids, 0));
}

V longest_of(NodeContext& node, const RaggedRows& rows) {
  Compose c(node);
  return c.reduce("reduce_max", c.concat({rows.lengths, c.ints({0}, {1})}, 0), {0}, true);
}

ir::SymInt longest_extent(NodeContext& node, const RaggedRows& rows) {
  return run_number(node, longest_of(node, rows), rows.total);
}

V counts_in_rows(NodeContext& node, V numbers, V row, const ir::SymShape& shape, V weights) {
  Compose c(node);
  const V given = c.cast(numbers, DType::kInt64), size = c.dims({shape[1]}, {});
  const bool is_binary = node.flag("binary_output", false),
             has_weights = !same(num_elements(node.shape(weights)), 0);
  const ir::SymInt total = num_elements(shape);
  const V present =
      c.binary("and", c.binary("greater_equal", given, c.number(given, 0)), c.binary("less", given, size));
  const V places = c.where(present, c.add(c.mul(row, size), given), c.dims({total}, {}));
  const DType to = node.dtype(weights);
  const V counted = has_weights && !is_binary ? weights : c.filled(to, node.shape(given), 1);
  const V all =
      build::scattered(node, c.filled(to, {total + 1}, 0), places, counted, is_binary ? "max" : "add");
  return c.reshape(c.slice(all, 0, 0, total), shape);
}

namespace {

/// Rows of a table [rows,most,...] of x [total,...], `otherwise` [1,...] where a row has no element.
V table_of_rows(NodeContext& node, V x, V otherwise, const RaggedRows& rows, const ir::SymInt& most) {
  Compose c(node);
  const V places = c.positions(most, 1, 2), lengths = c.reshape(rows.lengths, {rows.rows, 1});
  const V taken = c.add(c.reshape(rows.begins, {rows.rows, 1}), places);
  const V chosen = c.where(c.binary("less", places, lengths), taken, c.dims({rows.total}, {1, 1}));
  return c.gather(c.concat({x, otherwise}, 0), chosen, 0);
}

/// The first `count` rows, with rows of no elements behind those that are there.
RaggedRows with_count(NodeContext& node, const RaggedRows& rows, const ir::SymInt& count) {
  Compose c(node);
  const V none = c.filled(DType::kInt64, {count}, 0);
  const auto first = [&](V x) { return c.slice(c.concat({x, none}, 0), 0, 0, count); };
  return {first(rows.begins), first(rows.lengths), count, rows.total};
}

/// The rows of each level, the outermost first, by how the operands from `first` on say it.
std::vector<RaggedRows> levels_of(NodeContext& node, const std::vector<std::string>& forms, size_t first,
                                  const ir::SymInt& total) {
  Compose c(node);
  const bool has_size = forms[0] == "FIRST_DIM_SIZE";
  const size_t count = forms.size() - (has_size ? 1 : 0);
  const auto operand = [&](size_t level) { return node.input(first + level + (has_size ? 1 : 0)); };
  const auto has_ids = [&](size_t level) {
    const std::string& form = forms[level + (has_size ? 1 : 0)];
    if (form != "VALUE_ROWIDS" && form != "ROW_SPLITS")
      node.unsupported("row_partition_types", "\"" + form + "\" there is not implemented");
    return form == "VALUE_ROWIDS";
  };
  // How many rows a level has, where they are said by numbers: as many as the one around it has elements.
  const auto rows_of = [&](size_t level) {
    if (level == 0 && !has_size) node.invalid("row_partition_types does not say how many rows there are");
    constexpr const char* kNumber = "the number of rows";
    if (level == 0) return build::only_integer(node, node.extents_at(first, kNumber), kNumber);
    const ir::SymInt extent = num_elements(node.shape(operand(level - 1)));
    if (has_ids(level - 1)) return extent;
    return run_number(node, c.slice(operand(level - 1), 0, extent - 1, 1), std::nullopt);
  };
  std::vector<RaggedRows> levels(count);
  ir::SymInt below = total;
  for (size_t level = count; level-- > 0;) {
    const bool is_by_ids = has_ids(level);
    if (is_by_ids && !ir::demand(ir::Relation::kEqual, num_elements(node.shape(operand(level))), below))
      node.invalid("numbers of rows of shape " + to_string(node.shape(operand(level))));
    levels[level] = is_by_ids ? rows_of_ids(node, operand(level), rows_of(level))
                              : rows_of_splits(node, operand(level), below);
    below = levels[level].rows;
  }
  return levels;
}

}  // namespace

// Operands: the shape of the table, elements, what stands where none is, and the rows of each level.
void convert_rows_to_tensor(NodeContext& node) {
  Compose c(node);
  const std::vector<std::string> forms = node.texts("row_partition_types");
  if (forms.empty() || node.num_inputs() != 3 + forms.size()) node.invalid("it has no rows");
  build::MovedTexts texts(node);
  const bool is_text = build::is_text(node, node.input(1));
  V table = is_text ? texts.positions_of(node.input(1)) : node.input(1);
  const V otherwise = is_text ? texts.positions_of(node.input(2)) : node.input(2);
  const ir::SymShape own = node.shape(table);
  if (own.empty()) node.invalid("elements without an axis");
  const std::vector<RaggedRows> levels = levels_of(node, forms, 3, own[0]);
  ir::SymShape wanted = node.known_ints(0, "shape");
  if (wanted.empty() || node.rank(node.input(0)) == 0)
    wanted = ir::SymShape(std::vector<int64_t>(levels.size() + own.size(), -1));
  if (wanted.size() != levels.size() + own.size())
    node.invalid("shape " + to_string(wanted) + " for rows of elements of " + to_string(own));
  for (size_t level = levels.size(); level-- > 0;) {
    RaggedRows rows = levels[level];
    const ir::SymInt& given = wanted[level + 1];
    const ir::SymInt most = same(given, -1) ? longest_extent(node, rows) : given;
    if (level == 0 && !same(wanted[0], -1)) rows = with_count(node, rows, wanted[0]);
    ir::SymShape one = node.shape(table);
    one[0] = 1;
    table = table_of_rows(node, table, c.expand(otherwise, one), rows, most);
  }
  node.set_output(0, is_text ? texts.texts_at(table) : table);
}

// Operands: where the rows of each level end, elements, which of the outermost rows are taken.
void convert_ragged_gather(NodeContext& node) {
  Compose c(node);
  const int64_t depth = node.integer("PARAMS_RAGGED_RANK");
  if (depth < 1 || depth > 64 || node.num_inputs() != static_cast<size_t>(depth) + 2)
    node.invalid("PARAMS_RAGGED_RANK is " + std::to_string(depth));
  const auto count = static_cast<size_t>(depth);
  const DType to = node.dtype_attr("Tsplits", DataType::kInt64);
  const V indices = node.input(count + 1);
  const ir::SymShape places = node.shape(indices);
  if (places.empty() || node.integer("OUTPUT_RAGGED_RANK") != static_cast<int64_t>(places.size() + count) - 1)
    node.invalid("indices of shape " + to_string(places));
  size_t output = 0;
  // Axes of the indices have rows of one length.
  for (size_t d = 0; d + 1 < places.size(); ++d) {
    const ir::SymInt rows =
        num_elements(ir::SymShape(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(d) + 1));
    const V ends = c.mul(c.iota(rows + 1), c.dims({places[d + 1]}, {}));
    node.set_output(output++, c.cast(ends, to));
  }
  V taken = c.reshape(c.cast(indices, DType::kInt64), {num_elements(places)});
  for (size_t level = 0; level < count; ++level) {
    const ir::SymShape within = node.shape(node.input(level + 1));
    if (within.empty()) node.invalid("operand " + std::to_string(level + 1) + " has no axis");
    const ir::SymInt below = level + 1 < count ? within[0] - 1 : within[0];
    const RaggedRows rows = rows_of_splits(node, node.input(level), below);
    const RaggedRows chosen = run_time_rows(node, c.gather(rows.lengths, taken, 0));
    const V ids = row_ids(node, chosen);
    const V begins = c.gather(c.gather(rows.begins, taken, 0), ids, 0);
    taken = c.add(begins, places_in_rows(node, chosen, ids));
    node.set_output(output++, splits_of(node, chosen, to));
  }
  const V values = node.input(count);
  if (!build::is_text(node, values)) return node.set_output(output, c.gather(values, taken, 0));
  build::MovedTexts texts(node);
  node.set_output(output, texts.texts_at(c.gather(texts.positions_of(values), taken, 0)));
}

// Operands: where rows of numbers begin, their limits, and steps; each has one, or all have the same.
void convert_ragged_range(NodeContext& node) {
  Compose c(node);
  const DType to = node.dtype_attr("Tsplits", DataType::kInt64);
  const auto row_of = [&](size_t operand) {
    const V x = node.input(operand);
    return node.rank(x) == 0 ? c.reshape(x, {1}) : x;
  };
  ir::SymInt rows = 1;
  std::vector<V> numbers;
  for (size_t i = 0; i < 3; ++i) {
    numbers.push_back(row_of(i));
    if (node.rank(node.input(i)) == 1) rows = node.shape(node.input(i))[0];
  }
  for (V& each : numbers) each = c.expand(each, {rows});
  const DType dtype = node.dtype(numbers[0]);
  const auto wide = [&](V x) { return is_float(dtype) ? x : c.cast(x, DType::kInt64); };
  const V span = c.sub(wide(numbers[1]), wide(numbers[0])), step = numbers[2], zero = c.number(step, 0);
  const V is_step = c.unary("not", c.binary("equal", step, zero)),
          moves = c.where(is_step, step, c.number(step, 1)), by = wide(moves);
  // As many integers as there are whole steps begun before the limit.
  V count = is_float(dtype) ? c.cast(c.unary("ceil", c.div(span, by)), DType::kInt64)
                            : c.div(c.add(span, c.sub(by, c.unary("sign", by))), by);
  const V is_behind = c.binary("less", c.mul(span, c.unary("sign", by)), c.number(span, 0));
  count = c.where(is_behind, c.number(count, 0), count);
  count = build::required(node, c.binary("max", count, c.number(count, 0)), is_step, "a step of 0");
  const RaggedRows made = run_time_rows(node, count);
  const V ids = row_ids(node, made), places = c.cast(places_in_rows(node, made, ids), dtype);
  node.set_output(0, splits_of(node, made, to));
  node.set_output(1, c.add(c.gather(numbers[0], ids, 0), c.mul(places, c.gather(moves, ids, 0))));
}

// Operands: where the rows of each level end, elements; the outputs are places i64 [n,rank], elements [n],
// and the shape of the table that they would stand in.
void convert_ragged_to_sparse(NodeContext& node) {
  Compose c(node);
  if (node.num_inputs() < 2) node.invalid("it has no rows");
  const size_t count = node.num_inputs() - 1;
  const bool is_text = build::is_text(node, node.input(count));
  const V values = node.input(count);
  const ir::SymShape shape = build::model_shape(node, values);
  if (shape.empty()) node.invalid("elements without an axis");
  const ir::SymInt total = num_elements(shape);
  // From the innermost axis on: which place along it each element has, and in which row around it it stands.
  std::vector<V> columns;
  std::vector<V> extents;
  V row = c.iota(total);
  for (size_t d = shape.size(); d-- > 1;) {
    const V extent = c.dims({shape[d]}, {});
    const V around = c.div(row, c.binary("max", extent, c.number(extent, 1)));
    columns.push_back(c.sub(row, c.mul(around, extent)));
    extents.push_back(c.dims({shape[d]}, {1}));
    row = around;
  }
  ir::SymInt below = shape[0];
  for (size_t level = count; level-- > 0;) {
    const RaggedRows rows = rows_of_splits(node, node.input(level), below);
    const V ids = row_ids(node, rows), places = places_in_rows(node, rows, ids);
    columns.push_back(c.gather(places, row, 0));
    extents.push_back(longest_of(node, rows));
    row = c.gather(ids, row, 0);
    below = rows.rows;
  }
  columns.push_back(row);
  extents.push_back(c.dims({below}, {1}));
  std::vector<V> table, whole;
  for (size_t i = columns.size(); i-- > 0;) {
    table.push_back(c.unsqueeze(columns[i], 1));
    whole.push_back(extents[i]);
  }
  node.set_output(0, c.concat(table, 1));
  node.set_output(1, is_text ? build::reshaped_text(node, values, {total}) : c.reshape(values, {total}));
  node.set_output(2, c.concat(whole, 0));
}

}  // namespace tensormill::frontend::tensorflow
