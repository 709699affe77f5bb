/// Rows of different lengths, one behind the other along the first axis of a value, as ragged tensors have
/// them. Thread-safety: as the graph.
#pragma once

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// Where each row begins and how long it is: i64 [rows]; how many elements all of them have.
struct RaggedRows {
  V begins = ir::kAbsent, lengths = ir::kAbsent;
  ir::SymInt rows = 0, total = 0;
};
/// By where rows end, [rows + 1] of integers, of `total` elements.
RaggedRows rows_of_splits(NodeContext& node, V splits, const ir::SymInt& total);
/// By their lengths, [rows] of integers, of `total` elements.
RaggedRows rows_of_lengths(NodeContext& node, V lengths, const ir::SymInt& total);
/// By their lengths, whose sum a run works out.
RaggedRows run_time_rows(NodeContext& node, V lengths);
/// By the row that each element is of, [total] of integers that do not fall.
RaggedRows rows_of_ids(NodeContext& node, V ids, const ir::SymInt& rows);
/// Where rows end, in that type: [rows + 1].
V splits_of(NodeContext& node, const RaggedRows& rows, DType to);
/// Of which row each element is, and which of that row it is: i64 [total].
V row_ids(NodeContext& node, const RaggedRows& rows);
V places_in_rows(NodeContext& node, const RaggedRows& rows, V ids);
/// The number of elements of the longest row: i64 [1], and as a symbol that a run binds.
V longest_of(NodeContext& node, const RaggedRows& rows);
ir::SymInt longest_extent(NodeContext& node, const RaggedRows& rows);

/// How often each number below shape[1] is among `numbers` [n], each of which is in one of shape[0] rows
/// (`row`, i64 [n]), or the sum of the weights [n] of each, unless these are none; with attribute
/// binary_output, whether it is there.
V counts_in_rows(NodeContext& node, V numbers, V row, const ir::SymShape& shape, V weights);
/// RaggedTensorToTensor of rows that operands say.
void convert_rows_to_tensor(NodeContext& node);

}  // namespace tensormill::frontend::tensorflow
