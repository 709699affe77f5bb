/// Host steps that decode pictures' files, which are a stranger's: sizes are checked before anything is
/// allocated (runtime/image). Pictures that are too large or of a form that is not implemented are
/// Error(kInvalidImage) or Error(kUnsupportedMediaType). Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// uint8 file [n] -> i64 [2]: the height and the width of its picture; zeros for a file that cannot be
/// decoded.
void picture_extents(const HostCall& call);
/// uint8 file [n], uint8 canvas [h, w, 1 or 3] -> the canvas with the picture at its first rows and columns,
/// gray or colours by the canvas, cut where it is larger. Attribute "reversed": 1 for blue first.
void decode_picture(const HostCall& call);

}  // namespace tensormill::host_ops
