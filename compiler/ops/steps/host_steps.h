/// Operators without a tensor expression: results whose extent depends on data. The host step of the same
/// name (runtime/host_ops) computes them, in kernels' stead. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/op_def.h"
#include "runtime/host_ops/registry.h"

namespace tensormill::ops {

inline bool is_host_step(const ir::OpDef& def) { return def.compute == nullptr; }

/// The axis along which the one result of a host step has at each position what the operands have there,
/// which is `axes` by operand; nothing where the step mixes their elements.
std::optional<size_t> element_axis(const ir::Node& node, const std::vector<std::optional<size_t>>& axes);

/// By output of `node`: the axis whose extent depends on data, if any; the node's last output counts them
/// all. Empty for other operators.
std::vector<std::optional<size_t>> data_axes(const ir::Node& node);

/// The operand of a host step in whose place its first result may be made.
std::optional<size_t> operand_in_place(const ir::Node& node);

/// Runs a host step on the tensors of a reference evaluation.
void run_host(host_ops::HostFunction function, const ir::ReferenceContext& context);

/// Whether the host step reads the attribute. How many positions are sorted out, or parts stacked, is the
/// extent of an output, which may be free, and what the importer notes for itself says nothing to the step.
bool is_read(const std::string& attribute);

/// The attributes as the host step reads them: JSON text.
std::string host_attributes(const ir::Attrs& attrs);

}  // namespace tensormill::ops
