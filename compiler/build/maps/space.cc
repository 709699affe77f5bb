#include "compiler/build/maps/space.h"

#include "runtime/base/error.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

void check_block(const OpBuilder& builder, V x, int64_t block) {
  if (builder.rank(x) != 4)
    builder.invalid("the input has rank " + std::to_string(builder.rank(x)) + ", expected 4");
  if (block < 1) builder.invalid("a block of " + std::to_string(block));
}

ir::SymInt divided(OpBuilder& builder, const ir::SymInt& extent, const ir::SymInt& by) {
  if (!ir::demand_divisible(extent, by))
    builder.invalid("an axis of " + to_string(extent) + " for blocks of " + to_string(by));
  return floordiv(extent, by);
}

void check_blocks(const OpBuilder& builder, V x, const std::vector<int64_t>& blocks, size_t numbers) {
  if (blocks.empty() || static_cast<int64_t>(blocks.size()) + 1 > builder.rank(x))
    builder.invalid(std::to_string(blocks.size()) + " blocks for rank " + std::to_string(builder.rank(x)));
  for (const int64_t block : blocks) {
    if (block < 1 || block > (1 << 20)) builder.invalid("a block of " + std::to_string(block));
  }
  if (numbers != 2 * blocks.size()) builder.invalid("paddings or crops of another length than the blocks");
}

}  // namespace

V space_to_depth(OpBuilder& builder, V x, int64_t block) {
  check_block(builder, x, block);
  Compose c(builder);
  const ir::SymShape s = builder.type(x).shape;
  const ir::SymInt h = divided(builder, s[1], block), w = divided(builder, s[2], block);
  const V parts = c.transpose(c.reshape(x, {s[0], h, block, w, block, s[3]}), {0, 1, 3, 2, 4, 5});
  return c.reshape(parts, {s[0], h, w, s[3] * (block * block)});
}

V depth_to_space(OpBuilder& builder, V x, int64_t block) {
  check_block(builder, x, block);
  Compose c(builder);
  const ir::SymShape s = builder.type(x).shape;
  const ir::SymInt depth = divided(builder, s[3], block * block);
  const V parts = c.transpose(c.reshape(x, {s[0], s[1], s[2], block, block, depth}), {0, 1, 3, 2, 4, 5});
  return c.reshape(parts, {s[0], s[1] * block, s[2] * block, depth});
}

V space_to_batch(OpBuilder& builder, V x, const std::vector<int64_t>& blocks, const ir::SymShape& paddings,
                 double zero) {
  Compose c(builder);
  check_blocks(builder, x, blocks, paddings.size());
  const size_t rank = builder.type(x).shape.size(), m = blocks.size();
  ir::SymShape pads(2 * rank, 0);
  for (size_t i = 0; i < m; ++i) {
    pads[i + 1] = paddings[2 * i];
    pads[i + 1 + rank] = paddings[2 * i + 1];
  }
  x = builder.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", zero}});
  const ir::SymShape s = builder.type(x).shape;
  ir::SymShape parts{s[0]}, whole;
  std::vector<int64_t> perm;
  int64_t product = 1;
  for (size_t i = 0; i < m; ++i) {
    parts.insert(parts.end(), {divided(builder, s[i + 1], blocks[i]), blocks[i]});
    perm.push_back(static_cast<int64_t>(2 * i + 2));
    product *= blocks[i];
  }
  perm.push_back(0);
  whole.push_back(s[0] * product);
  for (size_t i = 0; i < m; ++i) {
    perm.push_back(static_cast<int64_t>(2 * i + 1));
    whole.push_back(parts[2 * i + 1]);
  }
  for (size_t d = m + 1; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(s[d]);
    whole.push_back(s[d]);
  }
  return c.reshape(c.transpose(c.reshape(x, parts), perm), whole);
}

V batch_to_space(OpBuilder& builder, V x, const std::vector<int64_t>& blocks, const ir::SymShape& crops) {
  Compose c(builder);
  check_blocks(builder, x, blocks, crops.size());
  const ir::SymShape s = builder.type(x).shape;
  const size_t rank = s.size(), m = blocks.size();
  int64_t product = 1;
  for (const int64_t block : blocks) product *= block;
  ir::SymShape parts, whole{divided(builder, s[0], product)};
  std::vector<int64_t> perm{static_cast<int64_t>(m)};
  for (const int64_t block : blocks) parts.emplace_back(block);
  parts.push_back(whole[0]);
  for (size_t i = 0; i < m; ++i) {
    parts.push_back(s[i + 1]);
    perm.insert(perm.end(), {static_cast<int64_t>(m + 1 + i), static_cast<int64_t>(i)});
    whole.push_back(s[i + 1] * blocks[i]);
  }
  for (size_t d = m + 1; d < rank; ++d) {
    perm.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(s[d]);
    whole.push_back(s[d]);
  }
  x = c.reshape(c.transpose(c.reshape(x, parts), perm), whole);
  for (size_t i = 0; i < m; ++i) {
    const ir::SymInt left = whole[i + 1] - crops[2 * i] - crops[2 * i + 1];
    if (!ir::demand(ir::Relation::kLessEqual, 0, left) ||
        !ir::demand(ir::Relation::kLessEqual, 0, crops[2 * i]))
      builder.invalid("crops of " + to_string(crops[2 * i]) + " and " + to_string(crops[2 * i + 1]) +
                      " for an axis of " + to_string(whole[i + 1]));
    x = c.slice(x, static_cast<int64_t>(i) + 1, crops[2 * i], left);
  }
  return x;
}

}  // namespace tensormill::build
