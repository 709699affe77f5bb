// Pools of blocked tensors: a row of output columns stays in registers, the window is written out column by
// column so that neighbours share what they load. Border columns are cut off as loops of their own, rows of
// the window outside of the image are skipped: no copy with a border.
#include <algorithm>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kMaxPoolTaps = 64;  // past this, the window stays a loop

// Columns of a tile: the largest divisor of the row's length in the upper half of what the registers hold.
int64_t tile_columns(int64_t width, int registers) {
  const int64_t most = registers >= 32 ? 16 : 8;
  for (int64_t columns = std::min(width, most); columns > most / 2; --columns) {
    if (width % columns == 0) return columns;
  }
  return std::min(width, most);
}

// The windows' loops: a row of columns in registers, computed at the root's loop over such rows.
void schedule_windows(Builder& builder, const std::string& root, const std::string& windows,
                      const std::string& columns) {
  const BlockAxes axes = block_axes(builder.stage(windows));
  const std::string outside = axes.columns + ".o", inside = axes.columns + ".i";
  const std::vector<std::string> taps = reduce_axes(builder.stage(windows));
  const bool written_out = reduction_steps(builder.stage(windows)) <= kMaxPoolTaps;
  builder.step("split", {windows, axes.columns, columns});
  std::vector<std::string> order = {windows, "i0", "i1"};
  for (const std::string* axis : {&axes.planes, &axes.rows}) {
    if (!axis->empty()) order.push_back(*axis);
  }
  order.push_back(outside);
  order.insert(order.end(), taps.begin(), taps.end() - 1);
  order.insert(order.end(), {inside, taps.back()});
  if (builder.knob("taps_outside", 0, {0, 1}) == 1) std::swap(order[order.size() - 2], order.back());
  order.push_back(axes.lanes);
  builder.step("reorder", order);
  for (const std::string& axis : taps) {
    const int64_t unrolls = written_out ? 1 : 0;
    if (builder.knob("unroll_" + axis, unrolls, {0, unrolls}) == 1) builder.step("unroll", {windows, axis});
  }
  builder.step("unroll", {windows, inside});
  builder.step("vectorize", {windows, axes.lanes});
  builder.step("compute_at", {windows, root, outside});
  builder.step("store_in", {windows, "register"});
}

}  // namespace

bool template_pool_blocked(Builder& builder) {
  const Anchor found = only_reduction(builder);
  const std::string& root = found.root;
  std::string windows = found.stage;
  if (windows.empty()) return false;
  const Shape shape = builder.stage(root).shape;
  const size_t rank = shape.size() - 3;
  if (shape.size() < 4 || shape.size() > 6 || num_elements(shape) == 0 ||
      builder.stage(windows).shape != shape || builder.stage(windows).reduction->axes.size() != rank) {
    return false;
  }
  const int64_t width = shape[rank + 1];
  // A window moves with the columns; a reduction of whole columns does not.
  const std::vector<Access> accesses = builder.accesses(windows);
  if (width == 1 || accesses.size() != 1 ||
      (accesses[0].stride[rank + 1] == 0 && !accesses[0].irregular[rank + 1]))
    return false;
  if (windows == root) {
    builder.step("cache_write", {root});
    windows = root + ".c";
  } else {
    builder.inline_injective();
  }
  if (builder.readers(windows) != std::vector<std::string>{root} || shape.back() > builder.lanes(windows) ||
      (shape.back() & (shape.back() - 1)) != 0)
    return false;
  builder.guard(windows);

  const int64_t taps = reduction_steps(builder.stage(windows));
  const int64_t analytic = tile_columns(width, builder.target().facts.vector_registers);
  const std::string columns = std::to_string(
      builder.knob("tile_columns", analytic, range_candidates(1, std::min<int64_t>(width, 24))));
  const BlockAxes axes = block_axes(builder.stage(root));
  const std::string outside = axes.columns + ".o", inside = axes.columns + ".i";
  builder.step("split", {root, axes.columns, columns});
  std::vector<std::string> outer = {"i0"}, order = {root};
  if (!axes.planes.empty()) outer.push_back(axes.planes);
  outer.emplace_back("i1");
  if (!axes.rows.empty()) {
    const int64_t rows = shape[rank], images = shape[0] * (rank > 2 ? shape[2] : 1);
    const int64_t part = share_image({}, images, rows, true, builder.target().facts).part;
    const int64_t share = builder.knob("part", part > 0 ? part : rows, divisors(rows));
    builder.step("split", {root, axes.rows, std::to_string(share)});
    outer.insert(outer.end() - 1, axes.rows + ".o");
    outer.push_back(axes.rows + ".i");
  }
  order.insert(order.end(), outer.begin(), outer.end());
  order.insert(order.end(), {outside, inside, axes.lanes});
  builder.step("reorder", order);
  builder.parallelize(root, builder.fuse(root, outer), static_cast<double>(num_elements(shape) * taps));
  builder.step("unroll", {root, inside});
  builder.step("vectorize", {root, axes.lanes});
  schedule_windows(builder, root, windows, columns);
  return true;
}

}  // namespace tensormill::schedule
