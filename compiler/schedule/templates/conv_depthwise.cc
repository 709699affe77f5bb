// Depthwise convolution on blocks of channels: a row of output columns stays in registers; the taps are
// written out, column by column, so that the columns of the input that neighbours share are loaded once.
// Border columns are cut off as loops of their own, rows of taps outside the image are skipped: no padded
// copy.
#include <algorithm>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kMaxTaps = 64;  // past this, the taps stay loops

// Columns of a tile: a divisor of the row's length where there is one past half of what the registers hold.
int64_t tile_columns(int64_t width, int64_t vectors_per_block, int registers) {
  // Beside the accumulators: the weights of a row of taps and the columns that slide along.
  const int64_t most = std::max<int64_t>((registers >= 32 ? 16 : 7) / vectors_per_block, 1);
  for (int64_t columns = std::min(width, most); columns > most / 2; --columns) {
    if (width % columns == 0) return columns;
  }
  return std::min(width, most);
}

}  // namespace

bool template_conv_depthwise(Builder& builder) {
  ConvNest nest;
  if (!find_conv_nest(builder, nest) || !nest.picked.empty()) return false;
  const Stage& stage = builder.stage(nest.sums);
  if (nest.flat || reduce_axes(stage).size() != 2) return false;
  const bool written_out = reduction_steps(stage) <= kMaxTaps;
  const int64_t vectors = std::max<int64_t>(stage.shape.back() / builder.lanes(nest.sums), 1);
  const int64_t columns = tile_columns(stage.shape[3], vectors, builder.target().facts.vector_registers);
  const int64_t most = std::min<int64_t>(stage.shape[3], 28 / vectors);
  const ConvTile tile = {builder.knob("tile_columns", columns, range_candidates(1, most)), 1};
  const ConvPass pass = share_image({}, stage.shape[0], stage.shape[2], builder.target().facts);
  const std::string inside = schedule_conv_root(builder, nest, tile, pass);
  const std::string& sums = nest.sums;
  builder.step("split", {sums, "i3", std::to_string(tile.columns)});
  builder.step("reorder", {sums, "i0", "i1", "i2", "i3.o", "r0", "i3.i", "r1", "i4"});
  for (const char* axis : {"r0", "r1"}) {
    const int64_t unrolls = written_out ? 1 : 0;
    if (builder.knob(std::string("unroll_") + axis, unrolls, {0, unrolls}) == 1)
      builder.step("unroll", {sums, axis});
  }
  builder.step("unroll", {sums, "i3.i"});
  builder.step("vectorize", {sums, "i4"});
  builder.step("compute_at", {sums, nest.root, inside});
  builder.step("store_in", {sums, "register"});
  return true;
}

}  // namespace tensormill::schedule
