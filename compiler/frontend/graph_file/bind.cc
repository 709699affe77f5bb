#include <algorithm>
#include <map>

#include "compiler/build/model_graph.h"
#include "compiler/frontend/graph_file/graph_file.h"
#include "compiler/ir/patch.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::graph_file {

namespace {

class GraphBinding {
public:
  GraphBinding(const GraphFile& file, const Binding& binding)
      : from_(file.graph), guards_(file.guards), binding_(binding), graph_(file.graph.ops()) {
    ids_.assign(from_.values().size(), ir::kAbsent);
  }

  ir::Graph run() {
    graph_.set_name(from_.name());
    graph_.set_symbols(binding_.symbols);
    bind_dims();
    add_run_symbols();
    check_guards();
    add_inputs();
    add_constants();
    for (const ir::Node& node : from_.nodes()) add(node);
    set_outputs();
    return ir::remove_dead(graph_);
  }

private:
  ir::ValueId& id(ir::ValueId value) { return ids_[static_cast<size_t>(value)]; }

  /// What an input's extents say of the dims; those that are no dim alone are compared with.
  void bind_dims() {
    for (size_t i = 0; i < from_.inputs().size(); ++i) {
      const ir::Value& input = from_.value(from_.inputs()[i]);
      for (size_t d = 0; d < input.type.shape.size(); ++d) {
        const std::vector<std::string> symbols = input.type.shape[d].expr().symbols();
        if (symbols.size() == 1 && input.type.shape[d].expr().to_string() == symbols[0])
          dims_.emplace(symbols[0], binding_.shapes[i][d]);
      }
    }
    for (size_t i = 0; i < from_.inputs().size(); ++i) {
      const ir::Value& input = from_.value(from_.inputs()[i]);
      for (size_t d = 0; d < input.type.shape.size(); ++d) {
        const ir::SymInt expected = bound(input.type.shape[d]);
        if (!ir::demand(ir::Relation::kEqual, binding_.shapes[i][d], expected))
          throw Error(ErrorCode::kInvalidModel, "dim " + std::to_string(d) + " of input \"" + input.name +
                                                    "\" is " + to_string(binding_.shapes[i][d]) + ", and " +
                                                    to_string(input.type.shape[d]) + " is " +
                                                    to_string(expected));
      }
    }
  }

  /// What a run binds is known of no binding.
  void add_run_symbols() {
    if (from_.symbols() == nullptr || from_.symbols()->run_time_symbols().empty()) return;
    if (graph_.symbols() == nullptr) graph_.set_symbols(std::make_shared<ir::SymbolTable>());
    ir::SymbolTable& table = *graph_.symbols();
    for (const ir::RunSymbol& symbol : from_.symbols()->run_time_symbols()) {
      ir::RunSymbol own{symbol.name, symbol.low, std::nullopt};
      while (table.hints().count(own.name) != 0) own.name += "_";
      int64_t hint = from_.symbols()->hints().at(symbol.name);
      if (symbol.high) {
        const ir::SymInt high = bound(*symbol.high);
        own.high = high.expr();
        hint = std::min(hint, high.hint());
      }
      dims_.emplace(symbol.name, table.add_run_time_symbol(own, hint));
    }
  }

  ir::SymInt bound(const ir::SymInt& value) const { return bound(value.expr()); }

  ir::SymInt bound(const te::Dim& expr) const {
    std::map<std::string, te::Dim> values;
    for (const std::string& symbol : expr.symbols()) {
      const auto found = dims_.find(symbol);
      if (found == dims_.end())
        throw Error(ErrorCode::kInvalidModel, "dim " + symbol + " is the extent of no input");
      values.emplace(symbol, found->second.expr());
    }
    const te::Dim result = expr.substitute(values);
    if (graph_.symbols() != nullptr) return ir::SymInt(result, graph_.symbols());
    const std::optional<int64_t> number = result.evaluate({});
    if (!number) throw Error(ErrorCode::kInvalidModel, expr.to_string() + " has no value at these extents");
    return *number;
  }

  ir::SymShape bound(const ir::SymShape& shape) const {
    ir::SymShape result;
    for (const ir::SymInt& extent : shape) result.push_back(bound(extent));
    return result;
  }

  void check_guards() const {
    for (const ir::Guard& guard : guards_) {
      const ir::SymbolTable::Origin of(graph_.symbols().get(), guard.origin);
      const ir::SymInt left = bound(guard.left), right = bound(guard.right);
      const bool holds =
          guard.holds ? ir::demand(guard.relation, left, right) : !ir::decide(guard.relation, left, right);
      if (!holds)
        throw Error(ErrorCode::kInvalidModel, "node \"" + guard.origin + "\" needs " + to_string(guard) +
                                                  "; these are " + to_string(left) + " and " +
                                                  to_string(right));
    }
  }

  void add_inputs() {
    for (size_t i = 0; i < from_.inputs().size(); ++i) {
      const ir::Value& input = from_.value(from_.inputs()[i]);
      const ir::ValueType type{input.type.dtype, binding_.shapes[i]};
      num_bytes(type.shape.hints(), type.dtype);
      if (const auto known = binding_.constants.find(input.name); known != binding_.constants.end()) {
        id(from_.inputs()[i]) =
            graph_.add_constant(input.name, build::checked_value(input.name, type, known->second));
        continue;
      }
      id(from_.inputs()[i]) = graph_.add_input(input.name, type);
      if (const auto value = binding_.values.find(input.name); value != binding_.values.end())
        runs_.emplace_back(from_.inputs()[i], build::checked_value(input.name, type, value->second));
    }
  }

  void add_constants() {
    for (size_t i = 0; i < from_.values().size(); ++i) {
      const ir::Value& value = from_.values()[i];
      if (value.constant) ids_[i] = graph_.add_constant(value.name, *value.constant);
    }
    for (const auto& [input, value] : runs_)
      id(input) = graph_.add_constant(graph_.unique_name(from_.value(input).name + "#value"), value);
  }

  void add(const ir::Node& node) {
    // A fused kernel, and the model that a package holds: what a compile makes, and no model has.
    if (node.region != nullptr || node.op == "run_model")
      throw Error(ErrorCode::kInvalidModel, "\"" + node.op + "\" is no operator of a model");
    std::vector<ir::ValueId> inputs;
    for (const ir::ValueId input : node.inputs) inputs.push_back(input == ir::kAbsent ? input : id(input));
    ir::Attrs attrs;
    for (const auto& [name, value] : node.attrs.all()) {
      if (const auto* extent = std::get_if<ir::SymInt>(&value)) {
        attrs.set(name, bound(*extent));
      } else if (const auto* shape = std::get_if<ir::SymShape>(&value)) {
        attrs.set(name, bound(*shape));
      } else {
        attrs.set(name, value);
      }
    }
    std::vector<std::string> names;
    for (const ir::ValueId output : node.outputs) names.push_back(from_.value(output).name);
    const std::string origin =
        node.origins.empty() ? names.empty() ? node.op : names.front() : node.origins.front();
    const ir::SymbolTable::Origin of(graph_.symbols().get(), origin);
    const std::vector<ir::ValueId> outputs = graph_.add_node(node.op, inputs, attrs, node.origins, names);
    for (size_t i = 0; i < outputs.size(); ++i) id(node.outputs[i]) = outputs[i];
  }

  void set_outputs() {
    std::vector<ir::ValueId> outputs;
    for (const ir::ValueId output : from_.outputs()) {
      const std::string& name = from_.value(output).name;
      const std::vector<std::string>& wanted = binding_.outputs;
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
        outputs.push_back(id(output));
    }
    for (const std::string& name : binding_.outputs) {
      const auto is_named = [&](ir::ValueId output) { return from_.value(output).name == name; };
      if (std::none_of(from_.outputs().begin(), from_.outputs().end(), is_named))
        throw Error(ErrorCode::kInvalidArgument,
                    "outputs name \"" + name + "\", which is no output of the model");
    }
    graph_.set_outputs(outputs);
  }

  const ir::Graph& from_;
  const std::vector<ir::Guard>& guards_;
  const Binding& binding_;
  ir::Graph graph_;
  std::vector<ir::ValueId> ids_;  ///< by value of the file's graph
  std::map<std::string, ir::SymInt> dims_;
  std::vector<std::pair<ir::ValueId, Tensor>> runs_;
};

}  // namespace

ir::Graph bind(const GraphFile& file, const Binding& binding) { return GraphBinding(file, binding).run(); }

}  // namespace tensormill::frontend::graph_file
