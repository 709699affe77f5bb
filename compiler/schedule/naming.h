/// Names for values that a tree would spell more than once. Expressions are DAGs in memory and trees in text
/// and for executors: what is shared must become a let before it is stored. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <vector>

#include "compiler/te/stmt.h"

namespace tensormill::schedule {

/// make(values) where nodes that occur more than once (the same node, not equal ones) are replaced by
/// variables, and lets of these variables around the result.
te::Stmt name_shared(std::vector<te::Expr> values,
                     const std::function<te::Stmt(const std::vector<te::Expr>&)>& make);

}  // namespace tensormill::schedule
