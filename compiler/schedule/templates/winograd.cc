// Winograd convolution (compiler/ops/windows/conv_winograd.cc): V = BᵀdB of a block of tiles for all input
// channels, then a matrix product for each point with a register tile of tiles x output blocks, then Y = AᵀMA
// with the epilogue in registers. V of a block and M of the block and one group of output blocks stay in L2.
// Where the weights are too large to be read again for each block, V of all tiles is made first: tasks are
// then groups of output blocks, or, where V is too large to be read again for each of these, all products are
// made point by point, so that V, the weights and M pass the caches once.
#include <algorithm>

#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

namespace {

/// The stages of the program, by what they do.
struct Parts {
  std::string window, half, input;  ///< d, Bᵀd, V: [points, in blocks, tiles, points, lanes]
  std::string product;              ///< M: [points, out blocks, tiles, points, lanes]
  std::string left, output;         ///< AᵀM, Y
  std::string root;                 ///< [batch, out blocks, rows, columns, lanes]
};

/// Finds the parts and inlines what follows Y up to the output. False when the program has another form.
bool find_parts(Builder& builder, Parts& parts) {
  const Anchor found = only_reduction(builder);
  parts.root = found.root;
  parts.product = found.stage;
  if (parts.product.empty() || builder.stage(parts.product).shape.size() != 5) return false;
  parts.input = only_producer(builder, parts.product);
  parts.half = parts.input.empty() ? "" : only_producer(builder, parts.input);
  parts.window = parts.half.empty() ? "" : only_producer(builder, parts.half);
  parts.left = only_reader(builder, parts.product);
  parts.output = parts.left.empty() ? "" : only_reader(builder, parts.left);
  if (parts.window.empty() || parts.output.empty() || parts.output == parts.root) return false;
  for (const std::string& name : {parts.window, parts.product, parts.output, parts.root}) {
    if (builder.stage(name).shape.size() != 5) return false;
  }
  builder.inline_injective({parts.window, parts.half, parts.input, parts.left, parts.output});
  return true;
}

/// How the loops are cut.
struct Cut {
  int64_t tile = 4;     ///< side of a tile of outputs
  int64_t group = 1;    ///< output blocks of a register tile: their weights lie side by side
  int64_t rows = 1;     ///< tiles of a register tile
  int64_t block = 1;    ///< tiles whose V is held at a time
  bool whole = false;   ///< V of all tiles is made first
  bool phases = false;  ///< then M of all tiles and output blocks
};

/// The number of tiles in a register tile: a divisor near `most` where there is one, else balanced parts.
int64_t register_rows(int64_t tiles, int64_t most) {
  most = std::max<int64_t>(most, 1);
  for (int64_t factor = std::min(tiles, most); 4 * factor >= 3 * most; --factor) {
    if (tiles % factor == 0) return factor;
  }
  const int64_t parts = (tiles + most - 1) / most;
  return (tiles + parts - 1) / parts;
}

/// Of a register tile where a core starts one multiply-add a cycle: more sums hide no more of its latency.
constexpr int64_t kRowsOfOne = 8;
/// Lanes of V that may be written out one after the other.
constexpr int64_t kMaxTileLaneSteps = 8;
/// V and M of all tiles may take this many times the L2 cache.
constexpr int64_t kMaxPhases = 16;

/// The order as a choice: by blocks, V of all tiles first, or V and then M of all tiles.
void tune_order(Builder& builder, Cut& cut, int64_t tiles) {
  const int64_t analytic = cut.phases ? 2 : cut.whole ? 1 : 0;
  const int64_t order = builder.knob("order", analytic, {0, 1, 2});
  const int64_t register_tiles = (tiles + cut.rows - 1) / cut.rows;
  if (order != analytic) cut.block = order == 1 ? tiles : cut.rows;
  cut.whole = order >= 1;
  cut.phases = order == 2;
  if (!cut.whole)
    cut.block = cut.rows * builder.knob("block", cut.block / cut.rows, tile_candidates(register_tiles, 64));
}

Cut choose_cut(Builder& builder, const Parts& parts) {
  const Stage& product = builder.stage(parts.product);
  const Shape input = builder.stage(parts.input).shape;
  const target::CpuFacts& facts = builder.target().facts;
  const int64_t tiles = product.shape[2], lanes = product.shape[4], points = product.shape[0];
  Cut cut;
  cut.tile = builder.stage(parts.output).shape[0];
  for (const Access& access : builder.accesses(parts.product)) {
    const Shape shape = access.tensor->constant_shape();
    if (shape.size() == 4) cut.group = shape[3] / lanes;
  }
  // Accumulators, a group of weights and one broadcast value.
  const int64_t most_rows = std::min(tiles, (facts.vector_registers - 1 - cut.group) / cut.group);
  const int64_t enough = facts.products_per_cycle == 1 ? std::min(most_rows, kRowsOfOne) : most_rows;
  cut.rows = builder.knob("tile_rows", register_rows(tiles, enough), range_candidates(1, most_rows));
  const int64_t bytes = points * points * static_cast<int64_t>(dtype_bytes(product.dtypes[0]));
  const int64_t depth = input[1] * lanes, budget = facts.l2_bytes / 2;
  const int64_t weights = bytes * depth * product.shape[1] * lanes;
  cut.whole = weights > budget && bytes * depth * tiles <= budget;
  cut.block = cut.rows;
  if (cut.whole) cut.block = tiles;
  const int64_t v_and_m = bytes * tiles * (depth + product.shape[1] * lanes);
  if (cut.whole || weights <= budget) {
    tune_order(builder, cut, tiles);
    return cut;
  }
  if (v_and_m <= kMaxPhases * facts.l2_bytes) {
    cut.whole = cut.phases = true;
  } else {
    const int64_t held = std::max<int64_t>(budget / (bytes * depth * cut.rows), 1);
    const int64_t register_tiles = (tiles + cut.rows - 1) / cut.rows;
    const int64_t tasks = 2 * facts.num_cores;
    cut.block = cut.rows * std::min(held, std::max<int64_t>((register_tiles + tasks - 1) / tasks, 1));
  }
  tune_order(builder, cut, tiles);
  return cut;
}

/// V, with d and Bᵀd of one tile and block of channels in registers.
void schedule_input(Builder& builder, const Parts& parts, const std::string& outer, bool whole) {
  const std::string& v = parts.input;
  // Tiles outside of the input blocks read along the image's rows last.
  std::vector<std::string> outer_axes = {"i1", "i2"};
  if (builder.knob("input_tiles_outside", 0, {0, 1}) == 1) std::swap(outer_axes[0], outer_axes[1]);
  builder.step("reorder", {v, outer_axes[0], outer_axes[1], "i0", "i3", "i4"});
  std::string inside = outer_axes[1];
  if (whole) {
    const double work = static_cast<double>(num_elements(builder.stage(v).shape)) * 8;
    inside = builder.parallelize(v, builder.fuse(v, outer_axes), work);
  } else {
    builder.step("compute_at", {v, parts.root, outer});
  }
  unroll_tile(builder, v, {"i0", "i3"}, "i4");
  for (const std::string& name : {parts.half, parts.window}) {
    unroll_tile(builder, name, {"i0", "i3"}, "i4");
    hold_in_registers(builder, name, v, inside);
  }
  builder.step("reorder", {parts.half, "i3", "i0"});
}

/// M of a group of output blocks, or of all, point by point.
void schedule_product(Builder& builder, const Parts& parts, const Cut& cut, const std::string& inside,
                      double work) {
  const std::string m = parts.product, c = m + ".c";
  builder.step("cache_write", {m});
  if (!cut.phases) builder.step("compute_at", {m, parts.root, inside});
  for (const std::string& name : {m, c}) {
    builder.step("split", {name, "i1", std::to_string(cut.group)});
    builder.step("split", {name, "i2", std::to_string(cut.rows)});
  }
  // Which of weights and V stays in the first cache: a group of weights for all tiles, or a tile of V for all
  // groups.
  std::vector<std::string> walk = {"i1.o", "i2.o"};
  const bool is_choice = builder.extent(m, "i1.o") > 1 && builder.extent(m, "i2.o") > 1 && cut.phases;
  if (is_choice && builder.knob("tiles_outside", 0, {0, 1}) == 1) std::swap(walk[0], walk[1]);
  builder.step("reorder", {m, "i0", "i3", walk[0], walk[1], "i2.i", "i1.i", "i4"});
  if (cut.phases) builder.parallelize(m, builder.fuse(m, {"i0", "i3", walk[0]}), work);
  std::vector<std::string> order = {c, "i0", "i3", "i1.o", "i2.o", "r0"};
  for (const std::string& axis : tune_unroll(builder, c, "r1", "unroll_lanes", 1, kMaxTileLaneSteps))
    order.push_back(axis);
  order.insert(order.end(), {"i2.i", "i1.i", "i4"});
  builder.step("reorder", order);
  unroll_tile(builder, m, {"i2.i", "i1.i"}, "i4");
  unroll_tile(builder, c, {"i2.i", "i1.i"}, "i4");
  hold_in_registers(builder, c, m, walk[1]);
}

}  // namespace

bool template_winograd(Builder& builder) {
  Parts parts;
  if (!find_parts(builder, parts)) return false;
  const Cut cut = choose_cut(builder, parts);
  const std::string& root = parts.root;
  double work = 1;
  for (const StageAxis& axis : builder.stage(parts.product).axes) work *= static_cast<double>(axis.extent);

  builder.step("split", {root, "i2", std::to_string(cut.tile)});
  builder.step("split", {root, "i3", std::to_string(cut.tile)});
  builder.step("reorder", {root, "i0", "i2.o", "i3.o", "i1", "i2.i", "i3.i", "i4"});
  const std::string tiles = builder.fuse(root, {"i0", "i2.o", "i3.o"});
  const std::string outer = tiles + ".o", inner = tiles + ".i";
  builder.step("split", {root, tiles, std::to_string(cut.block)});
  builder.step("split", {root, "i1", std::to_string(cut.group)});
  std::vector<std::string> order = {root, outer, "i1.o"};
  if (cut.whole && !cut.phases) std::swap(order[1], order[2]);
  order.insert(order.end(), {"i1.i", inner, "i2.i", "i3.i", "i4"});
  builder.step("reorder", order);
  const std::string task = builder.parallelize(root, order[1], work);
  unroll_tile(builder, root, {"i2.i", "i3.i"}, "i4");
  for (const std::string& name : {parts.output, parts.left}) {
    unroll_tile(builder, name, {"i0", "i3"}, "i4");
    hold_in_registers(builder, name, root, inner);
  }
  builder.step("reorder", {parts.left, "i3", "i0"});
  schedule_product(builder, parts, cut, order[2], work);
  schedule_input(builder, parts, task, cut.whole);
  return true;
}

}  // namespace tensormill::schedule
