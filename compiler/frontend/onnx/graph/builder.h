/// Makes nodes of the graph of a model's nodes, subgraphs included. Sequences and optional values exist
/// only while the graph is built: a sequence is the list of its tensors, or one tensor of all its elements
/// where a run works out how many there are, an optional is what it holds, if it does. Short
/// loops of known trip counts are unrolled, known branches chosen and calls replaced.
/// Thread-safety: a builder belongs to one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

/// What a name of the model stands for.
struct Binding {
  enum class Kind : uint8_t { kTensor, kSequence, kStack, kRagged, kNone, kMaybe };
  Kind kind = Kind::kTensor;
  /// kTensor, kAbsent for an operand that is not given; kStack: a sequence's elements along the first axis;
  /// kRagged: its elements one behind the other along axis uneven[0]; kMaybe: what an optional value holds
  ir::ValueId tensor = ir::kAbsent;
  std::vector<ir::ValueId> elements;  ///< kSequence
  /// kMaybe, and kStack for an optional sequence: whether it holds that, bool [1]
  ir::ValueId present = ir::kAbsent;
  /// kStack whose elements are not all of one shape, and have capacity for the largest: each one's extents,
  /// i64 [elements, rank], and the axes along which they differ; kRagged: each one's extent, i64 [elements]
  ir::ValueId extents = ir::kAbsent;
  std::vector<size_t> uneven = {};
};

/// The names that a node sees: its graph's own, then those of the graphs around it.
class Scope {
public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  /// Null when nothing has the name.
  const Binding* find(const std::string& name) const;
  void bind(const std::string& name, Binding binding) { own_[name] = std::move(binding); }

private:
  const Scope* outer_;
  std::map<std::string, Binding> own_;
};

class GraphBuilder {
public:
  GraphBuilder(ir::Graph& graph, const ModelSource& source, const ModelProto& model, int64_t opset,
               std::set<std::string> reserved_names, const ImportForm& form)
      : graph_(graph),
        extents_(graph),
        source_(source),
        model_(model),
        opset_(opset),
        reserved_(std::move(reserved_names)),
        form_(form) {}

  /// Converts `node` and binds its outputs; a node that cannot be converted is noted, and those behind it are
  /// left out. `renamed`: the graph's values get new names, since the node may be converted more than once.
  void convert(const NodeProto& node, size_t index, Scope& scope, bool renamed);
  /// The outputs of a subgraph for `arguments`, or nothing when a node in it could not be converted.
  std::optional<std::vector<Binding>> run_body(const GraphProto& body, const Scope& outer,
                                               const std::vector<Binding>& arguments);
  ir::Graph& graph() { return graph_; }
  Binding constant(Tensor tensor);

  /// A number that no other loop of the graph has.
  int64_t next_loop() { return next_loop_++; }
  /// The first of so many growing buffers that nothing else of the graph has (ops/steps/growing_steps.cc).
  int64_t next_buffers(int64_t count) { return std::exchange(next_buffer_, next_buffer_ + count); }
  /// What `convert` makes of a node with subgraphs; nothing where it or a node in a subgraph cannot be
  /// converted: then nothing is noted, but nodes that nothing reads are left in the graph.
  std::optional<std::vector<Binding>> attempt(
      const std::function<std::optional<std::vector<Binding>>()>& convert);
  /// What is made is of the extents alone at which it is, and says so where others would make another graph.
  void note_switch() { has_switches_ = true; }
  bool has_switches() const { return has_switches_; }
  /// Nodes that nothing reads were added.
  void leave_dead_nodes() { left_dead_nodes_ = true; }
  bool left_dead_nodes() const { return left_dead_nodes_; }

  /// The condition (bool [1]) under which what is converted now is used, or kAbsent where it always is. What
  /// is in a branch that is not taken runs too, but must neither fail nor go on without end.
  ir::ValueId guard() const { return guard_; }
  /// Another guard as long as it exists.
  class Guarded {
  public:
    Guarded(GraphBuilder& builder, ir::ValueId guard)
        : builder_(builder), before_(std::exchange(builder.guard_, guard)) {}
    ~Guarded() { builder_.guard_ = before_; }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

  private:
    GraphBuilder& builder_;
    ir::ValueId before_;
  };
  /// What is converted is in the body of a loop as long as it exists.
  class InLoop {
  public:
    /// `binds`: numbers that an iteration works out are symbols that it binds.
    InLoop(GraphBuilder& builder, bool binds) : extents_(builder.extents_) { extents_.enter_loop(binds); }
    ~InLoop() { extents_.leave_loop(); }
    InLoop(const InLoop&) = delete;
    InLoop& operator=(const InLoop&) = delete;

  private:
    DataExtents& extents_;
  };

  /// Nodes that could not be converted, and graph inputs whose values are needed (with what needs them).
  const std::vector<ErrorDetail>& unsupported() const { return unsupported_; }
  const std::map<std::string, std::string>& required() const { return required_; }

private:
  class Called;

  std::string fresh_name(const std::string& base);
  bool convert_parts(const NodeProto& node, NodeContext& context, Scope& scope, std::vector<Binding> inputs,
                     std::vector<Binding>& outputs);
  std::optional<std::vector<Binding>> call(const FunctionProto& function, const NodeProto& node,
                                           const NodeContext& context, const std::vector<Binding>& inputs);

  ir::Graph& graph_;
  DataExtents extents_;
  const ModelSource& source_;
  const ModelProto& model_;
  int64_t opset_;
  std::set<std::string> reserved_;
  const ImportForm& form_;
  size_t next_name_ = 0;
  size_t calls_ = 0;
  size_t call_depth_ = 0;
  int64_t next_loop_ = 0, next_buffer_ = 0;
  bool has_switches_ = false;
  bool left_dead_nodes_ = false;
  ir::ValueId guard_ = ir::kAbsent;
  std::vector<ErrorDetail> unsupported_;
  std::map<std::string, std::string> required_;
};

/// Thrown where a branch of an If, converted for a condition that data decides, fails in each run that takes
/// it.
struct BranchFails {
  std::string reason;
};

/// A node whose operands or results are not all tensors, or which has subgraphs.
struct StructureContext {
  GraphBuilder& builder;
  NodeContext& node;
  const Scope& scope;
  const std::vector<Binding>& inputs;

  /// Operand `index`; Error(kInvalidModel) when it is missing or of another kind.
  const Binding& input(size_t index) const;
  const std::vector<ir::ValueId>& sequence(size_t index) const;
  bool has_input(size_t index) const;
  const GraphProto& body(const char* attribute) const;
};
/// Nothing when a subgraph could not be converted.
using StructureConverter = std::optional<std::vector<Binding>> (*)(StructureContext& context);
/// The function for such an operator, or null.
StructureConverter find_structure_op(std::string_view domain, std::string_view op, int64_t opset);

}  // namespace tensormill::frontend::onnx
