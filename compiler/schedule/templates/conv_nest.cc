#include "compiler/schedule/templates/conv_nest.h"

#include <algorithm>

namespace tensormill::schedule {

namespace {

// The window's columns, whose copies at the border leave out what is outside, are unrolled up to this many.
constexpr int64_t kMaxWindowColumns = 11;
constexpr int64_t kMaxLaneSteps = 8;  // lanes of the input that may be written out one after the other
constexpr int64_t kMaxTaps = 64;      // of a depthwise window; past this, they stay loops

}  // namespace

BlockAxes block_axes(const Stage& stage) {
  const size_t dims = stage.shape.size();
  const auto name = [&](size_t from_end) { return "i" + std::to_string(dims - from_end); };
  return {dims > 5 ? name(4) : "", dims > 4 ? name(3) : "", name(2), name(1)};
}

bool reads_elementwise(const Builder& builder, const std::string& root, const std::string& stage) {
  const Shape& shape = builder.stage(root).shape;
  const Shape strides = row_major_strides(shape);
  for (const Access& access : builder.accesses(root)) {
    if (access.tensor != builder.stage(stage).tensor.get()) continue;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (access.irregular[d] || (shape[d] != 1 && access.stride[d] != strides[d])) return false;
    }
  }
  return true;
}

bool is_picked(const Builder& builder, const std::string& name) {
  if (name.empty()) return false;
  const size_t dims = builder.stage(name).shape.size();
  if (dims < 4 || dims > 6) return false;
  const std::vector<Access> accesses = builder.accesses(name);
  return accesses.size() == 1 && builder.state().input_of(accesses[0].tensor) >= 0 &&
         accesses[0].stride[dims - 1] == 1 &&
         std::count(accesses[0].irregular.begin(), accesses[0].irregular.end(), 0) ==
             static_cast<std::ptrdiff_t>(dims);
}

bool find_conv_nest(Builder& builder, ConvNest& nest) {
  const Anchor found = only_reduction(builder);
  nest.root = found.root;
  nest.sums = found.stage;
  if (nest.sums.empty() || num_elements(builder.stage(nest.root).shape) == 0) return false;
  const size_t dims = builder.stage(nest.sums).shape.size();
  if (dims < 4 || !multiplies_panel(builder, nest.sums, dims - 1, dims - 2)) return false;
  for (const Access& access : builder.accesses(nest.sums)) {
    if (builder.state().input_of(access.tensor) >= 0) continue;
    for (const std::string& name : builder.stage_names()) {
      if (builder.stage(name).tensor.get() == access.tensor) nest.picked = name;
    }
    if (!is_picked(builder, nest.picked)) return false;
  }
  if (nest.sums == nest.root) {
    builder.step("cache_write", {nest.root});
    nest.sums = nest.root + ".c";
  } else {
    builder.inline_injective({nest.picked});
  }
  const Shape &root = builder.stage(nest.root).shape, &sums = builder.stage(nest.sums).shape;
  nest.flat = sums.size() == 4;
  if (root.size() < 4 || root.size() > 6 || num_elements(root) != num_elements(sums) ||
      builder.stage(nest.root).reduction || (!nest.flat && sums.size() != root.size()))
    return false;
  nest.rank = root.size() - 3;
  if (builder.readers(nest.sums) != std::vector<std::string>{nest.root} ||
      !reads_elementwise(builder, nest.root, nest.sums)) {
    return false;
  }
  const int64_t block = root.back();
  if ((block & (block - 1)) != 0 || block > 4 * builder.lanes(nest.sums)) return false;
  builder.guard(nest.sums);
  return true;
}

void schedule_picked(Builder& builder, const ConvNest& nest) {
  if (nest.picked.empty()) return;
  const double work = static_cast<double>(num_elements(builder.stage(nest.picked).shape));
  builder.parallelize(nest.picked, builder.fuse(nest.picked, {"i0", "i1"}), work);
  builder.step("vectorize", {nest.picked, block_axes(builder.stage(nest.picked)).lanes});
}

ConvTile tune_conv_tile(Builder& builder, const ConvTile& analytic, const ConvExtents& extents) {
  const int64_t blocks =
      builder.knob("tile_blocks", analytic.blocks, range_candidates(1, std::min<int64_t>(extents.blocks, 6)));
  // With other blocks the analytic columns may not fit.
  const int64_t fitting =
      (builder.target().facts.vector_registers - 2) / (blocks * extents.vectors_per_block);
  const int64_t most = std::max<int64_t>(std::min(extents.columns, fitting), 1);
  const int64_t columns =
      builder.knob("tile_columns", std::min(analytic.columns, most), range_candidates(1, most));
  std::vector<int64_t> rows = divisors(extents.rows);
  std::erase_if(rows, [&](int64_t count) { return count > 1 && count * columns > fitting; });
  return {columns, blocks, rows.size() > 1 ? builder.knob("tile_rows", 1, rows) : 1};
}

std::string cut_tile_rows(Builder& builder, const std::string& stage, const std::string& rows,
                          const ConvTile& tile, std::vector<std::string>& inner) {
  if (tile.rows == 1) return rows;
  builder.step("split", {stage, rows, std::to_string(tile.rows)});
  builder.step("unroll", {stage, rows + ".i"});
  inner.push_back(rows + ".i");
  return rows + ".o";
}

ConvPass tune_conv_pass(Builder& builder, ConvPass pass, int64_t parts, int64_t images, int64_t tiles) {
  if (pass.part == 0) pass.part = parts;
  pass.part = builder.knob("part", pass.part, divisors(parts));
  pass.images = builder.knob("images", pass.images, divisors(images));
  // All tiles in one group are the loops of parts of one; and there a group changes nothing.
  std::vector<int64_t> groups = divisors(tiles);
  if (groups.size() > 1) groups.pop_back();
  if (pass.part > 1 && groups.size() > 1) pass.group = builder.knob("group", pass.group, groups);
  return pass;
}

int64_t reduction_steps(const Stage& stage) {
  int64_t steps = 1;
  for (size_t i = stage.shape.size(); i < static_cast<size_t>(stage.num_roots); ++i)
    steps *= stage.axes[i].extent;
  return steps;
}

ConvPass share_image(ConvPass pass, int64_t images, int64_t parts, bool uneven,
                     const target::CpuFacts& facts) {
  const int64_t cores = std::max(facts.num_cores, 1);
  const int64_t share = (parts + cores - 1) / cores;
  const bool fair = uneven ? share * cores * 8 <= parts * 9 : parts % cores == 0;
  if (images % cores == 0 || !fair) return pass;
  if (pass.part == 0 || pass.part > share) pass.part = share;
  return pass;
}

std::string schedule_conv_root(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                               const ConvPass& pass) {
  const std::string& root = nest.root;
  const int64_t batch = builder.stage(root).shape[0];
  const double work = static_cast<double>(num_elements(builder.stage(root).shape)) *
                      static_cast<double>(reduction_steps(builder.stage(nest.sums)));
  const BlockAxes axes = block_axes(builder.stage(root));
  std::string columns = axes.columns, parts, images = "i0";
  std::vector<std::string> inner;
  if (nest.flat) {
    const std::vector<std::string> all = data_axes(builder.stage(root));
    columns = builder.fuse(root, {all.begin() + 2, all.end() - 1});
  } else {
    parts = cut_tile_rows(builder, root, axes.rows, tile, inner);
  }
  builder.step("split", {root, columns, std::to_string(tile.columns)});
  builder.step("split", {root, "i1", std::to_string(tile.blocks)});
  if (nest.flat) parts = columns + ".o";
  builder.step("split",
               {root, parts, std::to_string(pass.part > 0 ? pass.part : builder.extent(root, parts))});
  std::vector<std::string> outer = {parts + ".o", "i1.o", parts + ".i"};
  if (pass.group > 1) {
    builder.step("split", {root, "i1.o", std::to_string(pass.group)});
    outer = {parts + ".o", "i1.o.o", parts + ".i", "i1.o.i"};
  }
  if (!nest.flat && !axes.planes.empty()) outer.insert(outer.begin(), axes.planes);
  if (pass.images < batch) {
    builder.step("split", {root, "i0", std::to_string(pass.images)});
    outer.insert(outer.begin(), "i0.o");
    images = "i0.i";
  }
  // The images of a pass stay out of the fused index, which would otherwise hide from the bounds that a row
  // belongs to one image.
  std::vector<std::string> order = {root};
  order.insert(order.end(), outer.begin(), outer.end());
  order.push_back(images);
  if (!nest.flat) order.push_back(columns + ".o");
  inner.insert(inner.end(), {columns + ".i", "i1.i", axes.lanes});
  order.insert(order.end(), inner.begin(), inner.end());
  builder.step("reorder", order);
  builder.parallelize(root, builder.fuse(root, outer), work);
  builder.step("unroll", {root, columns + ".i"});
  builder.step("unroll", {root, "i1.i"});
  builder.step("vectorize", {root, axes.lanes});
  return nest.flat ? images : columns + ".o";
}

namespace {

// Loops over blocks of input channels (the first), the window and lanes (the last), outermost first. A block
// of the first ones may stand inside of the window.
std::vector<std::string> schedule_reduction_loops(Builder& builder, const std::string& sums,
                                                  const std::vector<std::string>& reduced,
                                                  const ConvTile& tile) {
  const int64_t blocks = builder.extent(sums, "r0");
  const std::string& lanes = reduced.back();
  std::vector<std::string> window(reduced.begin() + 1, reduced.end() - 1);
  const bool has_window = std::any_of(
      window.begin(), window.end(), [&](const std::string& axis) { return builder.extent(sums, axis) > 1; });
  std::vector<std::string> order(reduced.begin(), reduced.end() - 1);
  const int64_t inside = has_window && blocks > 1 ? builder.knob("k_block", 1, divisors(blocks)) : 1;
  if (inside == blocks && blocks > 1) {
    std::rotate(order.begin(), order.begin() + 1, order.end());
  } else if (inside > 1) {
    builder.step("split", {sums, "r0", std::to_string(inside)});
    order.front() = "r0.o";
    order.emplace_back("r0.i");
  }
  // The copies of a window's columns have their loops' instructions apart from each other already.
  const int64_t steps =
      has_window ? 1 : steps_together(tile, builder.extent(sums, lanes), builder.target().facts);
  for (const std::string& axis : tune_unroll(builder, sums, lanes, "unroll_lanes", steps, kMaxLaneSteps))
    order.push_back(axis);
  return order;
}

}  // namespace

void schedule_conv_sums(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                        const std::string& inside) {
  const std::string& sums = nest.sums;
  const auto [planes, rows, columns, lanes] = block_axes(builder.stage(sums));
  builder.step("split", {sums, columns, std::to_string(tile.columns)});
  builder.step("split", {sums, "i1", std::to_string(tile.blocks)});
  std::vector<std::string> order = {sums, "i0", "i1.o"};
  std::vector<std::string> inner;
  if (!planes.empty()) order.push_back(planes);
  if (!nest.flat) order.push_back(cut_tile_rows(builder, sums, rows, tile, inner));
  order.push_back(columns + ".o");
  std::vector<std::string> reduced = reduce_axes(builder.stage(sums));
  // The window's columns stand before the lanes of the input, where these are an axis of their own.
  const std::string window_columns = "r" + std::to_string(nest.rank);
  if (reduced.size() == nest.rank + 2) {
    reduced = schedule_reduction_loops(builder, sums, reduced, tile);
  } else if (nest.rank > 1 && builder.knob("rows_inside", 1, {0, 1}) == 1) {
    // Without a loop over lanes of the input inside, the copies of the window's columns would share
    // broadcasts over more registers than there are: each gets a loop over the window's rows of its own.
    std::swap(reduced[nest.rank - 1], reduced[nest.rank]);
  }
  order.insert(order.end(), reduced.begin(), reduced.end());
  inner.insert(inner.end(), {columns + ".i", "i1.i", lanes});
  order.insert(order.end(), inner.begin(), inner.end());
  builder.step("reorder", order);
  if (nest.is_windowed() && builder.extent(sums, window_columns) <= kMaxWindowColumns)
    builder.step("unroll", {sums, window_columns});
  builder.step("unroll", {sums, columns + ".i"});
  builder.step("unroll", {sums, "i1.i"});
  builder.step("vectorize", {sums, lanes});
  builder.step("compute_at", {sums, nest.root, inside});
  builder.step("store_in", {sums, "register"});
}

int64_t depthwise_columns(int64_t width, int64_t vectors_per_block, const target::CpuFacts& facts) {
  // Beside the accumulators: the weights of a row of taps and the columns that slide along.
  const int64_t fitting = facts.vector_registers < 32 ? 7 : facts.products_per_cycle == 1 ? 8 : 16;
  const int64_t most = std::max<int64_t>(fitting / vectors_per_block, 1);
  for (int64_t columns = std::min(width, most); columns > most / 2; --columns) {
    if (width % columns == 0) return columns;
  }
  return std::min(width, most);
}

void schedule_depthwise_sums(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                             const std::string& inside) {
  const std::string& sums = nest.sums;
  const bool written_out = reduction_steps(builder.stage(sums)) <= kMaxTaps;
  const auto [planes, rows, columns, lanes] = block_axes(builder.stage(sums));
  builder.step("split", {sums, columns, std::to_string(tile.columns)});
  std::vector<std::string> inner;
  std::vector<std::string> order = {sums, "i0", "i1"};
  if (!planes.empty()) order.push_back(planes);
  if (!rows.empty()) order.push_back(cut_tile_rows(builder, sums, rows, tile, inner));
  order.push_back(columns + ".o");
  std::vector<std::string> taps = reduce_axes(builder.stage(sums));
  order.insert(order.end(), taps.begin(), taps.end() - 1);
  order.insert(order.end(), inner.begin(), inner.end());
  order.insert(order.end(), {columns + ".i", taps.back()});
  if (builder.knob("taps_outside", 0, {0, 1}) == 1) std::swap(order[order.size() - 2], order.back());
  order.push_back(lanes);
  builder.step("reorder", order);
  for (const std::string& axis : taps) {
    const int64_t unrolls = written_out ? 1 : 0;
    if (builder.knob("unroll_" + axis, unrolls, {0, unrolls}) == 1) builder.step("unroll", {sums, axis});
  }
  builder.step("unroll", {sums, columns + ".i"});
  builder.step("vectorize", {sums, lanes});
  builder.step("compute_at", {sums, nest.root, inside});
  builder.step("store_in", {sums, "register"});
}

}  // namespace tensormill::schedule
