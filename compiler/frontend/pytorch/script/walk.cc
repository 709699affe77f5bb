#include "compiler/frontend/pytorch/script/walk.h"

namespace tensormill::frontend::pytorch::script {

namespace {

using Kind = Expr::Kind;

class Walk {
public:
  Walk(const Module& module, const Scope& scope, bool all, const std::function<void(const FoundCall&)>& visit)
      : module_(module), scope_(scope), all_(all), visit_(visit) {
    if (scope.self != nullptr) attributes_ = attributes_of(*scope.self);
  }

  void run() { walk(scope_.function->body); }

private:
  void walk(const std::vector<Statement>& body) {
    for (const Statement& each : body) {
      if (each.value) walk(*each.value);
      if (each.kind == Statement::Kind::kAssign && !each.unpacks) note(each.targets[0], *each.value);
      const bool is_certain = each.kind == Statement::Kind::kPass || each.body.empty();
      if (!all_ && !is_certain) continue;
      walk(each.body);
      walk(each.otherwise);
    }
  }

  /// "conv1 = self.conv1", "_2 = __torch__.helper"
  void note(const std::string& target, const Expr& value) {
    objects_.erase(target);
    functions_.erase(target);
    if (const PickleValue* object = object_of(value)) objects_[target] = object;
    const auto found = module_.code.functions.find(dotted_name(value));
    if (found != module_.code.functions.end()) functions_[target] = &found->second;
  }

  const PickleValue* object_of(const Expr& expr) const {
    if (expr.kind == Kind::kName) {
      if (expr.text == "self") return scope_.self;
      const auto known = objects_.find(expr.text);
      return known == objects_.end() ? nullptr : known->second;
    }
    std::string name;
    const Expr* of = nullptr;
    if (expr.kind == Kind::kAttribute) {
      name = expr.text;
      of = expr.items[0].get();
    } else if (expr.kind == Kind::kCall && dotted_name(*expr.items[0]) == "getattr" &&
               expr.items.size() == 3) {
      name = expr.items[2]->text;
      of = expr.items[1].get();
    }
    if (of == nullptr) return nullptr;
    const PickleValue* holder = object_of(*of);
    if (holder == nullptr || holder->kind != PickleValue::Kind::kObject) return nullptr;
    const Attributes own = holder == scope_.self ? Attributes() : attributes_of(*holder);
    const Attributes& attributes = holder == scope_.self ? attributes_ : own;
    const auto found = attributes.find(name);
    const bool is_object = found != attributes.end() && found->second->kind == PickleValue::Kind::kObject;
    return is_object ? found->second : nullptr;
  }

  FoundCall call_of(const Expr& expr) const {
    const Expr& callee = *expr.items[0];
    const std::string dotted = dotted_name(callee);
    if (dotted.starts_with("torch.") || dotted.starts_with("ops.")) return {&expr, dotted};
    if (const auto found = module_.code.functions.find(dotted); found != module_.code.functions.end())
      return {&expr, "", {&found->second, nullptr}};
    if (const auto known = functions_.find(dotted); known != functions_.end())
      return {&expr, "", {known->second, nullptr}};
    if (callee.kind != Kind::kAttribute) return {&expr};
    const PickleValue* object = object_of(*callee.items[0]);
    if (object == nullptr) return {&expr};
    const auto type = module_.code.classes.find(object->text);
    if (type == module_.code.classes.end()) return {&expr};
    const auto method = type->second.methods.find(callee.text);
    if (method == type->second.methods.end()) return {&expr};
    return {&expr, "", {&method->second, object}};
  }

  void walk(const Expr& expr) {
    for (const ExprPtr& item : expr.items) walk(*item);
    for (const auto& [name, item] : expr.keywords) walk(*item);
    if (expr.kind == Kind::kCall) visit_(call_of(expr));
  }

  const Module& module_;
  const Scope scope_;
  const bool all_;
  const std::function<void(const FoundCall&)>& visit_;
  Attributes attributes_;
  std::map<std::string, const PickleValue*> objects_;
  std::map<std::string, const Function*> functions_;
};

}  // namespace

std::string operator_name(const FoundCall& call) {
  return call.name.starts_with("torch.") ? "aten." + call.name.substr(6) : call.name.substr(4);
}

void for_each_call(const Module& module, const Scope& scope, bool all,
                   const std::function<void(const FoundCall&)>& visit) {
  Walk(module, scope, all, visit).run();
}

}  // namespace tensormill::frontend::pytorch::script
