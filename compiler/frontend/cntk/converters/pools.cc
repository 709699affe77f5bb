// Pools of windows, of whole maps and of boxes, and the way back.
#include <algorithm>

#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/pictures/roi_pool.h"
#include "compiler/frontend/cntk/converters/windows.h"

namespace tensormill::frontend::cntk {

namespace {

enum class PoolKind : int64_t { kMax, kAverage };

PoolKind kind_of(NodeContext& node) {
  const int64_t kind = node.integer("poolingType");
  if (kind != 0 && kind != 1) node.unsupported("poolingType", std::to_string(kind) + " is not implemented");
  return static_cast<PoolKind>(kind);
}

/// A map [N,C,...] whose windows go along the axes behind the channels: of windows of several channels with
/// an axis in front of them.
struct PooledMap {
  V value = ir::kAbsent;
  std::vector<AxisWindow> axes;
};

PooledMap pooled_map(NodeContext& node, const Item& x, const ir::Ints& extents) {
  PooledMap map;
  const ir::SymShape sample = node.sample(x);
  if (sample.empty()) node.invalid("operand 0 has no axis");
  map.axes = axis_windows(node, extents, sample.size());
  ir::SymShape to = sample;
  const AxisWindow& channels = map.axes[0];
  const bool takes_one = channels.reach() == 1 && channels.stride == 1 && channels.lower == 0 &&
                         channels.upper == 0 && map.axes.size() > 1;
  if (takes_one) {
    map.axes.erase(map.axes.begin());
  } else {
    to.insert(to.begin(), 1);
  }
  to.insert(to.begin(), x.has_batch ? node.shape(x.value)[0] : ir::SymInt(1));
  map.value = Compose(node).reshape(x.value, to);
  return map;
}

/// Whether there is one window, of all elements.
bool is_global(NodeContext& node, const PooledMap& map) {
  const ir::SymShape shape = node.shape(map.value);
  for (size_t d = 0; d < map.axes.size(); ++d) {
    const AxisWindow& axis = map.axes[d];
    if (axis.is_auto || axis.lower != 0 || axis.upper != 0 || !same(shape[d + 2], axis.kernel)) return false;
  }
  return true;
}

void check_windows(NodeContext& node, const MapWindows& over) {
  const ir::SymShape shape = node.shape(over.map);
  const build::Windows& windows = over.windows;
  const size_t rank = windows.strides.size();
  for (size_t d = 0; d < rank && windows.symbolic_pads.empty(); ++d) {
    if (!shape[d + 2].is_constant()) continue;
    const int64_t in = shape[d + 2].hint(), lower = windows.pads[d];
    const int64_t room = in + lower + windows.pads[d + rank] - windows.kernel[d].hint();
    if (room < 0) node.invalid("a window of " + to_string(windows.kernel[d]) + " over " + std::to_string(in));
    if (room / windows.strides[d] * windows.strides[d] - lower >= in)
      node.unsupported("ceilOutDim", "windows without elements are not implemented");
  }
}

V averaged_with_pads(NodeContext& node, MapWindows over) {
  if (over.ceil_mode) node.unsupported("ceilOutDim", "means with padding over free dims are not implemented");
  const V padded = build::padded_for(node, over.map, over.windows, 0);
  return node.add("avg_pool", {padded},
                  {{"kernel", over.windows.kernel},
                   {"strides", over.windows.strides},
                   {"dilations", over.windows.dilations},
                   {"pads", over.windows.pads},
                   {"ceil_mode", int64_t{0}},
                   {"count_include_pad", int64_t{1}}});
}

V pooled(NodeContext& node, const PooledMap& map, PoolKind kind) {
  const bool is_ceil = node.flag("ceilOutDim", false), takes_pads = node.flag("includePad", false);
  if (is_global(node, map))
    return Compose(node).reduce_spatial(kind == PoolKind::kMax ? "reduce_max" : "reduce_mean", map.value);
  const MapWindows over = windows_over(node, map.value, map.axes, is_ceil);
  check_windows(node, over);
  if (kind == PoolKind::kAverage && takes_pads) return averaged_with_pads(node, over);
  const build::PoolSpec spec{over.windows, over.ceil_mode};
  return kind == PoolKind::kMax ? build::max_pool(node, over.map, spec)
                                : build::avg_pool(node, over.map, spec);
}

/// Of the whole map, but for its channels.
void pool_whole(NodeContext& node, const Item& x, PoolKind kind) {
  for (const char* name : {"strides", "autoPadding", "lowerPad", "upperPad", "ceilOutDim", "includePad"})
    node.skip(name);
  std::vector<int64_t> axes;
  for (int64_t d = 1; d < node.sample_rank(x); ++d) axes.push_back(d + x.offset());
  const char* op = kind == PoolKind::kMax ? "reduce_max" : "reduce_mean";
  node.set_output(Compose(node).reduce(op, x.value, axes, true), x.has_batch);
}

}  // namespace

void convert_pooling(NodeContext& node) {
  const Item x = node.operand(0);
  const PoolKind kind = kind_of(node);
  const ir::Ints extents = node.dims("poolingWindowShape");
  if (extents.size() == 1 && extents[0] == kUnknownShape) return pool_whole(node, x, kind);
  const PooledMap map = pooled_map(node, x, extents);
  const V y = pooled(node, map, kind);
  ir::SymShape sample = node.shape(y);
  const size_t in_front = node.shape(map.value).size() - node.sample(x).size();
  sample.erase(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(in_front));
  node.set_output(node.with_sample(x, y, sample), x.has_batch);
}

// Each element goes where the largest one of its window stood, first of equals; all else is 0.
void convert_unpooling(NodeContext& node) {
  Compose c(node);
  const Item pooled = node.operand(0), x = node.operand(1);
  const ir::Ints extents = node.dims("unpoolingWindowShape");
  const ir::SymShape sample = node.sample(x), parts = node.sample(pooled);
  if (kind_of(node) != PoolKind::kMax)
    node.unsupported("poolingType", "only the largest elements are put back");
  const std::vector<AxisWindow> axes = axis_windows(node, extents, sample.size());
  if (sample.size() != 3 || parts.size() != 3 || !sample.is_constant() || !parts.is_constant())
    node.unsupported("operand 1", "maps of other than three extents that are known are not implemented");
  if (!pooled.has_batch || !x.has_batch) node.unsupported("operand 1", "maps without a batch");
  if (axes[0].kernel != 1) node.unsupported("unpoolingWindowShape", "windows of several channels");
  V map = x.value;
  ir::SymShape split{node.shape(map)[0], sample[0]};
  for (size_t d = 1; d < 3; ++d) {
    const AxisWindow& axis = axes[d];
    if (axis.is_auto || axis.lower != 0 || axis.upper != 0 || axis.stride != axis.kernel)
      node.unsupported("strides", "windows with pads or common elements are not implemented");
    const ir::SymInt used = parts[d] * axis.kernel;
    if (!ir::demand(ir::Relation::kLessEqual, used, sample[d]))
      node.invalid("operands of shape " + to_string(parts) + " and " + to_string(sample));
    map = c.slice(map, static_cast<int64_t>(d) + 1, 0, used);
    split.push_back(parts[d]);
    split.emplace_back(axis.kernel);
  }
  const int64_t area = axes[1].kernel * axes[2].kernel;
  // The elements of each window last.
  const V windows = c.reshape(c.transpose(c.reshape(map, split), {0, 1, 2, 4, 3, 5}),
                              {split[0], split[1], split[2], split[4], area});
  const V is_most = c.binary("equal", c.positions(area, 4, 5), c.arg_max(windows, 4, true));
  const V put = c.where(is_most, c.unsqueeze(pooled.value, 4), c.number(pooled.value, 0));
  const V turned = c.transpose(c.reshape(put, {split[0], split[1], split[2], split[4], split[3], split[5]}),
                               {0, 1, 2, 4, 3, 5});
  const V used = c.reshape(turned, {split[0], split[1], split[2] * split[3], split[4] * split[5]});
  ir::SymShape pads(8, 0);
  for (size_t d = 1; d < 3; ++d) pads[d + 5] = sample[d] - parts[d] * axes[d].kernel;
  node.set_output(
      node.add("pad", {used}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}}), true);
}

// Boxes [N,boxes,4] of corners.
void convert_roi_pooling(NodeContext& node) {
  const Item x = node.operand(0), boxes = node.operand(1);
  const ir::Ints cells = node.dims("roiOutputShape");
  const ir::SymShape sample = node.sample(x), of_boxes = node.sample(boxes);
  if (kind_of(node) != PoolKind::kMax) node.unsupported("poolingType", "only the largest elements are taken");
  if (sample.size() != 3 || of_boxes.size() != 2 || !same(of_boxes[1], 4) || !x.has_batch || !boxes.has_batch)
    node.invalid("a map of shape " + to_string(sample) + " and boxes of shape " + to_string(of_boxes));
  if (cells.size() != 2) node.invalid("attribute roiOutputShape is none");
  Compose c(node);
  const ir::SymInt batch = node.shape(x.value)[0], count = batch * of_boxes[0];
  const V ends = c.reshape(boxes.value, {count, 4});
  const V which = c.reshape(c.expand(c.positions(batch, 0, 2), {batch, of_boxes[0]}), {count, 1});
  build::RoiPool pool{x.value, c.concat({c.cast(which, c.dtype(ends)), ends}, 1), cells[1], cells[0]};
  pool.scale = node.real("spatialScale", 1);
  const V pooled = build::roi_pool(node, pool);
  node.set_output(c.reshape(pooled, {batch, of_boxes[0], sample[0], cells[1], cells[0]}), true);
}

}  // namespace tensormill::frontend::cntk
