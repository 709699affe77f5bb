/// What a run has to hold to, where nothing says it before: a run in which it does not fails at the node.
/// Thread-safety: as the context.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// What has to hold, and what the error of a run says in which it does not: `what`, in which the numbers, of
/// one element or lists of a few, stand for each "{}".
struct Check {
  ir::ValueId holds = ir::kAbsent;  ///< bool [1]
  std::string what;
  std::vector<ir::ValueId> numbers = {};
  bool is_of_extents = false;  ///< a run in which it does not hold is of shapes that the graph is not of
};

/// 0, as i64 [1]. A run fails there in which the check does not hold, unless that is in a branch that is not
/// taken.
ir::ValueId zero_if(NodeContext& context, const Check& check);
/// x; a run fails as zero_if says.
ir::ValueId value_if(NodeContext& context, ir::ValueId x, const Check& check);
/// x, which is there when `zero` is: a result of zero_if, or what is made of some.
ir::ValueId value_with(NodeContext& context, ir::ValueId x, ir::ValueId zero);
/// number, which has one element; a run fails as zero_if says, with an error of the text `what`, in which the
/// number stands for "{}".
ir::ValueId checked_number(NodeContext& context, ir::ValueId number, ir::ValueId holds,
                           const std::string& what);

/// An axis of one of several operands.
struct MeetingAxis {
  size_t operand = 0;
  int64_t axis = 0;
};
/// Axes that are of one extent, of which data decides some: they get the same count, where it is not known
/// that they have it, and the same capacity. A run fails in which they differ.
void make_same(NodeContext& context, std::vector<ir::ValueId>& operands,
               const std::vector<MeetingAxis>& axes);
/// Axes that broadcast: a run has one element along some of them, which stands for all, and as many of the
/// others. A run fails in which it has other numbers of them.
void make_broadcast(NodeContext& context, std::vector<ir::ValueId>& operands,
                    const std::vector<MeetingAxis>& axes);

/// x whose axis has `extent` elements: where a run decides how many there are, it fails with other ones.
ir::ValueId with_extent(NodeContext& context, ir::ValueId x, int64_t axis, const ir::SymInt& extent);
/// Operands of an operator on their elements at the same index, broadcast, or, with `joined`, of a
/// concatenation along that axis: make_same of all axes that meet.
std::vector<ir::ValueId> with_same_counts(NodeContext& context, std::vector<ir::ValueId> operands,
                                          std::optional<int64_t> joined);
/// Operands of an operator of the model on elements that broadcast along all axes but the last `others`:
/// make_broadcast of those that meet.
std::vector<ir::ValueId> dynamic_broadcast(NodeContext& context, std::vector<ir::ValueId> operands,
                                           size_t others = 0);

}  // namespace tensormill::frontend::onnx
