// Operators whose operands are strings, or the parts of strings. Parts stand in rows of one length, and what
// makes of each element another one leaves them there.
#include <algorithm>
#include <cmath>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/text/text_operands.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

using Rows = std::shared_ptr<const PaddedRows>;

constexpr Converter kMoves[] = {&convert_concat,
                                &convert_pack,
                                &convert_unpack,
                                &convert_split,
                                &convert_split_v,
                                &convert_slice,
                                &convert_tile,
                                &convert_reverse,
                                &convert_strided_slice,
                                &convert_gather,
                                &convert_select,
                                &convert_transpose,
                                &convert_broadcast_to,
                                &convert_gather_nd,
                                &convert_roll,
                                &convert_fill,
                                &convert_dynamic_partition,
                                &convert_dynamic_stitch,
                                &convert_sparse_to_dense,
                                &convert_parallel_concat};
constexpr Converter kReshapes[] = {&convert_reshape, &convert_squeeze, &convert_expand_dims,
                                   &convert_ensure_shape};
constexpr Converter kShapes[] = {&convert_shape, &convert_rank, &convert_size};
constexpr Converter kReads[] = {&convert_equal,
                                &convert_identity,
                                &convert_first,
                                &convert_call,
                                &convert_if,
                                &convert_case,
                                &convert_while,
                                &convert_switch,
                                &convert_merge,
                                &convert_text_change,
                                &convert_text_replace,
                                &convert_text_match,
                                &convert_text_length,
                                &convert_text_part,
                                &convert_text_hash,
                                &convert_text_number,
                                &convert_number_text,
                                &convert_text_join,
                                &convert_text_split,
                                &convert_text_ngrams,
                                &convert_text_reduce_join,
                                &convert_code_points,
                                &convert_transcode,
                                &convert_sparse_cross,
                                &convert_table_find,
                                &convert_table_fill,
                                &convert_restore,
                                &convert_table_handle,
                                &convert_nothing,
                                &convert_ragged_to_tensor,
                                &convert_unique,
                                &convert_edit_distance,
                                &convert_ragged_to_sparse,
                                &convert_ragged_gather};
constexpr build::TextConverters<Converter> kTexts = {kReads, kMoves, kReshapes, kShapes};
/// What makes of each element, or of the elements in one place, another one.
constexpr Converter kElementwise[] = {
    &convert_identity,    &convert_first,       &convert_unary,        &convert_binary,
    &convert_cast,        &convert_equal,       &convert_select,       &convert_floor_mod,
    &convert_floor_div,   &convert_text_change, &convert_text_replace, &convert_text_match,
    &convert_text_length, &convert_text_hash,   &convert_text_number,  &convert_number_text,
    &convert_table_find,  &convert_filled_like, &convert_clip_by_value};
/// What hands its operands on, wherever these are.
constexpr Converter kPassOn[] = {&convert_call, &convert_nothing};

template <size_t kCount>
bool holds(const Converter (&all)[kCount], Converter convert) {
  return std::find(std::begin(all), std::end(all), convert) != std::end(all);
}

const V* value_of(const Item& item) { return std::get_if<V>(&item.value); }

/// The values of items; kAbsent for lists and the like.
std::vector<V> values_of(const std::vector<Item>& items) {
  std::vector<V> values;
  for (const Item& item : items) {
    const V* value = value_of(item);
    values.push_back(value == nullptr ? ir::kAbsent : *value);
  }
  return values;
}

/// By the operands' own kind.
void convert_by_type(NodeContext& node, Converter convert) {
  std::vector<Item> items;
  for (size_t i = 0; i < node.num_inputs(); ++i) items.push_back(node.item(i));
  const std::vector<V> operands = values_of(items);
  const build::TextUse use = kTexts.use_of(convert);
  if (use == build::TextUse::kReads || build::first_text(node, operands) == operands.size())
    return convert(node);
  const auto numbers = [&](const std::vector<V>& of) {
    for (size_t i = 0; i < of.size(); ++i)
      if (of[i] != ir::kAbsent) items[i].value = of[i];
    NodeContext inner(node, items);
    convert(inner);
    return values_of(inner.take_outputs());
  };
  const std::vector<V> results = build::convert_texts(node, use, operands, numbers);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != ir::kAbsent) node.set_output(i, results[i]);
}

/// The rows of an operand; null where its elements stand in none.
Rows rows_of(NodeContext& node, size_t operand) {
  const V* value = value_of(node.item(operand));
  if (value == nullptr) return nullptr;
  const auto& padded = node.import_state().padded;
  const auto found = padded.find(*value);
  return found == padded.end() ? nullptr : found->second;
}

V taken_count(NodeContext& node, const PaddedRows& rows) {
  return Compose(node).reduce("reduce_sum", rows.counts, {0}, false);
}

double neutral_of(NodeContext& node, DType dtype) {
  const std::string_view op = node.op();
  if (op == "Sum" || op == "Any") return 0;
  if (op == "Prod" || op == "All") return 1;
  const bool is_least = op == "Max" && (is_float(dtype) || dtype == DType::kInt64 || dtype == DType::kInt32);
  if (!is_least) node.unsupported("operand 0", "parts of strings are not implemented here");
  return is_float(dtype) ? -HUGE_VAL : dtype == DType::kInt64 ? -0x1p63 : -0x1p31;
}

/// Operand 0 with `element` where no part is.
Item filled_behind(NodeContext& node, const PaddedRows& rows, double element) {
  Compose c(node);
  const V x = node.input(0);
  if (node.rank(x) != 1) node.unsupported("operand 0", "parts of strings are not implemented here");
  return {c.where(rows.is_there, x, c.number(x, element)), {}};
}

/// Whether a slice takes all of the first axis.
bool keeps_rows(NodeContext& node) {
  const int64_t open = node.integer("begin_mask", 0) & node.integer("end_mask", 0);
  const int64_t other = node.integer("ellipsis_mask", 0) | (node.integer("new_axis_mask", 0) & 1) |
                        (node.integer("shrink_axis_mask", 0) & 1);
  const ir::SymShape strides = node.known_ints(3, "strides");
  return (open & 1) != 0 && other == 0 && !strides.empty() && same(strides[0], 1);
}

/// Whether the other operands have one element, or stand in the same rows.
bool stands_in(NodeContext& node, const Rows& rows) {
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const V* value = value_of(node.item(i));
    if (value == nullptr || rows_of(node, i) == rows) continue;
    if (rows_of(node, i) != nullptr || !build::model_shape(node, *value).empty()) return false;
  }
  return true;
}

void note_rows(NodeContext& node, const Rows& rows) {
  for (const Item& output : node.outputs())
    if (const V* value = value_of(output)) node.import_state().padded.emplace(*value, rows);
}

/// Whether that could be done with the elements where they are.
bool convert_in_rows(NodeContext& node, Converter convert, const Rows& rows) {
  Compose c(node);
  const bool is_first = rows_of(node, 0) == rows;
  if (convert == &convert_size) {
    node.set_output(0, c.cast(taken_count(node, *rows), node.dtype_attr("out_type", DataType::kInt32)));
    return true;
  }
  if (convert == &convert_reduce && is_first && node.rank(node.input(0)) == 1) {
    NodeContext inner(
        node, {filled_behind(node, *rows, neutral_of(node, node.dtype(node.input(0)))), node.item(1)});
    convert(inner);
    node.set_items(inner.take_outputs());
    return true;
  }
  const bool is_flat = convert == &convert_reshape && is_first && node.rank(node.input(0)) == 1 &&
                       node.is_known(1) && node.known_ints(1, "shape") == ir::SymShape{-1};
  if (is_flat) {
    node.set_item(0, {node.input(0), {}});
  } else if ((holds(kElementwise, convert) && stands_in(node, rows)) ||
             (convert == &convert_strided_slice && is_first && keeps_rows(node))) {
    convert_by_type(node, convert);
    note_rows(node, rows);
  } else {
    return false;
  }
  return true;
}

/// Whether the converter takes the rows as they are.
bool passes_on(NodeContext& node, Converter convert) {
  if (holds(kPassOn, convert)) return true;
  const Rows rows = rows_of(node, convert == &convert_ragged_to_tensor ? 1 : 0);
  if (convert == &convert_ragged_to_tensor) {
    const std::vector<std::string> forms = node.texts("row_partition_types");
    return rows != nullptr && !forms.empty() && forms.size() == (forms[0] == "FIRST_DIM_SIZE" ? 2 : 1);
  }
  // Counts of the rows' own numbers: how many elements each row has.
  return convert == &convert_bincount && rows != nullptr &&
         (!node.is_known(1) || same(node.known_int(1, "size"), rows->rows));
}

}  // namespace

V gathered_rows(NodeContext& node, V value) {
  ImportState& state = node.import_state();
  const PaddedRows* rows = state.padded.at(value).get();
  // Of the same rows the same places, so that what is taken there is as long.
  auto found = state.places_of_rows.find(rows);
  if (found == state.places_of_rows.end()) {
    const V places = Compose(node).squeeze(build::places_of_nonzero(node, rows->is_there), 1);
    found = state.places_of_rows.emplace(rows, places).first;
  }
  return Compose(node).gather(value, found->second, 0);
}

void convert_node(NodeContext& node, Converter convert) {
  if (has_complex_operand(node)) return convert_complex_node(node, convert);
  Rows rows;
  for (size_t i = 0; i < node.num_inputs() && rows == nullptr; ++i) rows = rows_of(node, i);
  if (rows == nullptr || passes_on(node, convert)) return convert_by_type(node, convert);
  if (convert_in_rows(node, convert, rows)) return;
  std::vector<Item> items;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    items.push_back(node.item(i));
    if (rows_of(node, i) != nullptr)
      items.back().value = gathered_rows(node, std::get<V>(items.back().value));
  }
  NodeContext inner(node, std::move(items));
  convert_by_type(inner, convert);
  node.set_items(inner.take_outputs());
}

}  // namespace tensormill::frontend::tensorflow
