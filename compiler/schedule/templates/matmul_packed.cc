// Product with a packed matrix (ops/products/matmul_packed.cc): a tile of rows x column blocks stays in
// registers over the whole depth; what follows is applied to the registers. Column panels are the outer loop,
// so that a panel of the matrix is read from memory once and stays in the L2 cache while all rows pass by.
#include <algorithm>

#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kStepsTogether = 4;
constexpr int64_t kMostStepsTogether = 16;

struct Stages {
  std::string sums, root;
};

// The sums and the one stage that is left of what follows them, or empty names.
Stages find_stages(Builder& builder) {
  Stages found;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.attach == AttachKind::kInline) continue;
    std::string& place = stage.reduction ? found.sums : found.root;
    if (!place.empty()) return {};
    place = name;
  }
  if (found.sums.empty() || found.root.empty() || builder.stage(found.sums).shape.size() != 3 ||
      reduce_axes(builder.stage(found.sums)).size() != 1 || !multiplies_panel(builder, found.sums, 2, 0))
    return {};
  return found;
}

// Panels side by side that all rows pass before the next ones, as a knob: the more, the longer a row of x
// stays in the first cache, and the more of the matrix has to stay in the second. `order`: the outer loops.
void group_panels(Builder& builder, const std::string& root, const std::string& panel,
                  std::vector<std::string>& order) {
  const int64_t panels = builder.extent(root, panel);
  if (panels == 1 || order.back() == panel) return;
  const int64_t group = builder.knob("group", 1, divisors(panels));
  if (group == 1) return;
  if (group == panels) {
    std::erase(order, panel);
    order.push_back(panel);
    return;
  }
  builder.step("split", {root, panel, std::to_string(group)});
  *std::find(order.begin(), order.end(), panel) = panel + ".o";
  order.push_back(panel + ".i");
}

/// Whether the stages are those of a product whose columns lie in panels of one vector: `blocked` is the
/// shape of the sums, `shape` that of the results.
bool are_panels(const Builder& builder, const std::string& sums, const Shape& blocked, const Shape& shape) {
  if (num_elements(blocked) == 0 || shape.empty() || num_elements(shape) == 0) return false;
  const int64_t columns = shape.back();
  return num_elements(shape) / columns == blocked[0] &&
         (columns + blocked[2] - 1) / blocked[2] == blocked[1] && blocked[2] == builder.lanes(sums);
}

/// The result's axes above a panel of columns.
struct ResultAxes {
  std::string column;
  std::vector<std::string> all;            ///< but the columns
  std::vector<std::string> rows, trivial;  ///< of these, those longer than 1 and the others
};

ResultAxes result_axes(const Builder& builder, const std::string& root) {
  ResultAxes axes;
  axes.all = data_axes(builder.stage(root));
  axes.column = axes.all.back();
  axes.all.pop_back();
  for (const std::string& axis : axes.all)
    (builder.extent(root, axis) > 1 ? axes.rows : axes.trivial).push_back(axis);
  return axes;
}

struct PackedTile {
  RegisterTile tile;
  bool fuses_rows = false;  ///< cut from all rows as one, without a tail
};

// The tile's rows are cut from all rows where that leaves no tail, else from the last dimension of them.
PackedTile tune_tile(Builder& builder, const std::string& root, const Shape& blocked,
                     const ResultAxes& axes) {
  const target::CpuFacts& facts = builder.target().facts;
  const int64_t last = axes.rows.empty() ? 1 : builder.extent(root, axes.rows.back());
  PackedTile packed{choose_tile(last, blocked[1], false, facts)};
  RegisterTile& tile = packed.tile;
  tile.cycles *= static_cast<double>(blocked[0] / last);
  if (axes.rows.size() > 1) {
    const RegisterTile whole = choose_tile(blocked[0], blocked[1], true, facts);
    packed.fuses_rows = builder.knob("fuse_rows", whole.cycles <= tile.cycles ? 1 : 0, {0, 1}) == 1;
    if (packed.fuses_rows) tile = whole;
  }
  tile.vectors =
      builder.knob("tile_vectors", tile.vectors, range_candidates(1, std::min<int64_t>(blocked[1], 8)));
  const int64_t most = std::max<int64_t>((facts.vector_registers - 2) / tile.vectors, 1);
  std::vector<int64_t> heights = range_candidates(1, std::min(packed.fuses_rows ? blocked[0] : last, most));
  if (packed.fuses_rows) std::erase_if(heights, [&](int64_t height) { return blocked[0] % height != 0; });
  while (!std::binary_search(heights.begin(), heights.end(), tile.rows)) --tile.rows;
  tile.rows = builder.knob("tile_rows", tile.rows, heights);
  return packed;
}

// Loops over panels and tiles, in parallel, with a tile written out inside them; the loop whose iterations
// compute a tile each.
std::string schedule_result(Builder& builder, const std::string& root, const PackedTile& packed,
                            const ResultAxes& axes, int64_t lanes, double work) {
  const std::string& column = axes.column;
  builder.step("split", {root, column, std::to_string(packed.tile.vectors * lanes)});
  builder.step("split", {root, column + ".i", std::to_string(lanes)});
  std::vector<std::string> rows = axes.rows, order = axes.trivial;
  order.push_back(column + ".o");
  std::vector<std::string> inner = {column + ".i.o", column + ".i.i"};
  if (!rows.empty()) {
    if (packed.fuses_rows) {
      rows = {builder.fuse(root, axes.all)};
      order = {column + ".o"};
    }
    builder.step("split", {root, rows.back(), std::to_string(packed.tile.rows)});
    inner.insert(inner.begin(), rows.back() + ".i");
    rows.back() += ".o";
    order.insert(order.end(), rows.begin(), rows.end());
  }
  group_panels(builder, root, column + ".o", order);
  std::vector<std::string> args = {root};
  args.insert(args.end(), order.begin(), order.end());
  args.insert(args.end(), inner.begin(), inner.end());
  builder.step("reorder", args);
  for (size_t i = 0; i < inner.size(); ++i)
    builder.step(i + 1 < inner.size() ? "unroll" : "vectorize", {root, inner[i]});
  return builder.parallelize(root, builder.fuse(root, order), work);
}

// The sums of a tile in registers over the whole depth. Several steps along it are written out: the loop's
// own instructions would take a seventh of the slots of the multiply-adds.
void schedule_sums(Builder& builder, const std::string& sums, const RegisterTile& tile, int64_t depth) {
  builder.step("split", {sums, "i0", std::to_string(tile.rows)});
  builder.step("split", {sums, "i1", std::to_string(tile.vectors)});
  std::vector<std::string> nest = {sums, "i0.o", "i1.o"};
  for (const std::string& axis :
       tune_unroll(builder, sums, "r0", "unroll_depth", depth % kStepsTogether == 0 ? kStepsTogether : 1,
                   kMostStepsTogether))
    nest.push_back(axis);
  nest.insert(nest.end(), {"i0.i", "i1.i", "i2"});
  builder.step("reorder", nest);
  for (const char* axis : {"i0.i", "i1.i"}) builder.step("unroll", {sums, axis});
  builder.step("vectorize", {sums, "i2"});
}

}  // namespace

bool template_matmul_packed(Builder& builder) {
  builder.inline_injective();
  const auto [sums, root] = find_stages(builder);
  if (root.empty()) return false;
  const Shape blocked = builder.stage(sums).shape;
  const int64_t depth = builder.extent(sums, "r0");
  if (!are_panels(builder, sums, blocked, builder.stage(root).shape)) return false;
  const ResultAxes axes = result_axes(builder, root);
  const PackedTile packed = tune_tile(builder, root, blocked, axes);
  const double work = static_cast<double>(num_elements(blocked)) * static_cast<double>(depth);
  const std::string inside = schedule_result(builder, root, packed, axes, blocked[2], work);
  schedule_sums(builder, sums, packed.tile, depth);
  builder.step("compute_at", {sums, root, inside});
  builder.step("store_in", {sums, "register"});
  return true;
}

}  // namespace tensormill::schedule
