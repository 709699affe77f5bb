/// Pooling of boxes, by as many sampling points or pixels as their size asks for. Thread-safety: pure
/// functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x [n,c,h,w] of f32 or f64, boxes [m,4] of the same type as x1,y1,x2,y2, the picture of each (i64 [m]) ->
/// [m,c,height,width]: the average or, with attribute "is_max" 1, the largest of ceil(bin) bilinear points an
/// axis of each bin (He et al. 2017, "Mask R-CNN"; ONNX RoiAlign with sampling_ratio 0). Attributes:
/// "height", "width" in bins, "spatial_scale" of box coordinates to pixels, "half_pixel": 1 moves boxes by
/// half a pixel, 0 makes them a pixel large at least. A box that has no points, because it is empty or not
/// finite, gives 0. A picture that is not there is Error(kTensorData). Work is bounded by x and the bins,
/// whatever the box.
void roi_align(const HostCall& call);
/// The same operands and results: the largest pixel of each bin, 0 where a bin has none. A box reaches from
/// its first to its last pixel, halves rounded away from zero, and is a pixel large at least; bins overlap
/// where it does not divide by them (Girshick 2015, "Fast R-CNN"; ONNX MaxRoiPool). Attributes: "height",
/// "width", "spatial_scale".
void roi_pool(const HostCall& call);

}  // namespace tensormill::host_ops
