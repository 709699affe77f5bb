/// Operators without a tensor expression: results whose extent depends on data. The host step of the same
/// name (runtime/host_ops) computes them, in kernels' stead. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

inline bool is_host_step(const ir::OpDef& def) { return def.compute == nullptr; }

/// Where a result of `node` has an extent that depends on data: the axis; the node's last output counts it.
/// Nothing for other operators.
std::optional<size_t> data_axis(const ir::Node& node);

/// The attributes as the host step reads them: JSON text.
std::string host_attributes(const ir::Attrs& attrs);

}  // namespace tensormill::ops
