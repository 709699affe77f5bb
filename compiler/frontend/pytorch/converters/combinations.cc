// Elements of tensors beside those of others: blocks along a diagonal, and all that can be chosen of them.
#include <algorithm>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

// Each a matrix, vectors a row, and zeros around them.
void convert_block_diag(NodeContext& node) {
  Compose c(node);
  const std::vector<V> parts = node.tensors("tensors");
  if (parts.empty()) node.invalid("it has no operands");
  const DType dtype = node.output_dtype();
  ir::SymInt columns = 0, before = 0;
  std::vector<V> rows;
  for (const V part : parts) {
    V x = numeric(node, c.cast(part, dtype));
    if (node.rank(x) > 2) node.invalid("an operand has rank " + std::to_string(node.rank(x)));
    while (node.rank(x) < 2) x = c.unsqueeze(x, 0);
    columns = columns + node.shape(x)[1];
    rows.push_back(x);
  }
  for (V& row : rows) {
    const ir::SymInt own = node.shape(row)[1];
    row = padded(node, row, {0, before, 0, columns - before - own}, "constant", 0);
    before = before + own;
  }
  node.set_output(0, c.cast(c.concat(rows, 0), dtype));
}

// One after the other along a new axis, filled up to the longest one.
void convert_pad_sequence(NodeContext& node) {
  Compose c(node);
  const ir::CheckedList<V> parts = node.tensors("sequences");
  const bool is_batch_first = node.flag("batch_first"), is_left = node.text("padding_side") == "left";
  if (!is_left && node.text("padding_side") != "right")
    node.invalid("padding_side is neither left nor right");
  const double filling = node.real("padding_value");
  if (parts.empty()) node.invalid("there are no sequences");
  const int64_t rank = node.rank(parts.front());
  ir::SymInt longest = 0;
  for (const V part : parts) {
    const ir::SymShape shape = node.shape(part);
    if (shape.empty() || node.rank(part) != rank)
      node.invalid("a sequence of shape " + to_string(shape) + " beside one of " +
                   to_string(node.shape(parts.front())));
    longest = max(longest, shape[0]);
  }
  std::vector<V> rows;
  for (const V part : parts) {
    ir::SymShape pads(2 * static_cast<size_t>(rank), 0);
    pads[is_left ? 0 : static_cast<size_t>(rank)] = longest - node.shape(part)[0];
    ir::SymShape shape = node.shape(parts.front());
    shape[0] = node.shape(part)[0];
    const V own = c.expand(c.cast(part, node.dtype(parts.front())), shape);
    rows.push_back(c.unsqueeze(padded(node, own, pads, "constant", filling), is_batch_first ? 0 : 1));
  }
  node.set_output(0, c.concat(rows, is_batch_first ? 0 : 1));
}

// All rows of an element of each.
void convert_cartesian_prod(NodeContext& node) {
  Compose c(node);
  const std::vector<V> parts = node.tensors("tensors");
  if (parts.empty()) node.invalid("it has no operands");
  ir::SymShape whole;
  for (const V part : parts) {
    check_rank(node, part, 1);
    whole.push_back(node.shape(part)[0]);
  }
  if (parts.size() == 1) return node.set_output(0, node.add("identity", {parts[0]}));
  const ir::SymInt count = num_elements(whole);
  std::vector<V> columns;
  for (size_t i = 0; i < parts.size(); ++i) {
    ir::SymShape along(whole.size(), 1);
    along[i] = whole[i];
    columns.push_back(c.reshape(c.expand(c.reshape(parts[i], along), whole), {count, 1}));
  }
  node.set_output(0, c.concat(columns, 1));
}

namespace {

/// All rows of `width` places of `count`, each larger than the one before it, or no smaller; nothing for more
/// than may stand in a graph.
std::vector<int64_t> chosen_places(NodeContext& node, int64_t count, int64_t width, bool repeats) {
  std::vector<int64_t> all, row;
  for (int64_t i = 0; i < width; ++i) row.push_back(repeats ? 0 : i);
  bool is_there = count > 0 && (repeats || width <= count);
  while (is_there) {
    all.insert(all.end(), row.begin(), row.end());
    if (static_cast<int64_t>(all.size()) > build::kMaxListed)
      node.unsupported("r", "so many rows are not implemented");
    int64_t at = width - 1;
    while (at >= 0 && row[static_cast<size_t>(at)] == (repeats ? count - 1 : count - width + at)) --at;
    is_there = at >= 0;
    if (!is_there) break;
    const int64_t next = row[static_cast<size_t>(at)] + 1;
    for (int64_t i = at; i < width; ++i) row[static_cast<size_t>(i)] = repeats ? next : next + i - at;
  }
  return all;
}

}  // namespace

// All that can be chosen of the elements, "r" of them a row.
void convert_combinations(NodeContext& node) {
  constexpr int64_t kMostColumns = 1024;
  Compose c(node);
  const V x = node.tensor("self");
  check_rank(node, x, 1);
  const int64_t width = node.integer("r"), count = node.shape(x)[0];
  const bool repeats = node.flag("with_replacement");
  if (width < 0) node.invalid("r is " + std::to_string(width));
  if (width == 0) return node.set_output(0, c.filled(node.dtype(x), {0}, 0));
  if (width > kMostColumns) node.unsupported("r", std::to_string(width) + " elements are not implemented");
  const std::vector<int64_t> places = chosen_places(node, count, width, repeats);
  const auto rows = static_cast<int64_t>(places.size()) / width;
  if (rows == 0) return node.set_output(0, c.filled(node.dtype(x), {0, width}, 0));
  node.set_output(0, c.gather(x, c.ints(places, {rows, width}), 0));
}

// A tensor as it is, or with axes of one element in front, the third one behind.
void convert_atleast(NodeContext& node) {
  const bool is_list = takes(node, "tensors");
  const int64_t least = node.op() == "atleast_1d" ? 1 : node.op() == "atleast_2d" ? 2 : 3;
  const std::vector<V> parts = is_list ? node.tensors("tensors") : std::vector<V>{node.tensor("self")};
  for (size_t i = 0; i < parts.size(); ++i) {
    ir::SymShape shape = node.shape(parts[i]);
    if (shape.empty()) shape.push_back(1);
    if (shape.size() == 1 && least > 1) shape.insert(shape.begin(), 1);
    if (shape.size() == 2 && least > 2) shape.push_back(1);
    if (is_list) {
      node.set_view_in(i, "tensors", i, {reshape_step(shape)});
    } else {
      node.set_view(0, "self", reshape_step(shape));
    }
  }
}

}  // namespace tensormill::frontend::pytorch
