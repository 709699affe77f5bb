/// What a run has to hold to, where nothing says it before: a run in which it does not fails at the node.
/// Thread-safety: as the context.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/converter.h"

namespace tensormill::frontend::onnx {

/// 0, as i64 [1]. A run in which `holds` (bool [1]) is false fails there, unless that is in a branch that is
/// not taken.
ir::ValueId zero_if(NodeContext& context, ir::ValueId holds);
/// x; a run fails as zero_if says.
ir::ValueId value_if(NodeContext& context, ir::ValueId x, ir::ValueId holds);
/// number, which has one element; a run fails as zero_if says, with an error of the text `what`, in which the
/// number stands for "{}".
ir::ValueId checked_number(NodeContext& context, ir::ValueId number, ir::ValueId holds,
                           const std::string& what);
/// Operands of an operator on their elements at the same index, broadcast, or, with `joined`, of a
/// concatenation along that axis: where two axes meet whose extents data decides and of which it cannot be
/// told that they are the same, they get the same count. A run fails in which they are not.
std::vector<ir::ValueId> with_same_counts(NodeContext& context, std::vector<ir::ValueId> operands,
                                          std::optional<int64_t> joined);
/// Operands of an operator of the model on elements that broadcast: along an axis whose extent data decides,
/// and which meets one of a fixed extent, a run has one element, which stands for all, or as many. A run
/// fails in which it has another number of them.
std::vector<ir::ValueId> broadcast_as_run(NodeContext& context, std::vector<ir::ValueId> operands);

}  // namespace tensormill::frontend::onnx
