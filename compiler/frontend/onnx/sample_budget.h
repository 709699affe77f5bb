/// What the search for samples may cost, in nodes of all its imports and not in time: it ends alike whenever
/// a model is compiled. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Far more than models need whose graphs have as many nodes at every shape; of one that grows with a free
/// dim, as by the elements of a list, there is no generic plan to be had for it.
class SampleBudget {
public:
  struct Spent {};

  /// `nodes`: of the model.
  explicit SampleBudget(size_t nodes) : nodes_(nodes) {}

  /// Before the next search.
  void begin();
  /// Before the next import. Throws Spent.
  void check() const;
  /// After one that failed, and after one that did not.
  void spend(size_t nodes) { spent_ += nodes; }
  void take(size_t nodes, const std::vector<int64_t>& dims, const ir::Graph& graph);
  /// In place of samples that were not found: the least graph without empty axes and, if there is one of more
  /// nodes, the largest.
  ir::SampleSet instead() const;

private:
  const size_t nodes_;
  size_t spent_ = 0;
  std::optional<ir::ShapedGraph> least_, most_;
};

}  // namespace tensormill::frontend::onnx
