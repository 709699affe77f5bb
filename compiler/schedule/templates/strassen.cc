// Strassen's product (compiler/ops/products/product_strassen.cc): the seven products of a register tile of
// rows x column blocks stay in the first cache, and their sums, with the epilogue, in registers. Where the
// weights stay in half of the L2 cache, or a block of many rows does, the sums of the blocks of x are made
// for such a block and the whole depth while all groups of columns pass by. Where the sums of all rows stay
// there, these come first, and tasks are groups of columns, so that weights are read once. Elsewhere all
// products are made one after the other, so that sums, weights and products pass the caches once.
#include <algorithm>

#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

namespace {

/// The stages of the program, by what they do.
struct StrassenParts {
  std::string blocks, left;  ///< of x and their sums: [products, batch, depth blocks, rows, lanes]
  std::string product;       ///< [products, batch, column blocks, rows, lanes]
  std::string results;       ///< their sums, four
  std::string root;
};

/// Finds the parts and inlines what follows the sums up to the output. False when the program has another
/// form.
bool find_strassen(Builder& builder, StrassenParts& parts) {
  const Anchor found = only_reduction(builder);
  parts.root = found.root;
  parts.product = found.stage;
  if (parts.product.empty() || reduce_axes(builder.stage(parts.product)).size() != 2) return false;
  parts.left = only_producer(builder, parts.product);
  parts.blocks = parts.left.empty() ? "" : only_producer(builder, parts.left);
  parts.results = only_reader(builder, parts.product);
  if (parts.blocks.empty() || parts.results.empty() || parts.results == parts.root) return false;
  const Shape &blocks = builder.stage(parts.blocks).shape, &left = builder.stage(parts.left).shape,
              &product = builder.stage(parts.product).shape, &results = builder.stage(parts.results).shape;
  if (blocks.size() != 5 || left.size() != 5 || product.size() != 5 || results.size() != 5 ||
      left[0] != product[0] || blocks[0] != results[0] || num_elements(builder.stage(parts.root).shape) == 0)
    return false;
  builder.inline_injective({parts.blocks, parts.left, parts.results});
  return true;
}

/// What is made first: sums of the blocks of x for a block of rows; for all of them; and all products.
enum class Order : uint8_t { kBlocks, kSums, kProducts };

/// How the loops are cut.
struct StrassenCut {
  int64_t half = 1;   ///< rows of a half
  int64_t side = 1;   ///< column blocks of a half
  int64_t group = 1;  ///< column blocks of a register tile: their weights lie side by side
  int64_t rows = 1;   ///< of a register tile, a divisor of a half
  int64_t block = 1;  ///< rows whose sums are held at a time, a multiple of them
  Order order = Order::kBlocks;
  bool is_plain = false;  ///< the root's columns are one axis, else blocks and lanes
};

/// The largest divisor of `extent` that is at most `most`; 1 at least.
int64_t largest_part(int64_t extent, int64_t most) {
  return divisors(extent, std::max<int64_t>(most, 1)).back();
}

/// The order and the tiles of a block of rows, by what passes the L2 cache for each vector of multiply-adds:
/// a block reads all weights, products are written and read once for the depth of a half.
void choose_order(const Shape& left, const Shape& product, const target::CpuFacts& facts, StrassenCut& cut) {
  const int64_t budget = facts.l2_bytes / 2, depth = left[2] * left[4], batch = product[1];
  const int64_t row_bytes = left[0] * depth * static_cast<int64_t>(sizeof(float));
  const int64_t weights = row_bytes * cut.side * product[4], tiles = cut.half / cut.rows;
  const int64_t tasks = facts.num_cores == 1 ? 1 : 2 * facts.num_cores;
  const int64_t fitting = std::min(budget / (row_bytes * cut.rows), tiles * batch / tasks);
  cut.block = cut.rows * largest_part(tiles, fitting);
  if (weights <= budget) return;
  if (row_bytes * cut.half * batch <= budget) {
    cut.order = Order::kSums;
  } else if (1.0 / static_cast<double>(cut.block) >
             2.0 / static_cast<double>(depth) + 1.0 / static_cast<double>(cut.half * batch)) {
    cut.order = Order::kProducts;
  }
}

StrassenCut cut_halves(Builder& builder, const StrassenParts& parts) {
  const Shape product = builder.stage(parts.product).shape, left = builder.stage(parts.left).shape;
  const target::CpuFacts& facts = builder.target().facts;
  StrassenCut cut{product[3], product[2]};
  cut.is_plain = builder.stage(parts.root).shape.back() != product[4];
  for (const Access& access : builder.accesses(parts.product)) {
    const Shape shape = access.tensor->constant_shape();
    if (shape.size() == 4) cut.group = shape[3] / product[4];
  }
  // Sums, a group of weights and one broadcast value.
  const int64_t most = std::max<int64_t>((facts.vector_registers - 1 - cut.group) / cut.group, 1);
  const std::vector<int64_t> rows = divisors(cut.half, most);
  cut.rows = builder.knob("tile_rows", rows.back(), rows);
  choose_order(left, product, facts, cut);
  cut.order = static_cast<Order>(builder.knob("order", static_cast<int64_t>(cut.order), {0, 1, 2}));
  if (cut.order == Order::kBlocks)
    cut.block = cut.rows * builder.knob("block", cut.block / cut.rows, divisors(cut.half / cut.rows));
  else
    cut.block = cut.half;
  return cut;
}

std::string split_into(Builder& builder, const std::string& name, const std::string& axis, int64_t factor) {
  builder.step("split", {name, axis, std::to_string(factor)});
  return axis + ".i";
}

/// The root's axes, from the outside in.
struct RootAxes {
  std::string task;   ///< inside of which sums are held
  std::string tile;   ///< of a register tile
  std::string place;  ///< of one row and column block in it, in all four blocks of the result
};

/// The columns' axes: halves, groups of blocks, the blocks of a group, lanes.
std::vector<std::string> split_columns(Builder& builder, const StrassenParts& parts, const StrassenCut& cut,
                                       int64_t lanes) {
  const std::string& root = parts.root;
  const std::string last = "i" + std::to_string(builder.stage(root).shape.size() - 1);
  const std::string column = cut.is_plain ? last : "i1";
  const int64_t unit = cut.is_plain ? lanes : 1;
  std::string inner = split_into(builder, root, column, cut.side * unit);
  std::vector<std::string> axes = {column + ".o", inner + ".o"};
  inner = split_into(builder, root, inner, cut.group * unit);
  if (cut.is_plain) {
    split_into(builder, root, inner, lanes);
    axes.insert(axes.end(), {inner + ".o", inner + ".i"});
  } else {
    axes.insert(axes.end(), {inner, last});
  }
  return axes;
}

double work_of(const Builder& builder, const StrassenParts& parts) {
  double work = 1;
  for (const char* axis : {"i0", "i1", "i2", "i3", "i4", "r0", "r1"})
    work *= static_cast<double>(builder.extent(parts.product, axis));
  return work;
}

RootAxes schedule_blocks(Builder& builder, const StrassenParts& parts, const StrassenCut& cut) {
  const std::string& root = parts.root;
  const int64_t lanes = builder.stage(parts.product).shape[4];
  const size_t rank = builder.stage(root).shape.size();
  const std::vector<std::string> columns = split_columns(builder, parts, cut, lanes);
  std::vector<std::string> rows;
  for (size_t d = cut.is_plain ? 1 : 2; d + 1 < rank; ++d) rows.push_back("i" + std::to_string(d));
  const std::string row = builder.fuse(root, rows);
  const std::string in_half = split_into(builder, root, row, cut.half);
  const std::string in_block = split_into(builder, root, in_half, cut.block);
  const std::string in_tile = split_into(builder, root, in_block, cut.rows);
  const std::string half = row + ".o", block = in_half + ".o", tile = in_block + ".o";
  std::vector<std::string> outer = {"i0", block, columns[1]};
  if (cut.order != Order::kBlocks) outer = {columns[1], "i0", block};
  std::vector<std::string> order = {root};
  order.insert(order.end(), outer.begin(), outer.end());
  order.insert(order.end(), {tile, columns[2], in_tile, half, columns[0], columns[3]});
  builder.step("reorder", order);
  if (cut.order == Order::kBlocks) outer = {builder.fuse(root, {"i0", block})};
  const std::string task = builder.parallelize(root, outer[0], work_of(builder, parts));
  unroll_tile(builder, root, {half, columns[0]}, columns[3]);
  return {task, tile, in_tile};
}

/// Lanes of the depth that may be written out one after the other.
constexpr int64_t kMaxDepthSteps = 8;

void schedule_products(Builder& builder, const StrassenParts& parts, const StrassenCut& cut,
                       const RootAxes& axes) {
  const std::string m = parts.product, c = m + ".c";
  const double work = work_of(builder, parts);
  builder.step("cache_write", {m});
  if (cut.order != Order::kProducts) builder.step("compute_at", {m, parts.root, axes.tile});
  for (const std::string& name : {m, c}) {
    split_into(builder, name, "i2", cut.group);
    split_into(builder, name, "i3", cut.rows);
  }
  builder.step("reorder", {m, "i0", "i1", "i2.o", "i3.o", "i3.i", "i2.i", "i4"});
  if (cut.order == Order::kProducts) builder.parallelize(m, builder.fuse(m, {"i0", "i1", "i2.o"}), work);
  std::vector<std::string> order = {c, "i0", "i1", "i2.o", "i3.o", "r0"};
  for (const std::string& axis : tune_unroll(builder, c, "r1", "unroll_lanes", 4, kMaxDepthSteps))
    order.push_back(axis);
  order.insert(order.end(), {"i3.i", "i2.i", "i4"});
  builder.step("reorder", order);
  unroll_tile(builder, m, {"i3.i", "i2.i"}, "i4");
  unroll_tile(builder, c, {"i3.i", "i2.i"}, "i4");
  hold_in_registers(builder, c, m, "i3.o");
}

}  // namespace

bool template_strassen(Builder& builder) {
  StrassenParts parts;
  if (!find_strassen(builder, parts)) return false;
  const StrassenCut cut = cut_halves(builder, parts);
  const RootAxes axes = schedule_blocks(builder, parts, cut);
  unroll_tile(builder, parts.results, {"i0"}, "i4");
  builder.step("reorder", {parts.results, "i1", "i2", "i3", "i0", "i4"});
  hold_in_registers(builder, parts.results, parts.root, axes.place);
  schedule_products(builder, parts, cut, axes);
  builder.step("reorder", {parts.left, "i1", "i2", "i3", "i0", "i4"});
  unroll_tile(builder, parts.left, {"i0"}, "i4");
  if (cut.order == Order::kBlocks) {
    builder.step("compute_at", {parts.left, parts.root, axes.task});
  } else {
    const double work = static_cast<double>(num_elements(builder.stage(parts.left).shape)) * 2;
    builder.parallelize(parts.left, builder.fuse(parts.left, {"i1", "i2"}), work);
  }
  unroll_tile(builder, parts.blocks, {"i0"}, "i4");
  hold_in_registers(builder, parts.blocks, parts.left, "i3");
  return true;
}

}  // namespace tensormill::schedule
