/// Where slices of a model's samples start. Thread-safety: pure functions; an object is a value.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/ir/variants.h"
#include "compiler/plan/dim_fit.h"

namespace tensormill::plan {

/// Formulas of the starts of the samples' slices. An axis that ends before that moves it, and no extent shows
/// it where as many elements are left.
class SliceStarts {
public:
  /// Of samples whose graphs differ in their number of nodes nothing is known.
  explicit SliceStarts(const std::vector<const ir::ShapedGraph*>& samples);

  /// False where a start of the graph's slices is known to be another one.
  bool give(const ir::ShapedGraph& shaped) const;

private:
  struct Start {
    size_t node = 0, axis = 0;
    DimFormula value;
  };

  void add(const std::vector<const ir::ShapedGraph*>& samples, size_t node);

  size_t num_nodes_;
  DimFitter fitter_;
  std::vector<Start> starts_;
};

}  // namespace tensormill::plan
