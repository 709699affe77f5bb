#include "compiler/build/extents/run_numbers.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "compiler/build/compose.h"
#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/run_dims.h"

namespace tensormill::build {

namespace {

/// Extents of which no two are equal, and which are no usual ones, below what bounds them.
int64_t hint_of(size_t index, const std::optional<ir::SymInt>& high) {
  constexpr std::array<int64_t, 8> kHints = {23, 29, 19, 31, 37, 41, 43, 47};
  const int64_t hint = kHints[index % kHints.size()] + static_cast<int64_t>(index / kHints.size()) * 26;
  return high ? std::clamp<int64_t>(hint, 0, std::max<int64_t>(high->hint() - 1, 0)) : hint;
}

/// What constants alone make, without loops and branches around it; nothing of any other value.
class ConstantValue {
public:
  explicit ConstantValue(const ir::Graph& graph)
      : graph_(graph), part_(graph.ops()), made_(graph.values().size(), ir::kAbsent) {}

  std::optional<Tensor> of(ir::ValueId value) {
    if (!note(value)) return std::nullopt;
    for (const ir::NodeId id : nodes_) add(graph_.node(id));
    part_.set_outputs({made_[static_cast<size_t>(value)]});
    return ir::evaluate_reference(part_, {})[0];
  }

private:
  /// Collects what the value is made of. False: not of constants alone.
  bool note(ir::ValueId value) {
    std::vector<ir::ValueId> open{value};
    std::set<ir::ValueId> seen;
    while (!open.empty()) {
      const ir::ValueId id = open.back();
      open.pop_back();
      if (id == ir::kAbsent || !seen.insert(id).second) continue;
      const ir::Value& own = graph_.value(id);
      if (own.constant) {
        made_[static_cast<size_t>(id)] = part_.add_constant(own.name, *own.constant);
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

  void add(const ir::Node& node) {
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : node.inputs)
      inputs.push_back(input == ir::kAbsent ? input : made_[static_cast<size_t>(input)]);
    std::vector<std::string> names;
    for (const ir::ValueId output : node.outputs) names.push_back(graph_.value(output).name);
    const std::vector<ir::ValueId> outputs = part_.add_node(node.op, inputs, node.attrs, node.origins, names);
    for (size_t i = 0; i < outputs.size(); ++i) made_[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }

  const ir::Graph& graph_;
  ir::Graph part_;
  std::vector<ir::ValueId> made_;  ///< by value of the graph: that of the part
  std::set<ir::NodeId> nodes_;     ///< in the graph's order
};

}  // namespace

ir::SymShape bind_run_numbers(OpBuilder& builder, ir::ValueId numbers, std::optional<int64_t> low,
                              const std::optional<ir::SymInt>& high) {
  if (const std::optional<Tensor> known = ConstantValue(builder.graph()).of(numbers)) {
    ir::SymShape elements;
    for (int64_t i = 0; i < known->num_elements(); ++i) elements.push_back(known->element_as_int(i));
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
