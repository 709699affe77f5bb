#include "compiler/frontend/pytorch/script/import.h"

#include "compiler/build/format_import.h"
#include "compiler/frontend/pytorch/script/evaluate.h"
#include "compiler/frontend/pytorch/script/operators.h"

namespace tensormill::frontend::pytorch::script {

namespace {

/// What forward() returns, in the order of the outputs' names.
void flatten(const Value& value, std::vector<Value>& values) {
  const Items* items = value.items();
  if (items != nullptr && items->is_tuple) {
    for (const Value& each : items->values) flatten(each, values);
  } else if (value.is_tensor() || value.is_lost() || value.is_none()) {
    values.push_back(value);
  }
}

class ModuleImport final : public build::FormatImport {
public:
  ModuleImport(const LoadedModule& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : FormatImport(ops, request, {"module", build::names_of(request.ports.inputs), request.ports.outputs},
                     build::Missing("operator", "call")),
        loaded_(loaded),
        request_(request),
        import_{loaded.weights(), graph_, reserved_, {}},
        state_{import_, untyped_, {}, {}, {}, false},
        operators_(state_, missing_) {
    for (const std::string& name : reserved_) operators_.reserve(name);
  }

private:
  bool convert_all() override {
    Evaluator evaluator(loaded_.module(), operators_);
    const Value result = evaluator.call(loaded_.module().forward(), arguments());
    if (!missing_.empty()) return false;
    flatten(result, results_);
    if (results_.size() != names_.outputs.size())
      throw Error(ErrorCode::kInvalidModel, "forward() returns " + std::to_string(results_.size()) +
                                                " tensors, its type says " +
                                                std::to_string(names_.outputs.size()));
    return true;
  }

  /// Self, the inputs; behind the last of them what the code says itself.
  std::vector<Value> arguments() {
    std::vector<Value> values = {{ObjectRef{loaded_.module().root.get(), ""}}};
    const std::vector<Parameter>& parameters = loaded_.module().forward().parameters;
    std::map<size_t, Value> given;
    for (size_t i = 0; i < request_.ports.inputs.size(); ++i) {
      const InputPort& port = request_.ports.inputs[i];
      const Value tensor = input_tensor(i, port);
      if (!port.element) {
        given[port.parameter] = tensor;
      } else {
        Value& tuple = given.try_emplace(port.parameter, tuple_of({})).first->second;
        tuple.items()->values.push_back(tensor);
      }
    }
    for (size_t i = 1; i < parameters.size(); ++i) {
      const auto found = given.find(i);
      values.push_back(found != given.end() ? found->second : constant_of(parameters[i]));
    }
    return values;
  }

  static Value constant_of(const Parameter& parameter) {
    const Expr& expr = *parameter.otherwise;
    switch (expr.kind) {
      case Expr::Kind::kNone:
        return {};
      case Expr::Kind::kTrue:
      case Expr::Kind::kFalse:
        return {expr.kind == Expr::Kind::kTrue};
      case Expr::Kind::kInt:
        return {ir::SymInt(expr.integer)};
      case Expr::Kind::kReal:
        return {expr.real};
      case Expr::Kind::kText:
        return {expr.text};
      case Expr::Kind::kList:
        if (expr.items.empty()) return list_of({});
        break;
      case Expr::Kind::kNegative:
        if (expr.items[0]->kind == Expr::Kind::kReal) return {-expr.items[0]->real};
        if (expr.items[0]->kind == Expr::Kind::kInt && expr.items[0]->integer != INT64_MIN)
          return {ir::SymInt(-expr.items[0]->integer)};
        break;
      default:
        break;
    }
    throw Error(ErrorCode::kNotSupported,
                "argument \"" + parameter.name + "\" of forward() has a value of its own that is no number");
  }

  Value input_tensor(size_t index, const InputPort& port) {
    auto storage = std::make_shared<Storage>();
    storage->name = port.name;
    storage->value = add_input(index, port.dtype);
    const ir::ValueId value = storage->value;
    storage->layout = row_major_layout(dims_of(graph_.value(value).type.shape));
    state_.tensors.insert_or_assign(port.name, View{std::move(storage), {}, value, 0});
    return {TensorRef{port.name}};
  }

  ir::ValueId output(size_t index) override {
    const std::string& name = names_.outputs[index];
    const Value& value = results_[index];
    const auto* tensor = value.as<TensorRef>();
    if (tensor == nullptr)
      throw Error(ErrorCode::kNotSupported, "output \"" + name + "\" is None for these shapes");
    Call call;
    call.name = "output \"" + name + "\"";
    return operators_.value_of(value, call);
  }

  const LoadedModule& loaded_;
  const ImportRequest& request_;
  ImportState import_;
  const Graph untyped_;
  GraphState state_;
  Operators operators_;
  std::vector<Value> results_;
};

}  // namespace

LoadedModule::LoadedModule(const std::shared_ptr<const MappedFile>& file)
    : weights_(file, Program()), module_(read_module(file->text())) {}

ir::Graph import_graph(const LoadedModule& module, const ImportRequest& request, const ir::OpRegistry& ops) {
  return ModuleImport(module, request, ops).run();
}

}  // namespace tensormill::frontend::pytorch::script
