/// Loops that run: loop_begin, the body's nodes once, loop_end (ir/loops.h). Thread-safety: as the builder.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

struct LoopForm {
  using Body = std::function<std::optional<std::vector<Binding>>(const std::vector<Binding>& arguments)>;

  ir::ValueId max_trips = ir::kAbsent;  ///< i64 [1]
  ir::ValueId condition = ir::kAbsent;  ///< bool [1], of the first iteration
  std::vector<Binding> initial;         ///< of the values that an iteration hands to the next
  std::vector<ir::ValueId> scanned;     ///< along their first axis
  /// The body gets the number of the iteration and a condition in front, and gives a condition in front.
  bool has_condition = false;
  std::optional<ir::SymInt> most_trips;  ///< what bounds their number, if anything does
  bool is_exact = false;                 ///< there are as many where no condition ends the loop
  /// Stacked parts are the elements of a sequence, which may differ in their extents.
  bool parts_are_elements = false;
  bool keeps_parts = false;  ///< stacked parts have all rows, zeros behind those of the iterations
  /// Numbers that an iteration works out are symbols that it binds; the parts that leave the body have
  /// extents of none.
  bool binds_symbols = false;
  Body body = {};  ///< what an iteration does; empty: the subgraph `body`
};

/// The final values, then parts stacked along a new first axis, or stacks of them. A run fails whose stacked
/// parts have other extents in each iteration. Nothing when a node of the body could not be
/// converted. A tensor whose extents change, and a sequence whose length does, are handed on in a tensor of
/// the most that they can be, with a count, or, where iterations bind symbols, in a buffer that grows; so are
/// parts whose number nothing bounds. Throws UnsupportedForm when what is handed on changes otherwise.
std::optional<std::vector<Binding>> convert_as_loop(StructureContext& context, const LoopForm& form);

/// What `convert` makes of a loop whose iterations bind no symbols, or else of one whose iterations do, where
/// the graph binds any. Nothing where it makes nothing of either: then nothing is noted.
std::optional<std::vector<Binding>> attempt_loop(
    StructureContext& context,
    const std::function<std::optional<std::vector<Binding>>(bool binds_symbols)>& convert);

}  // namespace tensormill::frontend::onnx
