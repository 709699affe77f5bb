// Depthwise convolution on blocks of channels: a row of output columns stays in registers; the taps are
// written out, column by column, so that the columns of the input that neighbours share are loaded once.
// Border columns are cut off as loops of their own, rows of taps outside the image are skipped: no padded
// copy.
#include <algorithm>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {

bool template_conv_depthwise(Builder& builder) {
  ConvNest nest;
  if (!find_conv_nest(builder, nest) || !nest.picked.empty()) return false;
  const Stage& stage = builder.stage(nest.sums);
  if (!nest.is_windowed() || reduce_axes(stage).size() != nest.rank) return false;
  const size_t column = stage.shape.size() - 2;
  const int64_t width = stage.shape[column], height = nest.flat ? 1 : stage.shape[column - 1];
  const int64_t vectors = std::max<int64_t>(stage.shape.back() / builder.lanes(nest.sums), 1);
  const int64_t columns = depthwise_columns(width, vectors, builder.target().facts);
  const int64_t most = std::min<int64_t>(width, 28 / vectors);
  ConvTile tile = {builder.knob("tile_columns", columns, range_candidates(1, most)), 1};
  std::vector<int64_t> rows = divisors(height);
  std::erase_if(rows, [&](int64_t count) { return count > 1 && count * tile.columns * vectors > 28; });
  if (rows.size() > 1) tile.rows = builder.knob("tile_rows", 1, rows);
  const int64_t parts = nest.flat ? (width + tile.columns - 1) / tile.columns : height / tile.rows;
  const int64_t images = stage.shape[0] * (column > 3 ? stage.shape[2] : 1);
  const ConvPass pass =
      tune_conv_pass(builder, share_image({}, images, parts, tile.rows == 1, builder.target().facts), parts,
                     stage.shape[0], stage.shape[1]);
  const std::string inside = schedule_conv_root(builder, nest, tile, pass);
  schedule_depthwise_sums(builder, nest, tile, inside);
  return true;
}

}  // namespace tensormill::schedule
