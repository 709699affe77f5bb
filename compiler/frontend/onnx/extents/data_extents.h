/// Results whose extents depend on data, such as NonZero's: graphs hold them at the largest extents that
/// shapes allow, with a count for each. What is computed from them element by element has the same counts,
/// and outputs of the graph are trimmed to them.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::frontend::onnx {

/// An axis of a value that as many elements have as the count, an i64 [1], says.
struct DataExtent {
  size_t axis = 0;
  ir::ValueId count = ir::kAbsent;
};
/// What is known of a value's extents: which ones data decides, or nothing.
struct DataShape {
  bool is_known = true;
  std::vector<DataExtent> extents;  ///< by axis; none where all are fixed
  /// That of one axis, or null.
  const DataExtent* along(int64_t axis) const;
  /// The only one, or null.
  const DataExtent* only() const { return extents.size() == 1 ? extents.data() : nullptr; }
};

/// Where the axis of `from` stands after a change of shape, if it does.
std::optional<size_t> reshaped_axis(const ir::SymShape& from, size_t axis, const ir::SymShape& to);

/// Which counts are computed alike, so that they are equal in each run.
class CountNumbers {
public:
  explicit CountNumbers(const ir::Graph& graph) : graph_(graph) {}
  void add_value(ir::ValueId id);
  void add_node(ir::NodeId id);
  /// `id`, or the first count like it.
  ir::ValueId of(ir::ValueId id) const { return id == ir::kAbsent ? id : same_[static_cast<size_t>(id)]; }

private:
  bool is_number(ir::ValueId id) const;
  void set(ir::ValueId id, ir::ValueId first) { same_[static_cast<size_t>(id)] = first; }
  void add_taken(const ir::Node& node, size_t axis);

  const ir::Graph& graph_;
  std::vector<ir::ValueId> same_;
  std::map<std::tuple<DType, Shape, int64_t>, ir::ValueId> known_;
  /// By operator, operands and the attributes' integers.
  std::map<std::tuple<std::string, std::vector<ir::ValueId>, std::vector<int64_t>>, std::vector<ir::NodeId>>
      seen_;
  std::map<std::pair<ir::ValueId, te::Dim>, ir::ValueId> taken_;
  std::map<ir::ValueId, ir::SymInt> most_;  ///< of counts of host steps
};

/// The data extents of a graph to which nodes are added: what is asked for looks at those that are new since.
/// Thread-safety: belongs to one thread. The graph outlives it.
class DataExtents {
public:
  explicit DataExtents(const ir::Graph& graph);
  DataShape shape_of(ir::ValueId value);
  /// Whether an extent of the value may depend on data.
  bool may_depend(ir::ValueId value);
  /// Whether the value is computed from an input of the graph, or from what a loop hands on.
  bool reads_input(ir::ValueId value);
  /// Whether two counts are equal in each run.
  bool same_count(ir::ValueId a, ir::ValueId b);
  /// The first count that is equal to this one in each run.
  ir::ValueId first_alike(ir::ValueId count);
  /// The node that mixes elements of such an axis with what may not be there, and from which the value is
  /// computed; kAbsent where there is none.
  ir::NodeId mixing(ir::ValueId value);
  /// By value: the symbols that a run binds to its elements.
  std::map<ir::ValueId, ir::SymShape>& bound_numbers() { return bound_numbers_; }
  /// By value in extents of a run: another one with the same elements in the same order.
  std::map<ir::ValueId, ir::ValueId>& reshaped() { return reshaped_; }
  /// Nothing reads the results of the node whose first one this is but what makes them as long as there are
  /// of them. To be called before anything is asked of it.
  void set_exact(ir::ValueId value) { exact_.insert(value); }
  /// Whether all loops whose bodies are being built bind symbols anew in each iteration, as where there is
  /// none.
  bool binds_in_loops() const { return std::find(loops_.begin(), loops_.end(), false) == loops_.end(); }
  size_t loops_around() const { return loops_.size(); }
  void enter_loop(bool binds) { loops_.push_back(binds); }
  void leave_loop() { loops_.pop_back(); }

private:
  using Extents = std::vector<DataExtent>;  ///< by axis

  void catch_up();
  void note_inputs(const ir::Node& node);
  void visit(ir::NodeId id);
  std::optional<std::vector<Extents>> results_of(const ir::Node& node) const;
  std::optional<std::vector<Extents>> chosen(const Extents& yes, const Extents& no) const;
  std::optional<Extents> reshaped(const ir::Node& node) const;
  std::optional<Extents> of_host_step(const ir::Node& node) const;
  std::vector<Extents> operands_of(const ir::Node& node) const;

  const ir::Graph& graph_;
  CountNumbers counts_;
  std::map<ir::ValueId, ir::SymShape> bound_numbers_;
  std::map<ir::ValueId, ir::ValueId> reshaped_;
  std::set<ir::ValueId> exact_;
  std::vector<bool> loops_;         ///< around what is being built: whether they bind symbols
  size_t nodes_ = 0;                ///< of the graph, looked at so far
  std::vector<Extents> extents_;    ///< by value
  std::vector<ir::NodeId> mixing_;  ///< by value
  std::vector<bool> depends_;       ///< by value
  std::vector<bool> reads_input_;   ///< by value
};

/// What data decides about an output and is not known: the node that mixes, and the graph's inputs on whose
/// values it depends.
struct MixedExtent {
  std::string node;
  std::vector<std::string> inputs;
};
/// Trims the graph's outputs; nothing else changes. Returns what is not known.
std::optional<MixedExtent> trim_outputs(ir::Graph& graph);

}  // namespace tensormill::frontend::onnx
