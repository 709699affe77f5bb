#include "compiler/build/extents/run_numbers.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "compiler/build/compose.h"
#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/run_dims.h"
#include "compiler/ir/sym_evaluate.h"
#include "runtime/base/error.h"

namespace tensormill::build {

namespace {

/// Extents of which no two are equal, and which are no usual ones, below what bounds them.
int64_t hint_of(size_t index, const std::optional<ir::SymInt>& high) {
  constexpr std::array<int64_t, 8> kHints = {23, 29, 19, 31, 37, 41, 43, 47};
  const int64_t hint = kHints[index % kHints.size()] + static_cast<int64_t>(index / kHints.size()) * 26;
  return high ? std::clamp<int64_t>(hint, 0, std::max<int64_t>(high->hint() - 1, 0)) : hint;
}

/// What constants and free dims alone make, without loops and branches around it.
class FollowingValue {
public:
  explicit FollowingValue(const ir::Graph& graph) : graph_(graph) {}

  std::optional<ir::KnownValue> of(ir::ValueId value) {
    const bool is_known = note(value) && std::all_of(nodes_.begin(), nodes_.end(), [&](ir::NodeId id) {
                            return evaluate(graph_.node(id));
                          });
    return is_known ? std::optional(known_.at(value)) : std::nullopt;
  }

private:
  /// Collects what the value is made of. False: not of these alone.
  bool note(ir::ValueId value) {
    std::vector<ir::ValueId> open{value};
    std::set<ir::ValueId> seen;
    while (!open.empty()) {
      const ir::ValueId id = open.back();
      open.pop_back();
      if (id == ir::kAbsent || !seen.insert(id).second) continue;
      const ir::Value& own = graph_.value(id);
      if (own.known || own.constant) {
        known_.emplace(id, own.known ? own.known : ir::KnownValue(*own.constant));
        continue;
      }
      if (own.producer == ir::kAbsent || !is_of_numbers(graph_.node(own.producer))) return false;
      nodes_.insert(own.producer);
      const std::vector<ir::ValueId>& inputs = graph_.node(own.producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return true;
  }

  bool is_of_numbers(const ir::Node& node) const {
    bool is_constant = node.op != ir::kLoopBegin && node.op != ir::kLoopEnd && node.op != ir::kEnterBranch &&
                       node.op != ir::kChoose;
    ir::for_each_extent(graph_, node,
                        [&](const ir::SymInt& extent) { is_constant = is_constant && extent.is_constant(); });
    return is_constant;
  }

  /// Of numbers by the operator's reference, of what depends on free dims by their expressions, where that
  /// needs no guard.
  bool evaluate(const ir::Node& node) {
    std::vector<const ir::KnownValue*> inputs;
    std::vector<ir::ValueType> input_types, types;
    bool is_symbolic = false;
    for (const ir::ValueId input : node.inputs) {
      inputs.push_back(input == ir::kAbsent ? nullptr : &known_.at(input));
      input_types.push_back(input == ir::kAbsent ? ir::ValueType{} : graph_.value(input).type);
      is_symbolic = is_symbolic || (input != ir::kAbsent && inputs.back()->is_symbolic());
    }
    for (const ir::ValueId output : node.outputs) types.push_back(graph_.value(output).type);
    std::optional<std::vector<ir::KnownValue>> results;
    if (is_symbolic) {
      results = ir::evaluate_symbolic(graph_.ops().get(node.op), node.attrs, inputs, input_types, types,
                                      ir::Undecided::kUnknown);
    } else {
      results = by_reference(node, inputs, types);
    }
    for (size_t i = 0; results && i < results->size(); ++i)
      known_.insert_or_assign(node.outputs[i], std::move((*results)[i]));
    return results.has_value();
  }

  std::vector<ir::KnownValue> by_reference(const ir::Node& node,
                                           const std::vector<const ir::KnownValue*>& inputs,
                                           const std::vector<ir::ValueType>& types) const {
    ir::ReferenceContext context{node.attrs, {}, {}};
    std::vector<Tensor> results;
    for (const ir::KnownValue* input : inputs)
      context.inputs.push_back(input == nullptr ? nullptr : &**input);
    for (const ir::ValueType& type : types) results.push_back(Tensor::zeros(type.dtype, type.shape.hints()));
    for (Tensor& result : results) context.outputs.push_back(&result);
    try {
      graph_.ops().get(node.op).reference(context);
    } catch (Error& error) {
      if (!node.origins.empty()) error.add_context("node \"" + node.origins.front() + "\"");
      throw;
    }
    return {results.begin(), results.end()};
  }

  const ir::Graph& graph_;
  std::map<ir::ValueId, ir::KnownValue> known_;
  std::set<ir::NodeId> nodes_;  ///< in the graph's order
};

}  // namespace

std::optional<ir::KnownValue> following_value(const OpBuilder& builder, ir::ValueId value) {
  return FollowingValue(builder.graph()).of(value);
}

ir::SymShape bind_run_numbers(OpBuilder& builder, ir::ValueId numbers, std::optional<int64_t> low,
                              const std::optional<ir::SymInt>& high) {
  if (const std::optional<ir::KnownValue> known = following_value(builder, numbers)) {
    const ir::SymShape elements = known->elements();
    for (const ir::SymInt& each : elements)
      if (low && !each.is_constant() && !ir::demand(ir::Relation::kLessEqual, *low, each))
        builder.invalid("a number of " + to_string(each) + ", expected " + std::to_string(*low) + " or more");
    return elements;
  }
  // A graph without free dims may have none.
  if (builder.graph().symbols() == nullptr) builder.graph().set_symbols(std::make_shared<ir::SymbolTable>());
  const std::shared_ptr<ir::SymbolTable>& table = builder.graph().symbols();
  ir::SymShape symbols;
  const auto count = static_cast<size_t>(num_elements(builder.type(numbers).shape).hint());
  for (size_t number = table->run_time_symbols().size(); symbols.size() < count; ++number) {
    const std::string name = "run" + std::to_string(number);
    if (table->hints().count(name) != 0) continue;
    ir::RunSymbol symbol{name, low, std::nullopt};
    if (high) symbol.high = high->expr();
    symbols.push_back(table->add_run_time_symbol(symbol, hint_of(table->run_time_symbols().size(), high)));
  }
  builder.add(ir::kBindExtents, {numbers}, {{"extents", symbols}});
  return symbols;
}

ir::SymShape integers_of(OpBuilder& builder, const std::optional<Tensor>& stored, ir::ValueId value,
                         const std::string& name, std::optional<int64_t> low,
                         const std::optional<ir::SymInt>& high) {
  if (!stored && builder.graph().value(value).known) return builder.graph().value(value).known.elements();
  const std::optional<Tensor> elements = stored ? stored : builder.graph().value(value).constant;
  if (elements) {
    if (elements->num_elements() > kMaxListed) builder.unsupported(name, "it has too many elements");
    return ir::KnownValue(*elements).elements();
  }
  Compose c(builder);
  const ir::SymShape extents = c.shape(value);
  if (!extents.is_constant()) builder.unsupported(name, "it has as many elements as a run decides");
  const ir::ValueId flat = c.reshape(c.cast(value, DType::kInt64), {num_elements(extents.hints())});
  return bind_run_numbers(builder, flat, low, high);
}

ir::SymShape known_integers(const OpBuilder& builder, ir::ValueId value, const char* what) {
  const ir::Value& own = builder.graph().value(value);
  if (is_float(own.type.dtype)) builder.invalid(std::string(what) + " is no list of integers");
  if (own.known) return own.known.elements();
  if (own.constant) return ir::KnownValue(*own.constant).elements();
  builder.unsupported(what, "it is worked out by a run");
}

ir::SymInt only_integer(const OpBuilder& builder, const ir::SymShape& integers, const char* what) {
  if (integers.size() != 1)
    builder.invalid(std::string(what) + " has " + std::to_string(integers.size()) + " elements, expected 1");
  return integers[0];
}

ir::ValueId bound_part(OpBuilder& builder, ir::ValueId x, int64_t axis, ir::ValueId count) {
  const ir::SymInt most = builder.type(x).shape[static_cast<size_t>(axis)];
  const ir::SymInt found = bind_run_numbers(builder, count, 0, most)[0];
  return Compose(builder).slice(x, axis, 0, found);
}

ir::ValueId required(OpBuilder& builder, ir::ValueId x, ir::ValueId holds, const std::string& what,
                     const std::vector<ir::ValueId>& shown) {
  Compose c(builder);
  const ir::ValueId one = c.ints({1}, {1});
  const ir::ValueId row = c.reshape(holds, {num_elements(c.shape(holds))});
  const ir::ValueId all = c.concat({c.cast(row, DType::kInt64), one}, 0);
  const ir::ValueId whole = c.cast(c.reduce("reduce_min", all, {0}, false), DType::kBool);
  // A required number of 0 stands for the check, as one element is all that it takes.
  std::vector<ir::ValueId> operands{c.number(x, 0), whole};
  operands.insert(operands.end(), shown.begin(), shown.end());
  const ir::ValueId zero =
      builder.add("require", std::move(operands), {{"what", builder.label() + ": " + what}});
  return c.add(x, zero);
}

}  // namespace tensormill::build
