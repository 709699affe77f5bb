/// Adds a model's operators to the graph IR: what every frontend's converters call, whatever their format.
/// A builder stands for one node of the model, which is the origin of all that it adds and the name in every
/// error. It knows no file format. Thread-safety: as the graph, which belongs to one thread at a time.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::build {

/// A form of an operator that is not implemented: thrown by converters, collected over all nodes.
struct UnsupportedForm {
  std::string attribute;  ///< attribute or operand
  std::string reason;
};

class OpBuilder {
public:
  /// `label`: the model's name of the node, or a made one. Values that nobody names are called BASE#n;
  /// `reserved` are names that the model uses for values of its own, and outlives the builder.
  OpBuilder(ir::Graph& graph, std::string label, std::string base, const std::set<std::string>& reserved)
      : graph_(graph),
        label_(std::move(label)),
        base_(std::move(base)),
        reserved_(reserved),
        first_own_(static_cast<ir::ValueId>(graph.values().size())) {}
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;
  virtual ~OpBuilder() = default;

  const std::string& label() const { return label_; }
  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }
  const ir::ValueType& type(ir::ValueId value) const { return graph_.value(value).type; }
  ir::SymShape shape(ir::ValueId value) const { return type(value).shape; }
  DType dtype(ir::ValueId value) const { return type(value).dtype; }
  int64_t rank(ir::ValueId value) const { return static_cast<int64_t>(type(value).shape.size()); }

  /// Throws Error(kInvalidModel), to which whoever converts the node adds its name.
  [[noreturn]] void invalid(const std::string& what) const;
  /// Throws UnsupportedForm.
  [[noreturn]] void unsupported(std::string attribute, std::string reason) const;
  /// `axis` in [0, rank), from one that may be negative.
  int64_t normalize_axis(int64_t axis, int64_t rank) const;
  /// The same of several, in order and once each.
  ir::Ints normalize_axes(std::vector<int64_t> axes, int64_t rank) const;
  /// a * b; the numbers come from the model, so that an overflow is its fault: Error(kInvalidModel).
  ir::SymInt product(const ir::SymInt& a, const ir::SymInt& b) const;

  /// A node of the graph with the model's node as its origin; its first output.
  ir::ValueId add(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {});
  std::vector<ir::ValueId> add_many(const std::string& op, std::vector<ir::ValueId> inputs,
                                    ir::Attrs attrs = {});
  /// The reduction `op` of x; attributes axes and keepdims.
  virtual ir::ValueId add_reduction(const std::string& op, ir::ValueId x, const ir::Attrs& attrs);
  ir::ValueId constant(Tensor tensor);
  ir::ValueId int64_constant(const std::vector<int64_t>& values);  ///< 1-D
  ir::ValueId scalar_like(ir::ValueId value, double number);       ///< 0-D constant of value's dtype
  ir::ValueId reshape(ir::ValueId value, ir::SymShape shape);
  /// The dims as i64 [n]: a constant, or a node where they are symbolic.
  ir::ValueId extents(const ir::SymShape& values);

protected:
  /// Called before a node is added: a frontend may fit operands to each other.
  virtual void fit_operands(const std::string& op, std::vector<ir::ValueId>& inputs, const ir::Attrs& attrs);
  /// Called with a node's results: a frontend may give their readers something else.
  virtual void fit_results(std::vector<ir::ValueId>& results);
  std::string temporary_name() const;
  /// Whether the value was made since the builder was: false for kAbsent.
  bool is_own(ir::ValueId value) const { return value >= first_own_; }
  /// Calls the value by one of the model's names where that is free: not that of an input or output, nor of
  /// another value. Whether it was.
  bool rename_if_free(ir::ValueId value, const std::string& name);

private:
  ir::Graph& graph_;
  std::string label_;
  std::string base_;
  const std::set<std::string>& reserved_;
  const ir::ValueId first_own_;
};

}  // namespace tensormill::build
