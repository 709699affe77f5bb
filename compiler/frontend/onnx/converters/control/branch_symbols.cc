#include "compiler/frontend/onnx/converters/control/branch_symbols.h"

#include <algorithm>

#include "compiler/ir/branches.h"

namespace tensormill::frontend::onnx {

namespace {

using ir::Relation;

/// The one integer of a value that is known, if it is one.
std::optional<ir::SymInt> known_integer(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.value(id);
  if (!value.known || is_float(value.type.dtype)) return std::nullopt;
  const ir::SymShape elements = value.known.elements();
  return elements.size() == 1 ? std::optional(elements[0]) : std::nullopt;
}

/// A comparison of two known integers.
std::optional<ExtentCondition> comparison(const ir::Graph& graph, const ir::Node& node) {
  const std::optional<ir::SymInt> a = known_integer(graph, node.inputs[0]),
                                  b = known_integer(graph, node.inputs[1]);
  if (!a || !b) return std::nullopt;
  if (node.op == "equal") return ExtentCondition{Relation::kEqual, *a, *b};
  if (node.op == "less") return ExtentCondition{Relation::kLess, *a, *b};
  if (node.op == "less_equal") return ExtentCondition{Relation::kLessEqual, *a, *b};
  if (node.op == "greater") return ExtentCondition{Relation::kLess, *b, *a};
  if (node.op == "greater_equal") return ExtentCondition{Relation::kLessEqual, *b, *a};
  return std::nullopt;
}

}  // namespace

std::optional<ExtentCondition> extent_condition(const ir::Graph& graph, ir::ValueId condition) {
  bool holds = true;
  while (graph.value(condition).producer != ir::kAbsent) {
    const ir::Node& node = graph.node(graph.value(condition).producer);
    const bool is_bool = !node.inputs.empty() && graph.value(node.inputs[0]).type.dtype == DType::kBool;
    if (is_bool &&
        (node.op == "reshape" || node.op == "identity" || node.op == "cast" || node.op == ir::kEnterBranch)) {
      condition = node.inputs[0];
    } else if (node.op == "not") {
      condition = node.inputs[0];
      holds = !holds;
    } else if (node.op == "cast") {
      const std::optional<ir::SymInt> number = known_integer(graph, node.inputs[0]);
      return number ? std::optional(ExtentCondition{Relation::kEqual, *number, 0, !holds}) : std::nullopt;
    } else {
      std::optional<ExtentCondition> found = node.inputs.size() == 2 ? comparison(graph, node) : std::nullopt;
      if (found) found->holds = holds;
      return found;
    }
  }
  return std::nullopt;
}

ir::SymInt as_number(const ExtentCondition& condition) {
  const ir::SymInt more = condition.b - condition.a;
  const auto from_0_to_1 = [](const ir::SymInt& value) { return min(max(value, 0), 1); };
  ir::SymInt number;
  switch (condition.relation) {
    case Relation::kEqual:
      number = 1 - min(max(more, -more), 1);
      break;
    case Relation::kLess:
      number = from_0_to_1(more);
      break;
    case Relation::kLessEqual:
      number = from_0_to_1(more + 1);
      break;
  }
  return condition.holds ? number : 1 - number;
}

namespace {

void add_captured(const GraphProto& body, const Scope& around, std::set<std::string> own,
                  std::set<std::string>& captured) {
  for (const ValueInfoProto& input : body.inputs) own.insert(input.name);
  for (const TensorProto& tensor : body.initializers) own.insert(tensor.name);
  const auto read = [&](const std::string& name) {
    if (!name.empty() && own.count(name) == 0 && around.find(name) != nullptr) captured.insert(name);
  };
  for (const NodeProto& node : body.nodes) {
    for (const std::string& input : node.inputs) read(input);
    for (const AttributeProto& attribute : node.attributes) {
      for (const auto& graph : attribute.graphs) add_captured(*graph, around, own, captured);
    }
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueInfoProto& output : body.outputs) read(output.name);
}

/// The branch whose symbols the values have that the names stand for.
int64_t branch_around(StructureContext& context, const std::set<std::string>& names) {
  const auto of_value = [&](ir::ValueId id) {
    if (id == ir::kAbsent) return ir::kOutside;
    const ir::Value& value = context.node.graph().value(id);
    ir::SymShape dims = value.type.shape;
    if (value.known.is_symbolic()) {
      const ir::SymShape elements = value.known.elements();
      dims.insert(dims.end(), elements.begin(), elements.end());
    }
    int64_t branch = ir::kOutside;
    for (const ir::SymInt& dim : dims) branch = std::max(branch, ir::branch_of(dim.expr()).value_or(branch));
    return branch;
  };
  int64_t branch = ir::kOutside;
  for (const std::string& name : names) {
    const Binding& binding = *context.scope.find(name);
    for (const ir::ValueId each : {binding.tensor, binding.present, binding.extents})
      branch = std::max(branch, of_value(each));
    for (const ir::ValueId each : binding.elements) branch = std::max(branch, of_value(each));
  }
  return branch;
}

}  // namespace

std::set<std::string> captured_names(const GraphProto& body, const Scope& around) {
  std::set<std::string> captured;
  add_captured(body, around, {}, captured);
  return captured;
}

BranchSymbols::BranchSymbols(StructureContext& context, ir::ValueId condition,
                             std::optional<ExtentCondition> of_extents)
    : context_(context), condition_(condition), of_extents_(std::move(of_extents)) {
  captured_ = {captured_names(context.body("then_branch"), context.scope),
               captured_names(context.body("else_branch"), context.scope)};
  std::set<std::string> all = captured_[0];
  all.insert(captured_[1].begin(), captured_[1].end());
  const int64_t around = branch_around(context, all);
  if (of_extents_) {
    // The condition may have been computed farther outside.
    const std::optional<ir::SymInt> a = ir::seen_from(of_extents_->a, around),
                                    b = ir::seen_from(of_extents_->b, around);
    of_extents_ = a && b ? std::optional(ExtentCondition{of_extents_->relation, *a, *b, of_extents_->holds})
                         : std::nullopt;
  }
  for (int64_t& number : numbers_) number = ir::add_branch(*context.builder.graph().symbols(), around);
}

bool BranchSymbols::assume(bool when) {
  if (!of_extents_) return true;
  const ir::SymInt a = inside(of_extents_->a, when), b = inside(of_extents_->b, when);
  if (when == of_extents_->holds) return demand(of_extents_->relation, a, b);
  switch (of_extents_->relation) {
    case Relation::kLess:
      return demand(Relation::kLessEqual, b, a);
    case Relation::kLessEqual:
      return demand(Relation::kLess, b, a);
    case Relation::kEqual:
      break;
  }
  if (is_proven(Relation::kEqual, a, b)) return false;
  // At other hints it is no fact, which costs nothing but what would follow.
  if (a.hint() != b.hint())
    context_.builder.graph().symbols()->add_guard({Relation::kEqual, false, a.expr(), b.expr(), {}, true});
  return true;
}

ir::ValueId BranchSymbols::entered(ir::ValueId value, bool when) {
  if (value == ir::kAbsent) return value;
  const ir::Value& own = context_.node.graph().value(value);
  const bool is_symbolic = own.known.is_symbolic();
  if (own.type.shape.is_constant() && !is_symbolic) return value;
  const auto all_inside = [&](const ir::SymShape& dims) {
    ir::SymShape result;
    for (const ir::SymInt& dim : dims) result.push_back(inside(dim, when));
    return result;
  };
  ir::Attrs attrs{{"shape", all_inside(own.type.shape)}};
  if (own.known) {
    attrs.set("values", all_inside(own.known.elements()));
    attrs.set("dtype", own.type.dtype);
  }
  return context_.node.add(std::string(ir::kEnterBranch), {value, condition_}, std::move(attrs));
}

Binding BranchSymbols::entered(const Binding& binding, bool when) {
  Binding result = binding;
  for (ir::ValueId* value : {&result.tensor, &result.present, &result.extents})
    *value = entered(*value, when);
  for (ir::ValueId& element : result.elements) element = entered(element, when);
  return result;
}

Scope BranchSymbols::entered(bool when) {
  Scope scope(&context_.scope);
  for (const std::string& name : captured_[when ? 0 : 1])
    scope.bind(name, entered(*context_.scope.find(name), when));
  return scope;
}

}  // namespace tensormill::frontend::onnx
