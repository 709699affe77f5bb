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

}  // namespace

bool template_pool_blocked(Builder& builder) {
  std::string root, windows;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction && !windows.empty()) return false;
    if (stage.reduction) windows = name;
    if (stage.is_output && !root.empty()) return false;
    if (stage.is_output) root = name;
  }
  const Shape shape = builder.stage(root).shape;
  if (windows.empty() || shape.size() != 5 || num_elements(shape) == 0 ||
      builder.stage(windows).shape != shape || builder.stage(windows).reduction->axes.size() != 2) {
    return false;
  }
  if (windows == root) {
    builder.step("cache_write", {root});
    windows = root + ".c";
  } else {
    builder.inline_injective();
  }
  if (builder.readers(windows) != std::vector<std::string>{root} || shape.back() > builder.lanes(windows) ||
      (shape.back() & (shape.back() - 1)) != 0)
    return false;
  if (builder.stage(windows).reduction->source[0]->op == te::ExprOp::kSelect)
    builder.step("guard", {windows});

  const int64_t taps = builder.extent(windows, "r0") * builder.extent(windows, "r1");
  const int64_t analytic = tile_columns(shape[3], builder.target().facts.vector_registers);
  const std::string columns = std::to_string(
      builder.knob("tile_columns", analytic, range_candidates(1, std::min<int64_t>(shape[3], 24))));
  builder.step("split", {root, "i3", columns});
  const int64_t part = share_image({}, shape[0], shape[2], true, builder.target().facts).part;
  const int64_t share = builder.knob("part", part > 0 ? part : shape[2], divisors(shape[2]));
  builder.step("split", {root, "i2", std::to_string(share)});
  builder.step("reorder", {root, "i0", "i2.o", "i1", "i2.i", "i3.o", "i3.i", "i4"});
  builder.parallelize(root, builder.fuse(root, {"i0", "i2.o", "i1", "i2.i"}),
                      static_cast<double>(num_elements(shape) * taps));
  builder.step("unroll", {root, "i3.i"});
  builder.step("vectorize", {root, "i4"});
  builder.step("split", {windows, "i3", columns});
  const bool taps_outside = builder.knob("taps_outside", 0, {0, 1}) == 1;
  builder.step("reorder", {windows, "i0", "i1", "i2", "i3.o", "r0", taps_outside ? "r1" : "i3.i",
                           taps_outside ? "i3.i" : "r1", "i4"});
  for (const char* axis : {"r0", "r1"}) {
    const int64_t unrolls = taps <= kMaxPoolTaps ? 1 : 0;
    if (builder.knob(std::string("unroll_") + axis, unrolls, {0, unrolls}) == 1)
      builder.step("unroll", {windows, axis});
  }
  builder.step("unroll", {windows, "i3.i"});
  builder.step("vectorize", {windows, "i4"});
  builder.step("compute_at", {windows, root, "i3.o"});
  builder.step("store_in", {windows, "register"});
  return true;
}

}  // namespace tensormill::schedule
