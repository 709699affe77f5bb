// What forward() takes and returns, of its types, of what it was traced with, and of what it does with it.
#include <algorithm>
#include <array>
#include <set>

#include "compiler/frontend/pytorch/schema.h"
#include "compiler/frontend/pytorch/script/builtins.h"
#include "compiler/frontend/pytorch/script/file_graph.h"
#include "compiler/frontend/pytorch/script/import.h"
#include "compiler/frontend/pytorch/script/walk.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

constexpr size_t kMostPorts = 1'000;
constexpr int kMostCallsFollowed = 100;

/// Expressions that are looked at for what is told before an import.
constexpr uint64_t kMostLookedAt = 20'000'000;

/// Arguments that are indices, by their place.
struct IndexRow {
  std::string_view name;
  size_t argument;
};
constexpr std::array<IndexRow, 8> kIndexRows = {{{"torch.embedding", 1},
                                                 {"torch.embedding_bag", 1},
                                                 {"torch.index_select", 2},
                                                 {"torch.gather", 2},
                                                 {"torch.take", 1},
                                                 {"torch.take_along_dim", 1},
                                                 {"torch.one_hot", 0},
                                                 {"torch.scatter", 2}}};

/// Whether a function takes its parameter as indices, itself or in what it calls with it.
class Indices {
public:
  explicit Indices(const Module& module) : module_(module) {}

  bool takes(const Scope& scope, const std::string& name, int depth = 0) {
    looked_at_ += scope.function->size + 1;
    if (looked_at_ > kMostLookedAt || depth > kMostCallsFollowed ||
        !seen_.insert({scope.function, scope.self, name}).second)
      return false;
    std::set<std::string> names = {name};
    add_aliases(scope.function->body, names);
    std::vector<std::pair<Scope, std::string>> next;
    bool is_index = false;
    for_each_call(module_, scope, true, [&](const FoundCall& call) {
      const std::vector<ExprPtr>& items = call.expr->items;
      for (size_t i = 1; i < items.size(); ++i) {
        if (items[i]->kind != Expr::Kind::kName || names.count(items[i]->text) == 0) continue;
        is_index = is_index || std::any_of(kIndexRows.begin(), kIndexRows.end(), [&](const IndexRow& row) {
                     return row.name == call.name && row.argument + 1 == i;
                   });
        if (call.callee.function == nullptr) continue;
        const size_t at = call.callee.self == nullptr ? i - 1 : i;
        if (at < call.callee.function->parameters.size())
          next.emplace_back(call.callee, call.callee.function->parameters[at].name);
      }
    });
    return is_index || std::any_of(next.begin(), next.end(), [&](const auto& each) {
             return takes(each.first, each.second, depth + 1);
           });
  }

private:
  /// "y = x", "y = torch.contiguous(x)", "y = unchecked_cast(Tensor, x)"
  static void add_aliases(const std::vector<Statement>& body, std::set<std::string>& names) {
    for (const Statement& each : body) {
      if (each.kind == Statement::Kind::kAssign && !each.unpacks) {
        const Expr* value = each.value.get();
        const std::string called = value->kind == Expr::Kind::kCall ? dotted_name(*value->items[0]) : "";
        if (called == "unchecked_cast" || called == "annotate" || called == "torch.contiguous")
          value = value->items.back().get();
        if (value->kind == Expr::Kind::kName && names.count(value->text) != 0) names.insert(each.targets[0]);
      }
      add_aliases(each.body, names);
      add_aliases(each.otherwise, names);
    }
  }

  const Module& module_;
  std::set<std::tuple<const void*, const void*, std::string>> seen_;
  uint64_t looked_at_ = 0;
};

std::string type_of(const Parameter& parameter) {
  return parameter.type ? type_text(*parameter.type) : std::string("Tensor");
}

bool is_tensor_tuple(const Parameter& parameter) {
  if (!parameter.type || parameter.type->kind != Expr::Kind::kSubscript) return false;
  const std::vector<ExprPtr>& items = parameter.type->items;
  return type_text(*items[0]) == "Tuple" &&
         std::all_of(items.begin() + 1, items.end(),
                     [](const ExprPtr& each) { return type_text(*each) == "Tensor"; });
}

class Inputs {
public:
  explicit Inputs(const Module& module) : module_(module), forward_(module.forward()), indices_(module) {}

  std::vector<InputPort> run() {
    for (size_t i = 1; i < forward_.parameters.size(); ++i) {
      const Parameter& parameter = forward_.parameters[i];
      const std::string type = type_of(parameter);
      if (type == "Tensor") {
        add(i, parameter.name, std::nullopt);
      } else if (is_tensor_tuple(parameter)) {
        for (size_t k = 0; k + 1 < parameter.type->items.size(); ++k)
          add(i, parameter.name + "_" + std::to_string(k), k);
      } else if (!parameter.otherwise) {
        throw Error(ErrorCode::kNotSupported, "argument \"" + parameter.name + "\" of forward() is of type " +
                                                  type.substr(0, 200) +
                                                  ": inputs are tensors, and others have a value in the "
                                                  "code; trace the module with torch.jit.trace");
      }
    }
    return std::move(ports_);
  }

private:
  void add(size_t parameter, const std::string& name, std::optional<size_t> element) {
    if (ports_.size() >= kMostPorts)
      throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostPorts) + " inputs");
    InputPort port;
    port.name = name;
    port.parameter = parameter;
    port.element = element;
    if (const PickleValue* example = example_of(parameter, element)) {
      port.traced = example->tensor.sizes;
      const std::optional<DType> dtype = dtype_of(example->tensor.dtype);
      if (!dtype)
        throw Error(ErrorCode::kNotSupported, "input \"" + name + "\" has elements of type " +
                                                  std::string(scalar_name(example->tensor.dtype)));
      port.dtype = *dtype;
    } else if (!element && indices_.takes({&forward_, module_.root.get()}, name)) {
      port.dtype = DType::kInt64;
    }
    ports_.push_back(std::move(port));
  }

  const PickleValue* example_of(size_t parameter, std::optional<size_t> element) const {
    if (parameter - 1 >= module_.examples.size()) return nullptr;
    const PickleValue* example = module_.examples[parameter - 1].get();
    if (element) {
      if (*element >= example->items.size()) return nullptr;
      example = example->items[*element].get();
    }
    return example->kind == PickleValue::Kind::kTensor ? example : nullptr;
  }

  const Module& module_;
  const Function& forward_;
  Indices indices_;
  std::vector<InputPort> ports_;
};

/// Names of what is returned: "output", of a tuple "output_0" ..., of one with names its fields.
void add_outputs(const Module& module, const Expr* type, const std::string& name,
                 std::vector<std::string>& names) {
  const std::string text = type == nullptr ? "Tensor" : type_text(*type);
  if (names.size() >= kMostPorts)
    throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostPorts) + " outputs");
  if (text == "Tensor" || text == "Optional[Tensor]") {
    names.push_back(name);
    return;
  }
  if (type->kind == Expr::Kind::kSubscript && type_text(*type->items[0]) == "Tuple") {
    for (size_t i = 1; i < type->items.size(); ++i)
      add_outputs(module, type->items[i].get(), name + "_" + std::to_string(i - 1), names);
    return;
  }
  const auto found = module.code.classes.find(text);
  if (found != module.code.classes.end() && found->second.base == "NamedTuple") {
    names.insert(names.end(), found->second.fields.begin(), found->second.fields.end());
    return;
  }
  if (text == "int" || text == "float" || text == "bool" || text == "NoneType") return;
  throw Error(ErrorCode::kNotSupported, "forward() returns " + text.substr(0, 200) +
                                            ", of which the code does not say how many tensors there are: "
                                            "return a tensor or a tuple of tensors");
}

}  // namespace

Ports ports_of(const Module& module) {
  Ports ports;
  ports.inputs = Inputs(module).run();
  add_outputs(module, module.forward().result.get(), "output", ports.outputs);
  if (ports.outputs.empty()) throw Error(ErrorCode::kNotSupported, "forward() returns no tensor");
  std::set<std::string> names;
  for (const std::string& name : ports.outputs)
    if (!names.insert(name).second)
      throw Error(ErrorCode::kInvalidModel, "two outputs are called \"" + name + "\"");
  return ports;
}

namespace {

/// What is called without a condition and is not there.
class MissingCalls {
public:
  explicit MissingCalls(const Module& module) : module_(module) {}

  build::Missing run() {
    visit({&module_.forward(), module_.root.get()}, 0);
    return std::move(missing_);
  }

private:
  void visit(const Scope& scope, int depth) {
    looked_at_ += scope.function->size + 1;
    if (looked_at_ > kMostLookedAt || depth > kMostCallsFollowed ||
        !seen_.insert({scope.function, scope.self}).second)
      return;
    for_each_call(module_, scope, false, [&](const FoundCall& call) {
      if (call.callee.function != nullptr) return visit(call.callee, depth + 1);
      if (call.name.empty()) return;
      const std::string name = operator_name(call);
      const Place place{&scope.function->file, call.expr->line};
      if (!has_operator(name) && !has_builtin(name))
        missing_.add({"op " + name.substr(0, 200), to_string(place), "", call_path(place, name)},
                     why_missing(name));
    });
  }

  const Module& module_;
  build::Missing missing_{"operator", "call"};
  std::set<std::pair<const void*, const void*>> seen_;
  uint64_t looked_at_ = 0;
};

}  // namespace

build::Missing missing_operators(const Module& module) { return MissingCalls(module).run(); }

}  // namespace tensormill::frontend::pytorch::script
