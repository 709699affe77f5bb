#include "compiler/frontend/pytorch/script/evaluate.h"

#include <algorithm>
#include <limits>

#include "compiler/frontend/pytorch/script/builtins.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

using Kind = Expr::Kind;

constexpr size_t kMostSteps = 1'000'000;
constexpr size_t kMostEvaluated = 20'000'000;
constexpr int kMostCalls = 150;
/// Blocks and expressions within each other, over all calls.
constexpr int kMostNested = 1'200;

class Nested {
public:
  explicit Nested(int& depth) : depth_(depth) {
    if (++depth_ > kMostNested) throw Error(ErrorCode::kTooLarge, "the code is nested too deeply");
  }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

private:
  int& depth_;
};

/// "torch.relu" is aten.relu, "ops.prim.device" prim.device; "" of any other name.
std::string operator_name(const std::string& dotted) {
  if (dotted.starts_with("torch.")) return "aten." + dotted.substr(6);
  return dotted.starts_with("ops.") ? dotted.substr(4) : std::string();
}

bool only_passes(const std::vector<Statement>& body) {
  return std::all_of(body.begin(), body.end(),
                     [](const Statement& each) { return each.kind == Statement::Kind::kPass; });
}

bool only_raises(const std::vector<Statement>& body) {
  return body.size() == 1 && body[0].kind == Statement::Kind::kEvaluate &&
         body[0].value->kind == Kind::kCall &&
         dotted_name(*body[0].value->items[0]) == "ops.prim.RaiseException";
}

/// if ...: pass else: ops.prim.RaiseException(...), or the other way round
bool is_check(const Statement& statement) {
  return (only_passes(statement.body) && only_raises(statement.otherwise)) ||
         (only_raises(statement.body) && only_passes(statement.otherwise));
}

}  // namespace

void Evaluator::invalid(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }
void Evaluator::unsupported(const std::string& what) { throw Error(ErrorCode::kNotSupported, what); }

void Evaluator::bind(Frame& frame, std::vector<Value> arguments,
                     const std::vector<std::pair<std::string, Value>>& keywords) {
  const std::vector<Parameter>& parameters = frame.function.parameters;
  if (arguments.size() > parameters.size())
    invalid(frame.function.name + "() takes " + std::to_string(parameters.size()) +
            " arguments, it is given " + std::to_string(arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) frame.variables[parameters[i].name] = std::move(arguments[i]);
  for (const auto& keyword : keywords) {
    const std::string& name = keyword.first;
    const bool is_known = std::any_of(parameters.begin(), parameters.end(),
                                      [&](const Parameter& each) { return each.name == name; });
    if (!is_known) invalid(frame.function.name + "() has no argument \"" + name + "\"");
    frame.variables[name] = keyword.second;
  }
  for (const Parameter& parameter : parameters) {
    if (frame.variables.count(parameter.name) != 0) continue;
    if (!parameter.otherwise)
      invalid(frame.function.name + "() is not given its argument \"" + parameter.name + "\"");
    frame.variables[parameter.name] = evaluate(frame, *parameter.otherwise);
  }
}

Value Evaluator::call(const Function& function, std::vector<Value> arguments,
                      const std::vector<std::pair<std::string, Value>>& keywords) {
  if (++depth_ > kMostCalls)
    throw Error(ErrorCode::kTooLarge, "calls are nested deeper than " + std::to_string(kMostCalls));
  Frame frame{function};
  try {
    bind(frame, std::move(arguments), keywords);
    std::optional<Value> result = run(frame, function.body);
    --depth_;
    return result ? *std::move(result) : Value();
  } catch (Error& error) {
    // The innermost place says most, and what is not implemented names its places itself.
    if (!is_located_ && error.code() != ErrorCode::kOperatorNotImplemented)
      error.add_context(to_string(Place{&function.file, frame.line}));
    is_located_ = true;
    throw;
  }
}

std::optional<Value> Evaluator::run(Frame& frame, const std::vector<Statement>& body) {
  const Nested nested(nested_);
  for (const Statement& statement : body) {
    if (++steps_ > kMostSteps)
      throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostSteps) + " statements");
    frame.line = statement.line;
    if (std::optional<Value> result = step(frame, statement)) return result;
  }
  return std::nullopt;
}

std::optional<Value> Evaluator::step(Frame& frame, const Statement& statement) {
  frame.hint.clear();
  switch (statement.kind) {
    case Statement::Kind::kAssign:
      assign(frame, statement);
      return std::nullopt;
    case Statement::Kind::kAttribute:
      unsupported(
          "it writes to attribute \"" + statement.text +
          "\", and a package keeps nothing between runs: save the module in eval mode, or without the "
          "state");
    case Statement::Kind::kEvaluate:
      static_cast<void>(evaluate(frame, *statement.value));
      return std::nullopt;
    case Statement::Kind::kReturn:
      return statement.value ? evaluate(frame, *statement.value) : Value();
    case Statement::Kind::kPass:
      return std::nullopt;
    case Statement::Kind::kIf: {
      const std::optional<bool> known = known_truth(frame, *statement.value);
      // A check of what is not there tells nothing; what stands behind it may lack more.
      if (!known && is_check(statement)) return std::nullopt;
      if (!known) operators_.missing().throw_all();
      return run(frame, *known ? statement.body : statement.otherwise);
    }
    case Statement::Kind::kWhile:
      return run_while(frame, statement);
    case Statement::Kind::kFor:
      return run_loop(frame, statement);
    case Statement::Kind::kOther:
      break;
  }
  unsupported("statements with \"" + statement.text + "\" are not implemented");
}

std::optional<Value> Evaluator::run_while(Frame& frame, const Statement& statement) {
  while (decide(frame, *statement.value)) {
    if (std::optional<Value> result = run(frame, statement.body)) return result;
    frame.line = statement.line;
    if (++steps_ > kMostSteps)
      throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostSteps) + " statements");
  }
  return std::nullopt;
}

// "for i in range(count)" alone is printed.
std::optional<Value> Evaluator::run_loop(Frame& frame, const Statement& statement) {
  const Expr& range = *statement.value;
  const bool is_range =
      range.kind == Kind::kCall && dotted_name(*range.items[0]) == "range" && range.items.size() == 2;
  if (!is_range) unsupported("loops over anything but range(count) are not implemented");
  const Value count = evaluate(frame, *range.items[1]);
  if (count.is_lost()) operators_.missing().throw_all();
  if (count.is_tensor()) unsupported("a loop whose number of turns a run works out is not implemented");
  const int64_t turns = whole_of(count);
  for (int64_t i = 0; i < turns; ++i) {
    frame.variables[statement.targets[0]] = {ir::SymInt(i)};
    if (std::optional<Value> result = run(frame, statement.body)) return result;
    frame.line = statement.line;
    if (++steps_ > kMostSteps)
      throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostSteps) + " statements");
  }
  return std::nullopt;
}

void Evaluator::assign(Frame& frame, const Statement& statement) {
  frame.hint = statement.targets[0];
  Value value = evaluate(frame, *statement.value);
  if (!statement.unpacks) {
    frame.variables[statement.targets[0]] = std::move(value);
    return;
  }
  if (value.is_lost()) {
    for (const std::string& target : statement.targets) frame.variables[target] = {Lost()};
    return;
  }
  const Items* items = value.items();
  if (items == nullptr || items->values.size() != statement.targets.size())
    invalid("a " + kind_of(value) + (items == nullptr ? "" : " of " + std::to_string(items->values.size())) +
            " is taken apart into " + std::to_string(statement.targets.size()) + " variables");
  const std::vector<Value> parts = items->values;
  for (size_t i = 0; i < parts.size(); ++i) frame.variables[statement.targets[i]] = parts[i];
}

std::optional<bool> Evaluator::known_truth(Frame& frame, const Expr& condition) {
  Call place;
  place.name = "if";
  place.place = {&frame.function.file, condition.line};
  Value value = evaluate(frame, condition);
  if (value.is_tensor()) value = cast_number(operators_, "bool", value, place);
  if (value.is_lost()) return std::nullopt;
  if (const auto* truth = value.as<bool>()) return *truth;
  if (value.is_number()) return real_of(value) != 0;
  invalid("a " + kind_of(value) + " is no condition");
}

bool Evaluator::decide(Frame& frame, const Expr& condition) {
  const std::optional<bool> known = known_truth(frame, condition);
  // What stands behind depends on what is not implemented.
  if (!known) operators_.missing().throw_all();
  return *known;
}

std::vector<Value> Evaluator::evaluate_all(Frame& frame, const Expr& expr, size_t first) {
  std::vector<Value> values;
  for (size_t i = first; i < expr.items.size(); ++i) values.push_back(evaluate(frame, *expr.items[i]));
  return values;
}

Value Evaluator::evaluate(Frame& frame, const Expr& expr) {
  const Nested nested(nested_);
  if (++evaluated_ > kMostEvaluated)
    throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(kMostEvaluated) + " expressions");
  switch (expr.kind) {
    case Kind::kNone:
      return {};
    case Kind::kTrue:
    case Kind::kFalse:
      return {expr.kind == Kind::kTrue};
    case Kind::kInt:
      return {ir::SymInt(expr.integer)};
    case Kind::kReal:
      return {expr.real};
    case Kind::kText:
      operators_.spend(expr.text.size() / 64);
      return {expr.text};
    case Kind::kName: {
      const auto found = frame.variables.find(expr.text);
      if (found == frame.variables.end()) {
        if (expr.text == "inf") return {std::numeric_limits<double>::infinity()};
        if (expr.text == "nan") return {std::numeric_limits<double>::quiet_NaN()};
      }
      if (found == frame.variables.end()) invalid("nothing is called \"" + expr.text.substr(0, 200) + "\"");
      if (const auto* text = found->second.as<std::string>()) operators_.spend(text->size() / 64);
      return found->second;
    }
    case Kind::kAttribute:
      return attribute(frame, expr);
    case Kind::kSubscript:
      return subscript(frame, expr);
    case Kind::kCall:
      return evaluate_call(frame, expr);
    case Kind::kNegative: {
      const Value value = evaluate(frame, *expr.items[0]);
      if (value.is_lost()) return value;
      if (value.as<double>() != nullptr) return {-real_of(value)};
      if (value.as<ExtentReal>() != nullptr) {
        Call place;
        place.place = {&frame.function.file, expr.line};
        return operators_.number("_operator.neg", {value}, place);
      }
      const ir::SymInt whole = whole_of(value);
      if (whole.is_constant() && whole.hint() == INT64_MIN) return value;
      return {-whole};
    }
    case Kind::kList:
      return list_of(evaluate_all(frame, expr, 0));
    case Kind::kTuple:
      return tuple_of(evaluate_all(frame, expr, 0));
    case Kind::kDict: {
      auto dict = std::make_shared<Dict>();
      for (size_t i = 0; i + 1 < expr.items.size(); i += 2)
        dict->entries.emplace_back(evaluate(frame, *expr.items[i]), evaluate(frame, *expr.items[i + 1]));
      return {std::move(dict)};
    }
  }
  invalid("an expression of no kind");
}

Value Evaluator::attribute_of_object(const ObjectRef& object, const std::string& name) {
  auto known = attributes_.find(object.object);
  if (known == attributes_.end())
    known = attributes_.emplace(object.object, attributes_of(*object.object)).first;
  if (const auto found = known->second.find(name); found != known->second.end())
    return operators_.of(*found->second, object.path.empty() ? name : object.path + "." + name);
  const auto found = module_.code.classes.find(object.object->text);
  if (found != module_.code.classes.end()) {
    const auto constant = found->second.constants.find(name);
    if (constant != found->second.constants.end()) {
      const Function nowhere{};
      Frame frame{nowhere};
      return evaluate(frame, *constant->second);
    }
  }
  invalid("module \"" + object.path + "\" has no attribute \"" + name.substr(0, 200) + "\"");
}

Value Evaluator::attribute(Frame& frame, const Expr& expr) {
  const Expr& of = *expr.items[0];
  const bool is_free = of.kind == Kind::kName && frame.variables.count(of.text) == 0;
  if (is_free && of.text == "CONSTANTS") {
    const std::string& name = expr.text;
    const bool is_number = name.size() > 1 && name.size() < 9 && name[0] == 'c' &&
                           name.find_first_not_of("0123456789", 1) == std::string::npos;
    const size_t index = is_number ? std::stoul(name.substr(1)) : module_.constants.size();
    if (index >= module_.constants.size()) invalid("there is no constant \"" + name.substr(0, 200) + "\"");
    return operators_.constant_of(*module_.constants[index], name);
  }
  const std::string dotted = dotted_name(expr);
  const std::string root = dotted.substr(0, dotted.find('.'));
  if (!dotted.empty() && frame.variables.count(root) == 0) {
    const auto found = module_.code.functions.find(dotted);
    if (found == module_.code.functions.end())
      unsupported("\"" + dotted.substr(0, 300) + "\" is not implemented");
    return {FunctionRef{&found->second}};
  }
  const Value value = evaluate(frame, of);
  if (value.is_lost()) return value;
  if (const auto* object = value.as<ObjectRef>()) return attribute_of_object(*object, expr.text);
  const Items* items = value.items();
  if (items != nullptr && items->type != nullptr) {
    const std::vector<std::string>& fields = items->type->fields;
    const auto at = std::find(fields.begin(), fields.end(), expr.text);
    if (at != fields.end()) return items->values.at(static_cast<size_t>(at - fields.begin()));
  }
  invalid("a " + kind_of(value) + " has no attribute \"" + expr.text.substr(0, 200) + "\"");
}

Value Evaluator::subscript(Frame& frame, const Expr& expr) {
  if (expr.items.size() != 2) invalid("an element by " + std::to_string(expr.items.size() - 1) + " places");
  const Value holder = evaluate(frame, *expr.items[0]), index = evaluate(frame, *expr.items[1]);
  if (holder.is_lost() || index.is_lost()) return {Lost()};
  return element_of(holder, index);
}

std::vector<std::pair<std::string, Value>> Evaluator::keywords_of(Frame& frame, const Expr& expr) {
  std::vector<std::pair<std::string, Value>> keywords;
  for (const auto& [name, value] : expr.keywords) keywords.emplace_back(name, evaluate(frame, *value));
  return keywords;
}

Call Evaluator::call_of(Frame& frame, const Expr& expr, const std::string& name) {
  Call call;
  call.name = name;
  call.hint = frame.hint;
  frame.hint.clear();
  call.arguments = evaluate_all(frame, expr, 1);
  call.keywords = keywords_of(frame, expr);
  call.place = {&frame.function.file, expr.line};
  return call;
}

Value Evaluator::call_method(Frame& frame, const Expr& expr, const ObjectRef& object,
                             const std::string& name) {
  const auto type = module_.code.classes.find(object.object->text);
  if (type == module_.code.classes.end())
    unsupported("an object of class \"" + object.object->text + "\", which is not in the code, is called");
  const auto method = type->second.methods.find(name);
  if (method == type->second.methods.end())
    invalid("class " + short_name(type->first) + " has no method \"" + name.substr(0, 200) + "\"");
  std::vector<Value> arguments = evaluate_all(frame, expr, 1);
  arguments.insert(arguments.begin(), Value{object});
  return call(method->second, std::move(arguments), keywords_of(frame, expr));
}

bool Evaluator::is_instance(const Value& value, const Expr& type) {
  if (type.kind == Kind::kTuple || type.kind == Kind::kList)
    return std::any_of(type.items.begin(), type.items.end(),
                       [&](const ExprPtr& each) { return is_instance(value, *each); });
  const std::string name = type_text(type);
  if (name == "Tensor") return value.is_tensor();
  if (name == "int") return value.as<ir::SymInt>() != nullptr;
  if (name == "float") return value.is_real();
  if (name == "bool") return value.as<bool>() != nullptr;
  if (name == "str") return value.as<std::string>() != nullptr;
  if (name == "NoneType" || name == "None") return value.is_none();
  if (name.starts_with("List[")) return value.items() != nullptr && !value.items()->is_tuple;
  if (name.starts_with("Tuple[")) return value.items() != nullptr && value.items()->is_tuple;
  if (name.starts_with("Dict[")) return value.dict() != nullptr;
  unsupported("isinstance() of type " + name.substr(0, 200) + " is not implemented");
}

// Calls whose arguments are not all values.
std::optional<Value> Evaluator::call_form(Frame& frame, const Expr& expr, const std::string& name) {
  const size_t count = expr.items.size() - 1;
  const bool has_type = (name == "annotate" || name == "unchecked_cast") && count == 2;
  if (has_type) return evaluate(frame, *expr.items[2]);
  if (name == "uninitialized" && count == 1) return Value();
  if (name == "isinstance" && count == 2) {
    const Value value = evaluate(frame, *expr.items[1]);
    return value.is_lost() ? value : Value{is_instance(value, *expr.items[2])};
  }
  if (name == "getattr" && count == 2 && expr.items[2]->kind == Kind::kText) {
    const Value value = evaluate(frame, *expr.items[1]);
    const auto* object = value.as<ObjectRef>();
    if (object == nullptr) invalid("getattr() of a " + kind_of(value));
    return attribute_of_object(*object, expr.items[2]->text);
  }
  const bool is_cast = name == "int" || name == "float" || name == "bool";
  if (is_cast && count == 1) {
    const Call call = call_of(frame, expr, name);
    return cast_number(operators_, name, call.arguments[0], call);
  }
  return std::nullopt;
}

Value Evaluator::evaluate_call(Frame& frame, const Expr& expr) {
  const Expr& callee = *expr.items[0];
  const std::string dotted = dotted_name(callee);
  const bool is_variable = !dotted.empty() && frame.variables.count(dotted.substr(0, dotted.find('.'))) != 0;
  if (!dotted.empty() && !is_variable) return call_named(frame, expr, dotted);
  if (callee.kind == Kind::kAttribute) {
    const Value of = evaluate(frame, *callee.items[0]);
    if (const auto* object = of.as<ObjectRef>()) return call_method(frame, expr, *object, callee.text);
    if (of.is_lost()) return of;
    invalid("a " + kind_of(of) + " has no method \"" + callee.text.substr(0, 200) + "\"");
  }
  const Value value = evaluate(frame, callee);
  const auto* function = value.as<FunctionRef>();
  if (function == nullptr) invalid("a " + kind_of(value) + " is called");
  std::vector<Value> arguments = evaluate_all(frame, expr, 1);
  return call(*function->function, std::move(arguments), keywords_of(frame, expr));
}

Value Evaluator::call_named(Frame& frame, const Expr& expr, const std::string& name) {
  if (std::optional<Value> value = call_form(frame, expr, name)) return *std::move(value);
  if (const auto found = module_.code.functions.find(name); found != module_.code.functions.end()) {
    std::vector<Value> arguments = evaluate_all(frame, expr, 1);
    return call(found->second, std::move(arguments), keywords_of(frame, expr));
  }
  if (const auto found = module_.code.classes.find(name); found != module_.code.classes.end()) {
    if (found->second.base != "NamedTuple")
      unsupported("an object of class " + short_name(name) + " is made, which is not implemented");
    std::vector<Value> values = evaluate_all(frame, expr, 1);
    if (values.size() != found->second.fields.size())
      invalid(short_name(name) + " of " + std::to_string(values.size()) + " values");
    return {std::make_shared<Items>(Items{true, &found->second, std::move(values)})};
  }
  std::string own = operator_name(name);
  if (own.empty() && name.find('.') == std::string::npos) own = "python." + name;
  if (own.empty()) unsupported("\"" + name.substr(0, 300) + "\" is not implemented");
  const Call call = call_of(frame, expr, own);
  if (std::optional<Value> value = call_builtin(operators_, call)) return *std::move(value);
  return operators_.call(call);
}

}  // namespace tensormill::frontend::pytorch::script
