#include "compiler/frontend/pytorch/script/file_graph.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/frontend/pytorch/script/walk.h"

namespace tensormill::frontend::pytorch::script {

namespace {

constexpr int kMostDepth = 100;
/// Expressions that are looked at, those of functions as often as these are called.
constexpr uint64_t kMostExpressions = 2'000'000;

/// The values that an expression is made of, at most so many of them.
using Values = std::vector<std::string>;
constexpr size_t kMostValues = 200;

void add(const Values& more, Values& to) {
  for (const std::string& each : more)
    if (to.size() < kMostValues && std::find(to.begin(), to.end(), each) == to.end()) to.push_back(each);
}

class Drawing {
public:
  Drawing(const Module& module, FileGraph& shown) : module_(module), shown_(shown) {}

  /// What the function returns of these arguments, by its parameters' places.
  Values call(const Scope& scope, const std::map<size_t, Values>& arguments, int depth) {
    looked_at_ += scope.function->size + 1;
    if (looked_at_ > kMostExpressions || depth > kMostDepth || shown_.is_full()) return {};
    Level level;
    level.scope = scope;
    level.depth = depth;
    for (const auto& [place, values] : arguments)
      if (place < scope.function->parameters.size())
        level.variables[scope.function->parameters[place].name] = values;
    for_each_call(module_, scope, true, [&](const FoundCall& found) { level.calls[found.expr] = found; });
    walk(level, scope.function->body);
    return level.returned;
  }

private:
  struct Level {
    Scope scope;
    int depth = 0;
    int conditions = 0;  ///< around the statement
    std::map<std::string, Values, std::less<>> variables;
    std::map<const Expr*, FoundCall> calls;
    Values returned;
  };

  void walk(Level& level, const std::vector<Statement>& body) {
    for (const Statement& each : body) {
      if (shown_.is_full()) return;
      const std::string hint = each.targets.empty() ? std::string() : each.targets.front();
      const bool is_each = each.unpacks && each.value && each.value->kind == Expr::Kind::kTuple &&
                           each.value->items.size() == each.targets.size();
      if (is_each) {
        std::vector<Values> values;
        for (const ExprPtr& item : each.value->items) values.push_back(values_of(level, *item, ""));
        for (size_t i = 0; i < values.size(); ++i) assign(level, each.targets[i], values[i]);
      } else if (each.value) {
        const Values values = values_of(level, *each.value, hint);
        for (const std::string& target : each.targets) assign(level, target, values);
        if (each.kind == Statement::Kind::kReturn) add(values, level.returned);
      }
      ++level.conditions;
      walk(level, each.body);
      walk(level, each.otherwise);
      --level.conditions;
    }
  }

  /// Where a condition decides, a variable may be what it was before.
  static void assign(Level& level, const std::string& target, const Values& values) {
    Values& variable = level.variables[target];
    if (level.conditions == 0) variable.clear();
    add(values, variable);
  }

  Values values_of(Level& level, const Expr& expr, const std::string& hint) {
    if (expr.kind == Expr::Kind::kName) {
      const auto found = level.variables.find(expr.text);
      return found == level.variables.end() ? Values() : found->second;
    }
    const auto found = level.calls.find(&expr);
    const bool is_call = expr.kind == Expr::Kind::kCall && found != level.calls.end();
    if (is_call && found->second.callee.function != nullptr) return call_of(level, expr, found->second);
    Values values;
    const bool is_operator = is_call && !found->second.name.empty();
    for (const ExprPtr& item : expr.items) add(values_of(level, *item, ""), values);
    for (const auto& [name, item] : expr.keywords) add(values_of(level, *item, ""), values);
    return is_operator ? add_node(level, expr, found->second, std::move(values), hint) : values;
  }

  Values call_of(Level& level, const Expr& expr, const FoundCall& found) {
    std::map<size_t, Values> arguments;
    const size_t first = found.callee.self == nullptr ? 0 : 1;
    for (size_t i = 1; i < expr.items.size(); ++i)
      arguments[first + i - 1] = values_of(level, *expr.items[i], "");
    const std::vector<Parameter>& parameters = found.callee.function->parameters;
    for (const auto& [name, item] : expr.keywords) {
      const Values values = values_of(level, *item, "");
      for (size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].name == name) arguments[i] = values;
    }
    return call(found.callee, arguments, level.depth + 1);
  }

  Values add_node(const Level& level, const Expr& expr, const FoundCall& found, Values inputs,
                  const std::string& hint) {
    const Place place{&level.scope.function->file, expr.line};
    const std::string name = operator_name(found);
    const std::string value = unique(hint.empty() ? name : hint);
    shown_.add_node({.op = name.substr(0, 200),
                     .label = to_string(place),
                     .path = call_path(place, name),
                     .within = {},
                     .inputs = std::move(inputs),
                     .outputs = {value}});
    return {value};
  }

  std::string unique(const std::string& hint) {
    const size_t count = counts_[hint]++;
    return count == 0 ? hint : hint + "#" + std::to_string(count);
  }

  const Module& module_;
  FileGraph& shown_;
  std::map<std::string, size_t> counts_;
  uint64_t looked_at_ = 0;
};

std::string type_of(const InputPort& port) {
  std::vector<std::string> dims;
  if (port.traced) {
    for (const int64_t extent : *port.traced) dims.push_back(std::to_string(extent));
  } else {
    dims = {"..."};
  }
  return shown_type(dtype_name(port.dtype), dims);
}

}  // namespace

std::string call_path(const Place& place, const std::string& name) { return to_string(place) + " " + name; }

FileGraph file_graph(const Module& module, const Ports& ports) {
  FileGraph shown(short_name(module.root->text));
  std::map<size_t, Values> arguments;
  for (const InputPort& port : ports.inputs) {
    shown.add_input(port.name, type_of(port));
    arguments[port.parameter].push_back(port.name);
  }
  for (const std::string& value :
       Drawing(module, shown).call({&module.forward(), module.root.get()}, arguments, 0))
    shown.add_output(value, "");
  return shown;
}

}  // namespace tensormill::frontend::pytorch::script
