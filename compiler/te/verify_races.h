/// The race rule of verify(): which elements the tasks of a parallel loop touch. Not for other folders.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/te/simplify.h"

namespace tensormill::te {

/// One access of a buffer that outlives the tasks, with what bounds the variables at its place.
struct TaskAccess {
  int buffer_class = 0;  ///< accesses of one class may meet: one buffer, or parameters of one alias class
  std::string buffer_name;
  bool is_store = false;
  std::vector<Expr> indices;     ///< lets inlined
  std::vector<Expr> mask;        ///< of the lanes that access it, if any; lets inlined
  std::vector<int64_t> extents;  ///< of the buffer, when all are constant
  BoundsContext context;
};

/// Throws InternalError naming the buffer unless, for every two accesses of which one stores, iterations of
/// `task` (in [min, min + extent)) that differ touch different elements. The task number is split into digits
/// as the indices divide it; iterations that first differ in one digit are shown to differ by a dimension in
/// which the terms' weights leave no way to meet. `outer` are variables that are the same for all tasks.
void verify_races(const Var& task, const Expr& min, const Expr& extent,
                  const std::vector<TaskAccess>& accesses, const BoundsContext& outer,
                  const std::vector<Var>& outer_variables);

}  // namespace tensormill::te
