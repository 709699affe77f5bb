// Blocks of space as channels or as parts of the batch, bands of matrices.
#include "compiler/build/maps/space.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

ir::SymShape shape_of_map(NodeContext& node, V x) {
  const ir::SymShape shape = node.shape(x);
  if (shape.size() != 4) node.invalid("the input has shape " + to_string(shape) + ", expected rank 4");
  return shape;
}

int64_t block_of(NodeContext& node, const char* name) {
  const int64_t block = node.integer(name);
  if (block < 1 || block > 4096) node.invalid("blocks of " + std::to_string(block));
  return block;
}

/// Channels become pixels; of depth_to_space the place in a block comes before the channel.
void spread_channels(NodeContext& node, int64_t block, bool is_block_first) {
  Compose c(node);
  const V x = node.tensor("x");
  const ir::SymShape s = shape_of_map(node, x);
  if (!ir::demand_divisible(s[1], block * block)) node.invalid("the channels do not divide into blocks");
  const ir::SymInt depth = floordiv(s[1], block * block);
  const V y = is_block_first
                  ? c.transpose(c.reshape(x, {s[0], block, block, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                  : c.transpose(c.reshape(x, {s[0], depth, block, block, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  node.set_output(c.reshape(y, {s[0], depth, s[2] * block, s[3] * block}));
}

void gather_channels(NodeContext& node, int64_t block, bool is_block_first) {
  Compose c(node);
  const V x = node.tensor("x");
  const ir::SymShape s = shape_of_map(node, x);
  if (!ir::demand_divisible(s[2], block) || !ir::demand_divisible(s[3], block))
    node.invalid("the map does not divide into blocks");
  const ir::SymInt rows = floordiv(s[2], block), columns = floordiv(s[3], block);
  const V parts = c.reshape(x, {s[0], s[1], rows, block, columns, block});
  const V y = c.transpose(parts, is_block_first ? std::vector<int64_t>{0, 3, 5, 1, 2, 4}
                                                : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  node.set_output(c.reshape(y, {s[0], s[1] * (block * block), rows, columns}));
}

/// What `move` makes of the map with its channels last.
template <typename Move>
void with_channels_last(NodeContext& node, const Move& move) {
  Compose c(node);
  const V x = node.tensor("x");
  shape_of_map(node, x);
  node.set_output(c.transpose(move(c.transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2}));
}

}  // namespace

void convert_depth_to_space(NodeContext& node) { spread_channels(node, block_of(node, "block_size"), true); }
void convert_pixel_shuffle(NodeContext& node) {
  spread_channels(node, block_of(node, "upscale_factor"), false);
}
void convert_space_to_depth(NodeContext& node) { gather_channels(node, block_of(node, "block_size"), true); }
void convert_pixel_unshuffle(NodeContext& node) {
  gather_channels(node, block_of(node, "downscale_factor"), false);
}

void convert_space_to_batch(NodeContext& node) {
  const ir::Ints blocks = node.ints("block_shape");
  const ir::SymShape paddings = node.numbers("paddings", 0);
  with_channels_last(node, [&](V x) { return build::space_to_batch(node, x, blocks, paddings, 0); });
}

void convert_batch_to_space(NodeContext& node) {
  const ir::Ints blocks = node.ints("block_shape");
  const ir::SymShape crops = node.numbers("crops", 0);
  with_channels_last(node, [&](V x) { return build::batch_to_space(node, x, blocks, crops); });
}

// Elements of the last two axes that are near enough to the diagonal; others become 0.
void convert_band_part(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("the input has rank " + std::to_string(shape.size()));
  const int64_t lower = node.integer("lower", -1), upper = node.integer("upper", -1);
  const ir::SymInt &rows = shape[shape.size() - 2], &columns = shape.back();
  const V offset = c.sub(c.iota(columns, {1, columns}), c.iota(rows, {rows, 1}));
  V y = x;
  const auto keep = [&](const char* relation, int64_t limit) {
    const V stays = c.binary(relation, offset, c.number(offset, static_cast<double>(limit)));
    y = c.where(stays, y, c.number(y, 0));
  };
  if (lower >= 0) keep("greater_equal", -lower);
  if (upper >= 0) keep("less_equal", upper);
  if (y == x) return node.set_alias("x");
  node.set_output(y);
}

}  // namespace tensormill::frontend::coreml
