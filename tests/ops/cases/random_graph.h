/// Random graphs from the operators' cases: every graph takes the next instances of a shuffled list and
/// connects them, through glue operators that adapt shapes and ranges, to what the graph has computed before.
/// Enough graphs cover operator x attribute variant x dtype completely. Thread-safety: pure functions; a
/// Coverage belongs to one thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

struct RandomGraphOptions {
  uint64_t seed = 1;      ///< of the list's order and of all choices
  size_t instances = 12;  ///< cases in one graph
  bool smooth =
      false;  ///< only operators under which small errors stay small, so that whole graphs can be compared
  std::set<DType> dtypes{};  ///< of the cases; all when empty
};

struct RandomGraph {
  ir::Graph graph;
  std::vector<Tensor> inputs;  ///< in the order of the graph's inputs
};

/// The shuffled list of instances, cut into graphs.
class RandomGraphs {
public:
  explicit RandomGraphs(RandomGraphOptions options = {});
  /// So many graphs go once through the list.
  size_t count() const;
  /// Graph `index`: always the same for the same options.
  RandomGraph make(size_t index) const;
  /// The instances that all graphs together contain.
  const std::vector<Instance>& instances() const { return list_; }

private:
  RandomGraphOptions options_;
  std::vector<Instance> list_;
};

/// What the nodes of graphs have covered: operator, attributes and the dtype of the first operand.
class Coverage {
public:
  void add(const ir::Graph& graph);
  /// Instances of `wanted` that no graph had, by name.
  std::vector<std::string> missing(const std::vector<Instance>& wanted) const;
  /// "relu: 13 of 13 (plain: f32 f64 …)", a line for each operator.
  std::string report(const std::vector<Instance>& wanted) const;

private:
  std::set<std::string> seen_;
};

/// The program of one node, with a placeholder for each distinct operand that is given.
te::Program node_program(const ir::Graph& graph, const ir::Node& node);
/// The whole graph as one program: its inputs, then its constants, are the placeholders.
te::Program graph_program(const ir::Graph& graph);
/// The constants in the order of graph_program's placeholders.
std::vector<Tensor> constants_of(const ir::Graph& graph);

}  // namespace tensormill::ops_cases
