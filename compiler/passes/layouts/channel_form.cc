#include "compiler/passes/layouts/channel_form.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace tensormill::passes {

std::vector<Lane> LaneArranger::whole(ir::ValueId tensor, int64_t channels) {
  channels_[tensor] = channels;
  std::vector<Lane> lanes;
  for (int64_t lane = 0; lane < channels; ++lane) lanes.push_back({tensor, lane});
  made_.emplace(lanes, tensor);
  return lanes;
}

ir::ValueId LaneArranger::arrange(const std::vector<Lane>& lanes) {
  const auto found = made_.find(lanes);
  if (found != made_.end()) return found->second;
  ir::ValueId made = join_blocks(lanes);
  if (made == ir::kAbsent) made = gather(lanes);
  made_[lanes] = made;
  channels_[made] = static_cast<int64_t>(lanes.size());
  return made;
}

ir::ValueId LaneArranger::arrange_any(const std::vector<Lane>& lanes, std::vector<int64_t>& place) {
  std::vector<size_t> order(lanes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lanes[a] < lanes[b]; });
  std::vector<Lane> sorted;
  for (const size_t channel : order) sorted.push_back(lanes[channel]);
  place.assign(lanes.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int64_t>(i);
  return arrange(sorted);
}

ir::ValueId LaneArranger::join_blocks(const std::vector<Lane>& lanes) {
  struct Range {
    ir::ValueId tensor;
    int64_t first;
    int64_t count;
  };
  std::vector<Range> ranges;  // of blocks
  for (size_t start = 0; start < lanes.size(); start += static_cast<size_t>(block_)) {
    const Lane& first = lanes[start];
    const size_t end = std::min(start + static_cast<size_t>(block_), lanes.size());
    for (size_t i = start; i < end; ++i) {
      if (lanes[i] != Lane{first.tensor, first.lane + static_cast<int64_t>(i - start)}) return ir::kAbsent;
    }
    // What fills the last block up must be the zeros at the end of its tensor.
    const bool full = end - start == static_cast<size_t>(block_);
    if (first.lane % block_ != 0 || (!full && lanes[end - 1].lane + 1 != channels_.at(first.tensor)))
      return ir::kAbsent;
    const int64_t block = first.lane / block_;
    if (!ranges.empty() && ranges.back().tensor == first.tensor &&
        ranges.back().first + ranges.back().count == block) {
      ++ranges.back().count;
    } else {
      ranges.push_back({first.tensor, block, 1});
    }
  }
  std::vector<ir::ValueId> parts;
  for (const Range& range : ranges) {
    ir::SymShape extents = patch_.value(range.tensor).type.shape;
    if (extents[1] == range.count) {
      parts.push_back(range.tensor);
      continue;
    }
    Shape starts(extents.size(), 0);
    starts[1] = range.first;
    extents[1] = range.count;
    parts.push_back(patch_.add_node(
        "slice", {range.tensor},
        {{"starts", starts}, {"extents", extents}, {"steps", Shape(extents.size(), 1)}}, origins_)[0]);
  }
  if (parts.size() == 1) return parts[0];
  return patch_.add_node("concat", std::move(parts), {{"axis", int64_t{1}}}, origins_)[0];
}

ir::ValueId LaneArranger::gather(const std::vector<Lane>& lanes) {
  std::vector<ir::ValueId> tensors;
  std::map<ir::ValueId, int64_t> first_lane;
  int64_t end = 0;
  std::vector<int64_t> channels;
  for (const Lane& lane : lanes) {
    const auto [found, is_new] = first_lane.emplace(lane.tensor, end);
    if (is_new) {
      tensors.push_back(lane.tensor);
      end += patch_.value(lane.tensor).type.shape[1] * block_;
    }
    channels.push_back(found->second + lane.lane);
  }
  return patch_.add_node("gather_channels", std::move(tensors), {{"channels", std::move(channels)}},
                         origins_)[0];
}

}  // namespace tensormill::passes
