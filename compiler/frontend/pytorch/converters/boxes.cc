// torchvision's operators on parts of maps.
#include <algorithm>
#include <limits>

#include "compiler/build/extents/data_dependent.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/pictures/grid.h"
#include "compiler/build/pictures/roi_align.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr int64_t kMostPoints = 4096;  ///< of a side of a box, of a kernel, of groups

int64_t count_of(NodeContext& node, const char* name, int64_t least) {
  const int64_t count = node.integer(name);
  if (count < least || count > kMostPoints) node.invalid(std::string(name) + " is " + std::to_string(count));
  return count;
}

}  // namespace

// dets [N,4]: x1, y1, x2, y2; the places of those that stay, the best first.
void convert_nms(NodeContext& node) {
  Compose c(node);
  const V boxes = node.tensor("dets"), scores = node.tensor("scores");
  if (node.rank(boxes) != 2 || !same(node.shape(boxes)[1], 4) || node.rank(scores) != 1)
    node.invalid("boxes of shape " + to_string(node.shape(boxes)) + ", scores of " +
                 to_string(node.shape(scores)));
  const V overlap = c.doubles(DType::kFloat64, {node.real("iou_threshold")}, {1});
  const V least = c.doubles(DType::kFloat64, {std::numeric_limits<float>::lowest()}, {1});
  const build::KeptBoxes kept =
      build::suppressed_boxes(node, c.cast(boxes, DType::kFloat32), c.cast(scores, DType::kFloat32),
                              node.shape(boxes)[0], overlap, least, ir::kAbsent);
  const V count = c.reshape(c.cast(kept.count, DType::kInt64), {1});
  node.set_output(0, build::bound_part(node, c.cast(kept.places, DType::kInt64), 0, count));
}

// input [N,C,H,W]; rois [K,5]: which map, x1, y1, x2, y2.
void convert_roi_align(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input"), rois = node.tensor("rois");
  if (node.rank(x) != 4 || node.rank(rois) != 2 || !same(node.shape(rois)[1], 5))
    node.invalid("maps of shape " + to_string(node.shape(x)) + ", boxes of " + to_string(node.shape(rois)));
  build::RoiAlign options{x, c.slice(rois, 1, 1, 4),
                          c.cast(c.squeeze(c.slice(rois, 1, 0, 1), 1), DType::kInt64)};
  options.height = count_of(node, "pooled_height", 1);
  options.width = count_of(node, "pooled_width", 1);
  options.samples = node.integer("sampling_ratio");
  options.scale = node.real("spatial_scale");
  options.half_pixel = node.flag("aligned");
  if (options.samples > kMostPoints ||
      std::max(options.height, options.width) * options.samples > kMostPoints)
    node.unsupported("sampling_ratio", "more than " + std::to_string(kMostPoints) + " samples of a side");
  node.set_output(0, build::roi_align(node, options));
}

// input [N,C,H,W], weight [O,C/groups,kh,kw], offset [N,2*offset_groups*kh*kw,Ho,Wo] with y before x of each
// tap, mask [N,offset_groups*kh*kw,Ho,Wo].
void convert_deform_conv2d(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input"), weight = node.tensor("weight"), offset = node.tensor("offset");
  const ir::SymShape s = node.shape(x), w = node.shape(weight), o = node.shape(offset);
  if (s.size() != 4 || w.size() != 4 || o.size() != 4 || !w.is_constant() || !s[1].is_constant())
    node.invalid("maps of shape " + to_string(s) + ", filters of " + to_string(w) + ", offsets of " +
                 to_string(o));
  const int64_t groups = count_of(node, "groups", 1), parts = count_of(node, "offset_groups", 1);
  const int64_t channels = s[1].hint(), kh = w[2].hint(), kw = w[3].hint(), taps = kh * kw;
  const bool fits = w[1].hint() * groups == channels && w[0].hint() % groups == 0 && channels % parts == 0 &&
                    taps >= 1 && taps <= kMostPoints && same(o[1], 2 * parts * taps);
  if (!fits)
    node.invalid("filters of shape " + to_string(w) + " and offsets of " + to_string(o) + " for " +
                 std::to_string(channels) + " channels");
  const ir::SymInt points = o[2] * o[3];
  // Each tap of each group of offsets is a row of places in a map of its channels.
  const ir::SymShape rows{s[0] * parts, taps, points};
  const V moved = c.reshape(offset, {s[0] * parts, taps, 2, points});
  const auto places = [&](int64_t which, const char* stride, const char* pad, const char* dilation,
                          bool is_row) {
    const int64_t step = count_of(node, stride, 1), before = count_of(node, pad, 0),
                  gap = count_of(node, dilation, 1);
    std::vector<double> starts;
    for (int64_t tap = 0; tap < taps; ++tap)
      starts.push_back(static_cast<double>((is_row ? tap / kw : tap % kw) * gap - before));
    const DType dtype = node.dtype(offset);
    const ir::SymInt extent = is_row ? o[2] : o[3];
    const V along =
        c.times(c.cast(c.iota(extent, is_row ? ir::SymShape{extent, 1} : ir::SymShape{1, extent}), dtype),
                static_cast<double>(step));
    const V all = c.reshape(c.expand(along, {o[2], o[3]}), {1, 1, points});
    const V own = c.add(all, c.doubles(dtype, starts, {1, taps, 1}));
    return c.add(c.squeeze(c.slice(moved, 2, which, 1), 2), own);
  };
  build::Grid grid(node, c.reshape(x, {s[0] * parts, channels / parts, s[2], s[3]}), 0.0);
  V read = grid.between(places(0, "stride_h", "pad_h", "dilation_h", true),
                        places(1, "stride_w", "pad_w", "dilation_w", false));
  if (node.has("mask") && node.flag("use_mask"))
    read = c.mul(read, c.reshape(node.tensor("mask"), {rows[0], 1, rows[1], rows[2]}));
  const V columns = c.reshape(read, {s[0], groups, channels / groups * taps, points});
  const V filters = c.reshape(weight, {1, groups, w[0].hint() / groups, w[1].hint() * taps});
  V y = c.reshape(c.matmul(filters, columns), {s[0], w[0], o[2], o[3]});
  if (node.has("bias")) y = c.add(y, c.reshape(node.tensor("bias"), {1, w[0], 1, 1}));
  node.set_output(0, y);
}

}  // namespace tensormill::frontend::pytorch
