/// What the templates of convolutions on blocks share: finding the sum and its epilogue, and the loops of the
/// root. Thread-safety: a builder belongs to one thread.
#pragma once

#include "compiler/schedule/builder.h"
#include "compiler/schedule/templates/conv_tile.h"
#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

/// The axes of a stage on blocks of channels with one to three spatial dimensions: i0 is the batch, i1 the
/// blocks.
struct BlockAxes {
  std::string planes;   ///< of rows; "" where there are fewer than three spatial dimensions
  std::string rows;     ///< "" where there is one spatial dimension
  std::string columns;  ///< the last spatial dimension
  std::string lanes;
};
BlockAxes block_axes(const Stage& stage);

/// The stages of a convolution with what follows it element by element.
struct ConvNest {
  std::string root;    ///< [N, blocks, spatial..., lanes], of one to three spatial dimensions
  std::string sums;    ///< the same, or with its spatial dimensions as one
  std::string picked;  ///< what the sum reads of a strided input, as a copy; "" when it reads inputs alone
  bool flat = false;   ///< the sums have one spatial dimension
  size_t rank = 2;     ///< spatial dimensions of the root
  /// Whether the sums are over a window of the spatial dimensions: they have all of the root's.
  bool is_windowed() const { return !flat || rank == 1; }
};

/// The one sum and the one output, everything else inlined, the sum's conditions turned into guards; false
/// for any other program, after which the builder is of no use.
bool find_conv_nest(Builder& builder, ConvNest& nest);

/// Whether `root` reads the stage element by element.
bool reads_elementwise(const Builder& builder, const std::string& root, const std::string& stage);

/// Whether the stage is a copy of a part of one input, with reads that move evenly.
bool is_picked(const Builder& builder, const std::string& stage);

/// The loops of the picked input, if there is one.
void schedule_picked(Builder& builder, const ConvNest& nest);

/// The tile, as knobs tile_blocks, tile_columns and tile_rows: what fits the registers.
ConvTile tune_conv_tile(Builder& builder, const ConvTile& analytic, const ConvExtents& extents);

/// Cuts `rows` of a stage of the nest by the tile; returns the axis of the outer part and adds the inner one,
/// if there is one, to `inner`.
std::string cut_tile_rows(Builder& builder, const std::string& stage, const std::string& rows,
                          const ConvTile& tile, std::vector<std::string>& inner);

/// Points of the reduction.
int64_t reduction_steps(const Stage& stage);

/// What is walked for one group of channel blocks: the whole of some images, or a part of one.
struct ConvPass {
  int64_t images = 1;  ///< a divisor of their number
  int64_t part = 0;    ///< rows (of a flat nest: tiles) of an image; 0: all
  int64_t group = 1;   ///< tiles of channel blocks beside each other in a group, a divisor of their number
};

/// The pass as knobs part, images and group; `parts` of an image, `tiles` of channel blocks.
ConvPass tune_conv_pass(Builder& builder, ConvPass pass, int64_t parts, int64_t images, int64_t tiles);

/// `pass` with parts of an image so small that the cores get equal shares of each, or (with `uneven`) nearly
/// equal ones: a core then reads the rows that it wrote. Unchanged where whole `images` can be shared
/// equally, or the `parts` of an image cannot. The bounds of uneven shares can be shown for tiles of one row.
ConvPass share_image(ConvPass pass, int64_t images, int64_t parts, bool uneven,
                     const target::CpuFacts& facts);

/// The root's loops: planes, passes, groups of channel blocks, rows, and the images of a pass innermost of
/// the outer ones. Returns the loop at which the sums are computed.
std::string schedule_conv_root(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                               const ConvPass& pass);

/// The loops of the sums: a tile in registers over the whole reduction, computed at the root's loop `inside`.
void schedule_conv_sums(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                        const std::string& inside);

/// The loops of depthwise sums: the tile's columns and rows in registers, the taps written out where they are
/// few.
void schedule_depthwise_sums(Builder& builder, const ConvNest& nest, const ConvTile& tile,
                             const std::string& inside);

/// Columns of a depthwise tile: a divisor of the row's length where there is one past half of what the
/// registers hold, or half of that where a core starts one product a cycle.
int64_t depthwise_columns(int64_t width, int64_t vectors_per_block, const target::CpuFacts& facts);

}  // namespace tensormill::schedule
