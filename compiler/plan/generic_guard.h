/// Which extents a generic nest's loops run for. Thread-safety: values and pure functions.
#pragma once

#include <vector>

#include "compiler/plan/generic_nest.h"
#include "compiler/te/simplify.h"

namespace tensormill::plan {

class ExtentGuard {
public:
  /// `empty`: nullptr where all inputs have elements and no free dim is 0. What is passed must outlive it.
  ExtentGuard(const Nest& nest, const TermVars& vars, const EmptyCase* empty)
      : nest_(nest), vars_(vars), empty_(empty) {}

  /// No extent is 0 inside the loops: then there is nothing to compute, or nothing to read.
  std::vector<te::Expr> conditions() const;
  /// That the input has elements, where it may have none; null where that is known; false where it has none.
  te::Expr presence(size_t input) const;
  te::Stmt around(te::Stmt body) const;

private:
  bool is_empty(size_t input) const { return empty_ != nullptr && empty_->inputs[input]; }
  bool is_always_empty(size_t input) const;
  std::vector<te::Expr> absences() const;

  const Nest& nest_;
  const TermVars& vars_;
  const EmptyCase* empty_;
};

/// Extents of padded copies and of what is read from them are formulas of their own, of which nothing
/// shows that they fit: the conditions under which what a sum always reads is there, which `context` then
/// takes as true. Each element that asks for itself takes several times as long.
std::vector<te::Expr> assume_reads_within(const te::TensorNode& tensor, const TermVars& vars,
                                          te::BoundsContext& context);

}  // namespace tensormill::plan
