// identity(x) = x                         reshape(reshape(x)) = reshape(x); to the same shape: x
// enter_branch(x) = x, choose(known, x, y) = x or y, of fixed shapes
// transpose(transpose(x)) = transpose(x)  by the identity: x; that moves only extents of 1: reshape(x)
// cast(x) to x's own type = x             expand, tile, slice, pad, concat that change nothing = x
// pow(x, 1) = x, pow(x, 2) = x*x          mul(x, 1), div(x, 1) = x (same type and shape)
#include "compiler/ir/branches.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

bool is_identity_perm(const std::vector<int64_t>& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

/// Extents greater than one keep their order: the bytes do not move.
bool moves_nothing(const std::vector<int64_t>& perm, const ir::SymShape& shape) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

class Simplifier {
public:
  explicit Simplifier(const ir::Graph& graph) : graph_(graph), patch_(graph, "simplify_graph") {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) visit(node);
    return patch_.apply();
  }
  bool changed() const { return !patch_.empty(); }

private:
  const ir::ValueType& type(ir::ValueId id) const { return graph_.value(id).type; }

  void forward(const ir::Node& node, ir::ValueId to) {
    if (type(node.outputs[0]) == patch_.value(to).type) patch_.replace(node.outputs[0], to);
  }

  /// Of symbols nothing is asked: those of a branch are other ones than those around it.
  void forward_fixed(const ir::Node& node, ir::ValueId to) {
    if (type(to).shape.is_constant() && type(node.outputs[0]).shape.is_constant()) forward(node, to);
  }

  void visit(const ir::Node& node) {
    const std::string& op = node.op;
    if (op == "identity" || op == "cast" || op == "expand" || op == "tile" || op == "slice" || op == "pad") {
      visit_no_op(node);
    } else if (op == "concat") {
      if (node.inputs.size() == 1) forward(node, node.inputs[0]);
    } else if (op == "reshape") {
      visit_reshape(node);
    } else if (op == "transpose") {
      visit_transpose(node);
    } else if (op == "pow") {
      visit_pow(node);
    } else if (op == ir::kEnterBranch) {
      forward_fixed(node, node.inputs[0]);
    } else if (op == ir::kChoose) {
      const ir::KnownValue& condition = graph_.value(node.inputs[0]).known;
      if (condition && !condition.is_symbolic())
        forward_fixed(node, node.inputs[condition->element_as_int(0) != 0 ? 1 : 2]);
    } else if (op == "mul" || op == "div") {
      if (scalar_of(graph_, node.inputs[1]) == 1.0) forward(node, node.inputs[0]);
    }
  }

  void visit_no_op(const ir::Node& node) {
    if (type(node.inputs[0]) != type(node.outputs[0])) return;
    // A slice of the same shape may still reverse an axis; a pad may crop on one side and add on the other.
    if (node.op == "slice" && node.attrs.has("steps")) {
      for (int64_t step : node.attrs.ints_of("steps")) {
        if (step < 0) return;
      }
    }
    if (node.op == "pad") {
      for (const ir::SymInt& amount : node.attrs.sym_ints_of("pads")) {
        if (!is_proven(ir::Relation::kEqual, amount, 0)) return;
      }
    }
    forward(node, node.inputs[0]);
  }

  void visit_reshape(const ir::Node& node) {
    if (type(node.inputs[0]) == type(node.outputs[0])) {
      forward(node, node.inputs[0]);
    } else if (const ir::Node* inner = match(graph_, node.inputs[0], "reshape")) {
      const std::vector<std::string> origins = merge_origins(inner->origins, node.origins);
      forward(node, patch_.add_node("reshape", {inner->inputs[0]}, node.attrs, origins)[0]);
    }
  }

  void visit_transpose(const ir::Node& node) {
    const std::vector<int64_t> perm = permutation_of(graph_, node);
    const ir::SymShape& shape = type(node.inputs[0]).shape;
    if (is_identity_perm(perm)) {
      forward(node, node.inputs[0]);
    } else if (moves_nothing(perm, shape)) {
      const ir::Attrs attrs{{"shape", type(node.outputs[0]).shape}};
      forward(node, patch_.add_node("reshape", {node.inputs[0]}, attrs, node.origins)[0]);
    } else if (const ir::Node* inner = match(graph_, node.inputs[0], "transpose")) {
      const std::vector<int64_t> first = permutation_of(graph_, *inner);
      std::vector<int64_t> both;
      for (int64_t axis : perm) both.push_back(first[static_cast<size_t>(axis)]);
      if (is_identity_perm(both)) {
        forward(node, inner->inputs[0]);
      } else {
        const std::vector<std::string> origins = merge_origins(inner->origins, node.origins);
        forward(node, patch_.add_node("transpose", {inner->inputs[0]}, {{"perm", both}}, origins)[0]);
      }
    }
  }

  void visit_pow(const ir::Node& node) {
    const std::optional<double> exponent = scalar_of(graph_, node.inputs[1]);
    if (exponent == 1.0) {
      forward(node, node.inputs[0]);
    } else if (exponent == 2.0 && type(node.inputs[0]) == type(node.outputs[0])) {
      forward(node, patch_.add_node("mul", {node.inputs[0], node.inputs[0]}, {}, node.origins)[0]);
    }
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
};

/// Each round shortens a chain by one; chains are short, the bound only guards against a rule that undoes
/// another.
constexpr int kMaxRounds = 16;

}  // namespace

ir::Graph simplify_graph(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Graph current = graph;
  for (int round = 0; round < kMaxRounds; ++round) {
    Simplifier simplifier(current);
    ir::Graph next = simplifier.run();
    if (!simplifier.changed()) return next;
    current = std::move(next);
  }
  return current;
}

ir::Graph simplify_moved(const ir::Graph& graph, const PassContext& context) {
  return fold_constants(simplify_graph(graph, context), context);
}

}  // namespace tensormill::passes
