/// Loops that run: loop_begin, the body's nodes once, loop_end (ir/loops.h). Thread-safety: as the builder.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/builder.h"

namespace tensormill::frontend::onnx {

struct LoopForm {
  ir::ValueId max_trips = ir::kAbsent;  ///< i64 [1]
  ir::ValueId condition = ir::kAbsent;  ///< bool [1], of the first iteration
  std::vector<ir::ValueId> initial;     ///< of the values that an iteration hands to the next
  std::vector<ir::ValueId> scanned;     ///< along their first axis
  /// The body gets the number of the iteration and a condition in front, and gives a condition in front.
  bool has_condition = false;
  std::optional<int64_t> most_trips;  ///< what bounds their number
  bool is_exact = false;              ///< there are as many where no condition ends the loop
};

/// The final values, then parts stacked along a new first axis. Nothing when a node of the body could not be
/// converted. Throws UnsupportedForm when the types of what is handed on change, or of parts' numbers without
/// a bound.
std::optional<std::vector<Binding>> convert_as_loop(StructureContext& context, const LoopForm& form);

}  // namespace tensormill::frontend::onnx
