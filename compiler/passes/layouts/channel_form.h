/// Where the channels of a plain tensor stand while a graph moves to blocked layouts. A concatenation, split
/// or shuffle of channels is then a new list of lanes and moves nothing.
/// Thread-safety: values and pure functions.
#pragma once

#include <map>
#include <vector>

#include "compiler/ir/patch.h"

namespace tensormill::passes {

/// A channel's place: lane mod block of block lane / block of a blocked tensor
/// [N,blocks,spatial...,block].
struct Lane {
  ir::ValueId tensor = ir::kAbsent;
  int64_t lane = 0;
  auto operator<=>(const Lane&) const = default;
};

/// A tensor [N, channel_dims..., spatial...] as lanes of blocked tensors, channels in row-major order.
struct ChannelForm {
  Shape channel_dims;    ///< one entry but inside of a shuffle
  ir::SymShape spatial;  ///< the blocked tensors' extents, or fewer ones where those are ones
  std::vector<Lane> lanes;
  size_t rank = 2;  ///< spatial dimensions of the blocked tensors, 1 to 3
  /// Above 0: the value is [N,groups,rest], which the other fields say as [N,C,spatial...].
  int64_t groups = 0;

  /// True for [N,C,spatial...], the only form in which arithmetic looks at it.
  bool is_image() const { return groups == 0 && channel_dims.size() == 1 && spatial.size() == rank; }
};

/// Makes blocked tensors out of lists of lanes. All tensors it names have lanes of `block` channels and zeros
/// in the lanes past their last channel.
class LaneArranger {
public:
  LaneArranger(ir::Patch& patch, int64_t block) : patch_(patch), block_(block) {}

  int64_t block() const { return block_; }
  /// The model's nodes that the next copies are made for.
  void set_origins(std::vector<std::string> origins) { origins_ = std::move(origins); }
  const std::vector<std::string>& origins() const { return origins_; }
  int64_t blocks(int64_t channels) const { return (channels + block_ - 1) / block_; }
  /// Records that `tensor` has `channels` channels and returns its lanes.
  std::vector<Lane> whole(ir::ValueId tensor, int64_t channels);
  /// The tensor that holds just these channels in this order; one that exists, or a copy, made once.
  ir::ValueId arrange(const std::vector<Lane>& lanes);
  /// The tensor that holds just these channels in whatever order is cheapest, and where each of them stands.
  ir::ValueId arrange_any(const std::vector<Lane>& lanes, std::vector<int64_t>& place);

private:
  /// Whole blocks one after the other: slices and a concatenation.
  ir::ValueId join_blocks(const std::vector<Lane>& lanes);
  ir::ValueId gather(const std::vector<Lane>& lanes);

  ir::Patch& patch_;
  int64_t block_;
  std::vector<std::string> origins_;
  std::map<ir::ValueId, int64_t> channels_;
  std::map<std::vector<Lane>, ir::ValueId> made_;
};

}  // namespace tensormill::passes
