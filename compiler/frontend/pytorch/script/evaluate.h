/// Follows TorchScript's code: statement by statement, with what is known in the variables. Calls of
/// operators go to `Operators`; conditions and numbers of loops have to be known. Thread-safety: as the
/// graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/frontend/pytorch/script/module.h"
#include "compiler/frontend/pytorch/script/operators.h"

namespace tensormill::frontend::pytorch::script {

class Evaluator {
public:
  Evaluator(const Module& module, Operators& operators) : module_(module), operators_(operators) {}

  /// What the function returns. Throws Error(kInvalidModel) for code that does not fit, Error(kNotSupported)
  /// for what is no part of what is followed, each with the file and the line, Error(kTooLarge) past
  /// 1,000,000 statements.
  Value call(const Function& function, std::vector<Value> arguments,
             const std::vector<std::pair<std::string, Value>>& keywords = {});

private:
  using Variables = std::map<std::string, Value>;
  struct Frame {
    const Function& function;
    Variables variables = {};
    std::string hint = {};
    int line = 0;
  };

  [[noreturn]] static void invalid(const std::string& what);
  [[noreturn]] static void unsupported(const std::string& what);
  void bind(Frame& frame, std::vector<Value> arguments,
            const std::vector<std::pair<std::string, Value>>& keywords);
  /// What a return gives; nothing where the block ends without one.
  std::optional<Value> run(Frame& frame, const std::vector<Statement>& body);
  std::optional<Value> step(Frame& frame, const Statement& statement);
  std::optional<Value> run_loop(Frame& frame, const Statement& statement);
  std::optional<Value> run_while(Frame& frame, const Statement& statement);
  void assign(Frame& frame, const Statement& statement);
  /// Nothing where it depends on what is not implemented.
  std::optional<bool> known_truth(Frame& frame, const Expr& condition);
  bool decide(Frame& frame, const Expr& condition);

  Value evaluate(Frame& frame, const Expr& expr);
  std::vector<Value> evaluate_all(Frame& frame, const Expr& expr, size_t first);
  Value evaluate_call(Frame& frame, const Expr& expr);
  Value call_method(Frame& frame, const Expr& expr, const ObjectRef& object, const std::string& name);
  std::optional<Value> call_form(Frame& frame, const Expr& expr, const std::string& name);
  Value call_named(Frame& frame, const Expr& expr, const std::string& name);
  Value attribute(Frame& frame, const Expr& expr);
  Value attribute_of_object(const ObjectRef& object, const std::string& name);
  Value subscript(Frame& frame, const Expr& expr);
  bool is_instance(const Value& value, const Expr& type);
  Call call_of(Frame& frame, const Expr& expr, const std::string& name);
  std::vector<std::pair<std::string, Value>> keywords_of(Frame& frame, const Expr& expr);

  const Module& module_;
  Operators& operators_;
  size_t steps_ = 0, evaluated_ = 0;
  int depth_ = 0, nested_ = 0;
  std::map<const PickleValue*, Attributes> attributes_;
  bool is_located_ = false;
};

}  // namespace tensormill::frontend::pytorch::script
