#include "compiler/ir/bind_symbols.h"

#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

class Binder {
public:
  Binder(const Graph& graph, const std::map<std::string, int64_t>& values)
      : graph_(graph), values_(values), result_(graph.ops()), made_(graph.values().size(), kAbsent) {}

  Graph run() {
    result_.set_name(graph_.name());
    for (const ValueId id : graph_.inputs()) {
      const Value& value = graph_.value(id);
      made_[static_cast<size_t>(id)] =
          result_.add_input(value.name, {value.type.dtype, bound(value.type.shape)});
    }
    for (const Node& node : graph_.nodes()) add(node);
    result_.set_outputs(mapped(graph_.outputs()));
    return std::move(result_);
  }

private:
  SymInt bound(const SymInt& extent) const {
    if (extent.is_constant()) return extent;
    const std::optional<int64_t> value = extent.expr().evaluate(values_);
    if (!value) throw Error(ErrorCode::kInvalidModel, "extent " + to_string(extent) + " has no value there");
    return *value;
  }

  SymShape bound(const SymShape& shape) const {
    SymShape result;
    for (const SymInt& extent : shape) result.push_back(bound(extent));
    return result;
  }

  Attrs bound(const Attrs& attrs) const {
    Attrs result = attrs;
    for (const auto& [name, value] : attrs.all()) {
      if (const auto* one = std::get_if<SymInt>(&value)) result.set(name, bound(*one));
      if (const auto* list = std::get_if<SymShape>(&value)) result.set(name, bound(*list));
    }
    return result;
  }

  std::vector<ValueId> mapped(const std::vector<ValueId>& ids) {
    std::vector<ValueId> all;
    for (const ValueId id : ids) {
      if (id == kAbsent) {
        all.push_back(kAbsent);
        continue;
      }
      ValueId& made = made_[static_cast<size_t>(id)];
      const Value& value = graph_.value(id);
      if (made == kAbsent && value.constant) made = result_.add_constant(value.name, *value.constant);
      TM_CHECK(made != kAbsent, "value " + value.name + " is read before it is made");
      all.push_back(made);
    }
    return all;
  }

  void add(const Node& node) {
    std::vector<std::string> names;
    for (const ValueId output : node.outputs) names.push_back(graph_.value(output).name);
    const std::vector<ValueId> inputs = mapped(node.inputs);
    const std::vector<ValueId> outputs =
        node.region != nullptr
            ? result_.add_fused(inputs, std::make_shared<Graph>(bind_symbols(*node.region, values_)),
                                node.origins, names)
            : result_.add_node(node.op, inputs, bound(node.attrs), node.origins, names);
    for (size_t i = 0; i < outputs.size(); ++i) made_[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }

  const Graph& graph_;
  const std::map<std::string, int64_t>& values_;
  Graph result_;
  std::vector<ValueId> made_;
};

}  // namespace

Graph bind_symbols(const Graph& graph, const std::map<std::string, int64_t>& values) {
  return Binder(graph, values).run();
}

}  // namespace tensormill::ir
