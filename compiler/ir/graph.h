/// The graph IR: an SSA graph of typed values. Nodes stand in a vector in topological order; a value is
/// produced by one node, or is a graph input, or a constant. Passes never edit nodes in place: they apply a
/// Patch (patch.h). Extents are SymInts (sym_int.h): expressions over the graph's symbols, or numbers.
/// Thread-safety: a Graph belongs to one thread at a time; const access is free to share where it has no
/// symbols.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/sym_int.h"
#include "runtime/base/digest.h"
#include "runtime/base/tensor.h"

namespace tensormill::ir {

/// The type of a value. (Sequence and Optional values join kTensor here when an operator needs them.)
struct ValueType {
  DType dtype = DType::kFloat32;
  SymShape shape;
  bool operator==(const ValueType&) const = default;
};
/// "f32[N,3,(H + 1) // 2,224]"
std::string to_string(const ValueType& type);

using ValueId = int32_t;
using NodeId = int32_t;
/// An input that is not given (optional operands), and the producer of inputs and constants.
inline constexpr int32_t kAbsent = -1;

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, DType, SymInt, SymShape>;
/// Attributes in the order of their names. Integers that depend on no symbol are held as int64_t.
class Attrs {
public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> values) {
    for (const auto& [name, value] : values) set(name, value);
  }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  void set(const std::string& name, AttrValue value);
  /// The attribute; InternalError when it is missing or of another kind (converters and the parser check
  /// first).
  int64_t int_of(const std::string& name) const;
  double float_of(const std::string& name) const;
  const std::string& string_of(const std::string& name) const;
  Ints ints_of(const std::string& name) const;  ///< of symbolic ones by their guards
  /// One, or a list, that may be symbolic.
  SymInt sym_int_of(const std::string& name) const;
  SymShape sym_ints_of(const std::string& name) const;
  DType dtype_of(const std::string& name) const;
  const std::map<std::string, AttrValue>& all() const { return values_; }
  /// Whether none depends on a symbol.
  bool is_constant() const;
  bool operator==(const Attrs& other) const;  ///< the same numbers and expressions, without a guard

private:
  std::map<std::string, AttrValue> values_;
};

/// "{axis: 1, shape: dims [N, 3]}"
std::string to_string(const Attrs& attrs);

/// Value of a small integer or bool tensor that is known while the graph is built.
class KnownValue {
public:
  KnownValue() = default;
  KnownValue(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: a tensor is a known value
  /// `elements`, in row-major order, of a tensor of integers.
  KnownValue(DType dtype, const Shape& shape, SymShape elements);

  explicit operator bool() const { return tensor_.has_value(); }
  bool is_symbolic() const { return !elements_.empty(); }
  const Shape& shape() const { return tensor_->shape(); }
  /// The elements in row-major order.
  SymShape elements() const;
  /// Of symbolic elements by their guards.
  const Tensor& operator*() const;
  const Tensor* operator->() const { return &**this; }

private:
  std::optional<Tensor> tensor_;  ///< hints where symbolic
  SymShape elements_;             ///< empty where no element is symbolic
};

struct Value {
  ValueType type;
  std::string name;  ///< the model's name of it, or a made one; unique in the graph
  NodeId producer = kAbsent;
  int slot = 0;                    ///< which output of the producer
  std::optional<Tensor> constant;  ///< set for constants: mapped or owned bytes, never copied
  /// Shape arithmetic: known at every opt level; set for constants too. At most kMaxKnownElements elements.
  KnownValue known;
  /// What is known, else the constant, else null.
  const Tensor* tensor() const { return known ? &*known : constant ? &*constant : nullptr; }
};
inline constexpr int64_t kMaxKnownElements = 1024;

class Graph;
struct Node {
  std::string op;  ///< a row of ops.def, or "fused" (one region, see passes/fuse)
  Attrs attrs;
  std::vector<ValueId> inputs;  ///< kAbsent where an optional operand is not given
  std::vector<ValueId> outputs;
  std::vector<std::string> origins;  ///< names of the model's own nodes that it came from
  std::shared_ptr<const Graph>
      region;  ///< "fused": inputs correspond to the region's inputs, outputs likewise
};
/// Puts those of `more` that are not yet among `origins` behind them.
void add_origins(const std::vector<std::string>& more, std::vector<std::string>& origins);

class OpRegistry;

class Graph {
public:
  explicit Graph(const OpRegistry& ops) : ops_(&ops) {}

  const OpRegistry& ops() const { return *ops_; }
  /// References to nodes and values stay valid while others are added.
  const std::deque<Node>& nodes() const { return nodes_; }
  const std::deque<Value>& values() const { return values_; }
  /// Throw OutOfRange for kAbsent and other ids that the graph has not.
  const Node& node(NodeId id) const { return nodes_[place(id, nodes_.size())]; }
  const Value& value(ValueId id) const { return values_[place(id, values_.size())]; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  std::vector<std::string> output_names() const;
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// What extents may be expressions of; null: of nothing.
  const std::shared_ptr<SymbolTable>& symbols() const { return symbols_; }
  void set_symbols(std::shared_ptr<SymbolTable> symbols) { symbols_ = std::move(symbols); }

  ValueId add_input(const std::string& name, ValueType type);
  ValueId add_constant(const std::string& name, Tensor tensor);
  /// Appends a node whose inputs exist; its output types come from the operator's type rule, and known values
  /// are propagated. Throws Error(kInvalidModel) from the rule, with the node's name in front: also where the
  /// rule looks for an axis that an operand has not.
  std::vector<ValueId> add_node(const std::string& op, std::vector<ValueId> inputs, Attrs attrs = {},
                                std::vector<std::string> origins = {},
                                std::vector<std::string> output_names = {});
  /// As add_node for a "fused" node with its region; types are the region's.
  std::vector<ValueId> add_fused(std::vector<ValueId> inputs, std::shared_ptr<const Graph> region,
                                 std::vector<std::string> origins,
                                 std::vector<std::string> output_names = {});
  void set_outputs(std::vector<ValueId> outputs) { outputs_ = std::move(outputs); }
  /// Renames a value; the name must be free.
  void rename_value(ValueId id, const std::string& name);
  std::optional<ValueId> find_value(std::string_view name) const;
  /// A name that is not taken yet, made from `base`.
  std::string unique_name(const std::string& base) const;
  /// For each value, the nodes that read it, in order, once each.
  std::vector<std::vector<NodeId>> uses() const;

private:
  static size_t place(int32_t id, size_t size) {
    if (id < 0 || static_cast<size_t>(id) >= size) [[unlikely]]
      throw_not_there(id);
    return static_cast<size_t>(id);
  }
  [[noreturn]] static void throw_not_there(int32_t id);
  ValueId add_value(std::string name, ValueType type);
  void propagate_known(const Node& node);
  bool propagate_symbolic(const Node& node);

  const OpRegistry* ops_;
  std::string name_;
  std::shared_ptr<SymbolTable> symbols_;
  std::deque<Node> nodes_;
  std::deque<Value> values_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::map<std::string, ValueId, std::less<>> by_name_;
};

/// Text form. Constants are printed as `const f32[64,3,7,7] sha256:…` unless small (<= 16 elements, printed
/// in full); parse_graph gets the bytes of large ones from `constants` by digest. parse(print(g)) prints the
/// same again.
std::string print(const Graph& graph);
Graph parse_graph(std::string_view text, const OpRegistry& ops,
                  const std::map<Digest, Tensor>& constants = {});
/// Re-runs every type rule and checks the structure; throws InternalError naming the node.
void verify(const Graph& graph);
/// Digest of the text form with constants by content.
Digest hash(const Graph& graph);

}  // namespace tensormill::ir
