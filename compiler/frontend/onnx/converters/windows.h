/// The attributes of windows that move over a map: of convolutions and pools. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// Larger numbers are no geometry; below it products of two stay inside int64.
inline constexpr int64_t kMaxWindowNumber = int64_t{1} << 30;

struct Windows {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  ///< begins, then ends
  /// Pads that follow from symbolic extents, in place of `pads`, which are 0; empty: none does
  ir::SymShape symbolic_pads = {};
  bool same = false;   ///< pads follow from the extents
  bool upper = false;  ///< then: the odd pad goes to the end
  /// Where a pooling window is larger than the padded input: how many windows there are along each axis
  std::optional<ir::SymShape> pooled = std::nullopt;
};

/// Refuses an attribute of another length.
void check_length(const NodeContext& context, const char* name, const std::vector<int64_t>& values,
                  size_t length);
/// The node's strides, dilations and pads, over a map of `shape` [N,C,spatial...].
Windows read_windows(const NodeContext& context, const ir::SymShape& shape, std::vector<int64_t> kernel);
/// The same of a pool over x. A window may be larger than the padded input: the standard's shape inference
/// and ONNX Runtime divide what is left toward zero, so that there is one window, filled in part, where less
/// than a stride is missing, and none where less than two are. What lacks more is left to the operator, which
/// refuses it.
Windows read_pool_windows(NodeContext& context, ir::ValueId x);
/// x with the windows' pads, which become 0: in a sample, where pads follow from extents.
ir::ValueId padded_for(NodeContext& context, ir::ValueId x, Windows& windows, double value);

}  // namespace tensormill::frontend::onnx
