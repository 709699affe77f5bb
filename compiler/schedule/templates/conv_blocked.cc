// Direct convolution on blocks of channels: a tile of output columns x channel blocks stays in registers over
// the whole reduction; its step is a weight vector a block, an input element broadcast a column, and their
// products. Columns at the border of the image are cut off as loops of their own, so that taps outside are no
// code at all; rows of taps outside are skipped.
#include <algorithm>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {

namespace {

// The largest divisor of `extent` that is at most `limit`.
int64_t divisor_up_to(int64_t extent, int64_t limit) {
  int64_t best = 1;
  for (int64_t d = 1; d <= std::min(extent, limit); ++d) {
    if (extent % d == 0) best = d;
  }
  return best;
}

// Bytes of the inputs of the sum: what it reads of the one that moves with the columns, and the weights.
struct Traffic {
  double input = 0;
  double weights = 0;
};
Traffic traffic_of(const Builder& builder, const ConvNest& nest) {
  Traffic traffic;
  const Stage& sums = builder.stage(nest.sums);
  // Short windows at long strides leave out rows and columns; the cache's places for the columns stay empty.
  const double read = 2 * 4.0 *
                      static_cast<double>(num_elements(sums.shape) / sums.shape[1] / sums.shape.back() *
                                          reduction_steps(sums));
  for (const Access& access : builder.accesses(nest.sums)) {
    const double bytes = 4.0 * static_cast<double>(num_elements(access.tensor->constant_shape()));
    const size_t column = sums.shape.size() - 2;
    const bool moves = access.stride[column] != 0 || access.irregular[column];
    (moves ? traffic.input : traffic.weights) += moves ? std::min(bytes, read) : bytes;
  }
  return traffic;
}

// What is walked for one group of weights: as many images, or equal parts of one, as keep their input in half
// of the L2 cache. One image at a time where the other half holds all weights, and for nests by rows, whose
// images would take turns row by row.
ConvPass choose_pass(const Traffic& traffic, bool flat, int64_t images, int64_t parts,
                     const target::CpuFacts& facts) {
  const double half = static_cast<double>(facts.l2_bytes) / 2;
  const double fitting = half * static_cast<double>(images) / traffic.input;
  if (fitting < 1) {
    const double fitting_parts = fitting * static_cast<double>(parts);
    return {1, divisor_up_to(parts, std::max<int64_t>(static_cast<int64_t>(fitting_parts), 1))};
  }
  if (!flat || traffic.weights <= half) return {1, parts};
  return {divisor_up_to(images, static_cast<int64_t>(std::min(fitting, static_cast<double>(images)))), parts};
}

// How many blocks of channels a tile may have, so that their weights and those that are fetched ahead for the
// next tile fit the L2 cache side by side; two at least, for the sake of the loads.
int64_t most_blocks(const Traffic& traffic, int64_t blocks, const target::CpuFacts& facts) {
  const double most =
      5.0 / 16 * static_cast<double>(facts.l2_bytes) * static_cast<double>(blocks) / traffic.weights;
  return std::clamp<int64_t>(static_cast<int64_t>(std::min(most, 4.0)), 2, 4);
}

// Whether the cores' shares of a row of tiles are nearly equal although its last tile may be short. Where
// each core reads all weights they should stay in its cache, too.
bool shares_evenly(const ConvNest& nest, int64_t width, const ConvTile& tile, const target::CpuFacts& facts) {
  const int64_t cores = std::max(facts.num_cores, 1);
  const int64_t tiles = (width + tile.columns - 1) / tile.columns;
  return !nest.flat || (tiles + cores - 1) / cores * cores * tile.columns * 8 <= width * 9;
}

}  // namespace

bool template_conv_blocked(Builder& builder) {
  ConvNest nest;
  if (!find_conv_nest(builder, nest)) return false;
  const Stage& stage = builder.stage(nest.sums);
  if (reduce_axes(stage).size() < nest.rank + 1) return false;
  const size_t column = stage.shape.size() - 2;
  const int64_t width = stage.shape[column], height = nest.flat ? 1 : stage.shape[column - 1];
  // Planes of an image take turns as images do.
  const int64_t images = stage.shape[0] * (column > 3 ? stage.shape[2] : 1);
  const int64_t vectors = std::max<int64_t>(stage.shape.back() / builder.lanes(nest.sums), 1);
  const target::CpuFacts& facts = builder.target().facts;
  const Traffic traffic = traffic_of(builder, nest);
  const ConvExtents extents = {
      width, stage.shape[1], reduction_steps(stage), vectors, most_blocks(traffic, stage.shape[1], facts),
      height};
  const ConvTile tile = tune_conv_tile(builder, choose_conv_tile(extents, facts), extents);
  const int64_t parts = nest.flat ? (width + tile.columns - 1) / tile.columns : height / tile.rows;
  ConvPass pass = choose_pass(traffic, nest.flat, images, parts, facts);
  if (traffic.weights <= static_cast<double>(facts.l2_bytes) / 4 && shares_evenly(nest, width, tile, facts))
    pass = share_image(pass, images, parts, tile.rows == 1, facts);
  pass =
      tune_conv_pass(builder, pass, parts, stage.shape[0], (stage.shape[1] + tile.blocks - 1) / tile.blocks);
  const std::string inside = schedule_conv_root(builder, nest, tile, pass);
  schedule_conv_sums(builder, nest, tile, inside);
  schedule_picked(builder, nest);
  return true;
}

}  // namespace tensormill::schedule
