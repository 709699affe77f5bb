/// What convolutions and pools say of their windows, in all the spellings that Caffe2 has for it.
/// Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

/// Argument legacy_pad: how pads follow from the extents.
enum class LegacyPad : uint8_t { kNone, kValid, kSame, kCaffe };
LegacyPad legacy_pad_of(NodeContext& node);

/// A number an axis of space: `plural` as a list, `single` for all of them, or, of two axes, `single`_h and
/// `single`_w; 1 where none is given. From 1 on.
ir::Ints window_numbers(NodeContext& node, const char* plural, const char* single, size_t rank);
/// Pads, all begins, then all ends: pads as a list, pad for all of them, or, of two axes, pad_t, pad_l, pad_b
/// and pad_r; 0 where none is given.
ir::Ints pads_of(NodeContext& node, size_t rank);
/// The windows over map [N,C,spatial...], but for legacy_pad of kCaffe.
build::Windows windows_over(NodeContext& node, V map, const std::vector<int64_t>& kernel, LegacyPad legacy);

}  // namespace tensormill::frontend::caffe2
