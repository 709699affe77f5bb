/// Constants in the layouts of blocked kernels. Everything that a list of lanes does not name is zero.
/// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "runtime/base/tensor.h"

namespace tensormill::passes {

/// w [M, C/group, kernel...] as [blocks(M), blocks(C)/group, kernel..., block, block]: input lane, then
/// output lane. Input channel c of the model is lane `place[c]` of the blocked input with `in_blocks` blocks;
/// with more than one group `place` counts within a group and in_blocks is one group's.
Tensor pack_conv_weights(const Tensor& w, const std::vector<int64_t>& place, int64_t in_blocks,
                         int64_t block);
/// As pack_conv_weights of int8, in int32 words of four input lanes: [..., block / 4, block].
Tensor pack_conv_words(const Tensor& w, const std::vector<int64_t>& place, int64_t in_blocks, int64_t block);
/// w [K, N] of int8 (or [N, K] transposed), K a multiple of 4, as words of four rows: [blocks(N), K / 4,
/// block].
Tensor pack_matrix_words(const Tensor& w, bool transposed, int64_t block);
/// w [M, C, kernel...] as [blocks(M), C, kernel..., block] for an input that is not blocked.
Tensor pack_first_weights(const Tensor& w, int64_t block);
/// w [C, 1, kernel...] as [blocks, kernel..., block]; channel c goes to lane place[c].
Tensor pack_depthwise_weights(const Tensor& w, const std::vector<int64_t>& place, int64_t blocks,
                              int64_t block);
/// x [n, c, spatial...] (n and each spatial extent may be 1 or full, c is place.size()) as [n, blocks,
/// spatial..., block], with `pad` in the lanes that no channel has.
Tensor pack_channels(const Tensor& x, const std::vector<int64_t>& place, int64_t blocks, int64_t block,
                     double pad);
/// w [M, C/group, kernel...] of `groups` groups with `joined` of them made one: [M, joined*C/group,
/// kernel...], zeros where an output channel does not read an input channel. The last groups may be fewer.
Tensor join_groups(const Tensor& w, int64_t groups, int64_t joined);
/// One value a channel, as [blocks*block].
Tensor pack_vector(const Tensor& x, const std::vector<int64_t>& place, int64_t blocks, int64_t block);

}  // namespace tensormill::passes
