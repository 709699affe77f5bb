// A convolution over the channels alone together with what feeds it, a depthwise convolution or channels put
// together from other tensors: the image is cut into bands of rows; what feeds a band is computed into memory
// of the worker that stays in its cache, then the band's tiles are computed from there. Every value of
// the feed is computed once, for a pointwise window reads no other band. Where rows make no equal parts for
// the cores, they share the channels of the result, and each computes the whole feed: its loads fetch the
// lines that the other cores wrote many at a time, which the tiles' loads would wait for one after the other.
#include <algorithm>

#include "compiler/schedule/templates/conv_nest.h"

namespace tensormill::schedule {

namespace {

/// The consumer's sums and root, and what feeds them.
struct BandNest {
  ConvNest consumer;
  std::string feed;       ///< what the sums read: [N, blocks, rows, columns, lanes]
  std::string feed_sums;  ///< the depthwise sums in the feed; "" where it only moves channels
};

bool is_block(const Builder& builder, const std::string& name) {
  const Shape& shape = builder.stage(name).shape;
  const int64_t block = shape.back();
  return shape.size() == 5 && (block & (block - 1)) == 0 && block <= 4 * builder.lanes(name);
}

bool collect(const Builder& builder, BandNest& nest) {
  std::vector<std::string> reductions;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction) reductions.push_back(name);
    if (stage.is_output && !nest.consumer.root.empty()) return false;
    if (stage.is_output) nest.consumer.root = name;
  }
  if (reductions.empty() || reductions.size() > 2 || nest.consumer.root.empty()) return false;
  if (!is_block(builder, nest.consumer.root)) return false;
  nest.consumer.sums = reductions.back();
  if (reductions.size() == 2) nest.feed_sums = reductions[0];
  for (const std::string& name : builder.stage_names()) {
    if (!contains(builder.readers(name), nest.consumer.sums)) continue;
    if (!nest.feed.empty()) return false;
    nest.feed = name;
  }
  return !nest.feed.empty() && num_elements(builder.stage(nest.consumer.root).shape) != 0;
}

// The stage's results are read by one other stage alone, element by element.
bool is_read_by(const Builder& builder, const std::string& sums, const std::string& reader) {
  return builder.readers(sums) == std::vector<std::string>{reader} &&
         num_elements(builder.stage(sums).shape) == num_elements(builder.stage(reader).shape) &&
         !builder.stage(reader).reduction && reads_elementwise(builder, reader, sums);
}

bool is_chain(const Builder& builder, const BandNest& nest) {
  const std::string &root = nest.consumer.root, &sums = nest.consumer.sums;
  for (const std::string& name : builder.stage_names()) {
    const bool known = name == root || name == sums || name == nest.feed || name == nest.feed_sums;
    if (!known && builder.stage(name).attach != AttachKind::kInline) return false;
  }
  return is_block(builder, root) && is_block(builder, nest.feed) && is_read_by(builder, sums, root) &&
         builder.readers(nest.feed) == std::vector<std::string>{sums} &&
         (nest.feed_sums.empty() || is_read_by(builder, nest.feed_sums, nest.feed));
}

// The stages of a kernel whose last sum reads one other stage, in a chain, everything else inlined and the
// sums' conditions turned into guards. False for any other program.
bool find_band_nest(Builder& builder, BandNest& nest) {
  if (!collect(builder, nest)) return false;
  const auto hold = [&](std::string& sums, const std::string& kept) {
    if (sums != kept) return;
    builder.step("cache_write", {kept});
    sums = kept + ".c";
  };
  hold(nest.feed_sums, nest.feed);
  hold(nest.consumer.sums, nest.consumer.root);
  builder.inline_injective({nest.feed});
  if (!is_chain(builder, nest)) return false;
  for (const std::string& sums : {nest.feed_sums, nest.consumer.sums}) {
    if (!sums.empty()) builder.guard(sums);
  }
  nest.consumer.flat = builder.stage(nest.consumer.sums).shape.size() == 4;
  return true;
}

// The most rows of a band that keep the feed in cache, as equal parts for the cores; 0 where rows make no
// equal parts. A depthwise convolution reads the rows at the seams of bands twice, so it wants high ones, for
// which the L2 cache will do; channel moves want the first cache.
int64_t choose_rows(const Builder& builder, const BandNest& nest) {
  const target::CpuFacts& facts = builder.target().facts;
  const int64_t cores = std::max(facts.num_cores, 1);
  const Shape &feed = builder.stage(nest.feed).shape, &root = builder.stage(nest.consumer.root).shape;
  const int64_t row_bytes =
      feed[1] * feed[3] * feed[4] * static_cast<int64_t>(dtype_bytes(builder.stage(nest.feed).dtypes[0]));
  // A core that starts half as many products takes half as many bytes a cycle from the L2 cache.
  const int64_t share = facts.products_per_cycle == 1 ? 4 : 8;
  const int64_t bytes = nest.feed_sums.empty() ? facts.l1d_bytes / 2 : facts.l2_bytes / share;
  int64_t best = 0;
  for (int64_t rows = 1; rows <= root[2]; ++rows) {
    if (root[2] % rows != 0 || root[0] * root[2] / rows % cores != 0) continue;
    if (best == 0 || rows * row_bytes <= bytes) best = rows;
  }
  return best;
}

bool fits(const Builder& builder, const BandNest& nest) {
  if (!nest.consumer.flat) return false;
  const Shape &out = builder.stage(nest.consumer.root).shape, &in = builder.stage(nest.feed).shape;
  if (in[2] != out[2] || in[3] != out[3]) return false;
  // A copy of a part of one input is for conv_blocked.
  if (nest.feed_sums.empty()) return !is_picked(builder, nest.feed) && in[4] <= builder.lanes(nest.feed);
  const Stage& sums = builder.stage(nest.feed_sums);
  return sums.shape == in && reduce_axes(sums).size() == 2;
}

// The root's loops and the one at which the feed is computed: bands, groups of channel blocks, tiles; or,
// with no rows, parts of the channel blocks for the cores, groups of them, tiles.
std::string schedule_root(Builder& builder, const BandNest& nest, const ConvTile& tile, int64_t rows) {
  const std::string& root = nest.consumer.root;
  const Shape shape = builder.stage(root).shape;
  const double work = static_cast<double>(num_elements(shape)) *
                      static_cast<double>(reduction_steps(builder.stage(nest.consumer.sums)));
  std::string pixels = builder.fuse(root, {"i2", "i3"}), outer = pixels + ".o", groups = "i1.o";
  builder.step("split", {root, "i1", std::to_string(tile.blocks)});
  if (rows > 0) {
    builder.step("split", {root, pixels, std::to_string(rows * shape[3])});
    pixels += ".i";
  } else {
    const int64_t count = builder.extent(root, groups), cores = builder.target().facts.num_cores;
    builder.step("split", {root, groups, std::to_string((count + cores - 1) / cores)});
    outer = groups + ".o";
    groups += ".i";
  }
  builder.step("split", {root, pixels, std::to_string(tile.columns)});
  builder.step("reorder", {root, "i0", outer, groups, pixels + ".o", pixels + ".i", "i1.i", "i4"});
  const std::string inside = builder.parallelize(root, builder.fuse(root, {"i0", outer}), work);
  builder.step("unroll", {root, pixels + ".i"});
  builder.step("unroll", {root, "i1.i"});
  builder.step("vectorize", {root, "i4"});
  schedule_conv_sums(builder, nest.consumer, tile, pixels + ".o");
  return inside;
}

void schedule_feed(Builder& builder, const BandNest& nest, const std::string& band) {
  const std::string& feed = nest.feed;
  builder.step("compute_at", {feed, nest.consumer.root, band});
  if (nest.feed_sums.empty()) {
    builder.step("unroll", {feed, "i1"});
    builder.step("vectorize", {feed, "i4"});
    return;
  }
  const Shape& shape = builder.stage(feed).shape;
  const int64_t vectors = std::max<int64_t>(shape[4] / builder.lanes(nest.feed_sums), 1);
  const int64_t most = std::min<int64_t>(shape[3], 28 / vectors);
  const int64_t columns =
      builder.knob("window_columns", depthwise_columns(shape[3], vectors, builder.target().facts),
                   range_candidates(1, most));
  builder.step("split", {feed, "i3", std::to_string(columns)});
  builder.step("unroll", {feed, "i3.i"});
  builder.step("vectorize", {feed, "i4"});
  schedule_depthwise_sums(builder, {feed, nest.feed_sums, "", false}, {columns, 1}, "i3.o");
}

}  // namespace

bool template_conv_bands(Builder& builder) {
  BandNest nest;
  if (!find_band_nest(builder, nest) || !fits(builder, nest)) return false;
  const Stage& sums = builder.stage(nest.consumer.sums);
  const Shape feed = builder.stage(nest.feed).shape;
  const target::CpuFacts& facts = builder.target().facts;
  const int64_t analytic = choose_rows(builder, nest);
  const int64_t rows = analytic == 0 ? 0 : builder.knob("band_rows", analytic, divisors(feed[2]));
  const int64_t vectors = std::max<int64_t>(sums.shape.back() / builder.lanes(nest.consumer.sums), 1);
  const ConvExtents extents = {(rows > 0 ? rows : feed[2]) * feed[3], sums.shape[1], reduction_steps(sums),
                               vectors, 4};
  const ConvTile tile = tune_conv_tile(builder, choose_conv_tile(extents, facts), extents);
  schedule_feed(builder, nest, schedule_root(builder, nest, tile, rows));
  return true;
}

}  // namespace tensormill::schedule
