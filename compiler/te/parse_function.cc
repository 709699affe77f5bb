#include "compiler/te/parse_guard.h"
#include "compiler/te/parser.h"
#include "compiler/te/printer.h"
#include "compiler/te/text.h"

namespace tensormill::te {

/// A name that was bound before, elsewhere, is the same variable: repeated bodies share their variables.
Var Parser::bind(const std::string& name, Type type) {
  active_.insert(name);
  buffers_.erase(name);
  Var& var = variables_[name];
  if (!var || var->dtype != type.dtype || var->lanes != type.lanes)
    var = make_var(name, type.dtype, type.lanes);
  return var;
}

void Parser::unbind(const std::string& name) { active_.erase(name); }

Buffer Parser::declare_buffer(const std::string& name, DType dtype, std::vector<Expr> shape, Scope scope) {
  active_.insert(name);
  variables_.erase(name);
  Buffer& buffer = buffers_[name];
  bool same =
      buffer && buffer->dtype == dtype && buffer->scope == scope && buffer->shape.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = equal(buffer->shape[i], shape[i]);
  if (!same) buffer = guarded([&] { return make_buffer(name, dtype, std::move(shape), scope); });
  return buffer;
}

std::vector<Var> Parser::dims() {
  std::vector<Var> result;
  if (!accept("dims")) return result;
  do {
    const std::string name = new_name("a dim");
    result.push_back(bind(name, Type{}));
  } while (accept(","));
  return result;
}

void Parser::header(Function& function) {
  function.dims = dims();
  bool any_alias = false;
  while (is("in") || is("out")) {
    Parameter parameter;
    parameter.is_output = word("in or out") == "out";
    const std::string name = new_name("a parameter");
    expect(":");
    const DType dtype = this->dtype();
    parameter.buffer = declare_buffer(name, dtype, indices(nullptr), Scope::kParameter);
    function.parameters.push_back(std::move(parameter));
    function.aliases.push_back(-1);
    if (accept("alias")) {
      const int64_t alias = integer();
      if (alias < 0 || alias > 1000) fail("alias class " + std::to_string(alias) + " is not in [0, 1000]");
      function.aliases.back() = static_cast<int>(alias);
      any_alias = true;
    }
  }
  if (!any_alias) function.aliases.clear();
  if (accept("workspace")) {
    function.shared_workspace_bytes = integer();
    function.worker_workspace_bytes = integer();
  }
}

Function Parser::function() {
  Function function;
  expect("function");
  function.name = word("a name");
  expect("{");
  header(function);
  expect("body");
  function.body = block();
  expect("}");
  expect_end();
  return function;
}

Stmt Parser::block() {
  // Statements nest in the stack as expressions do.
  if (++depth_ > 1000) fail("statement is more than 1000 levels deep");
  expect("{");
  std::vector<Stmt> children;
  while (!is("}")) children.push_back(stmt());
  expect("}");
  --depth_;
  return make_seq(std::move(children));
}

Stmt Parser::stmt() {
  if (accept("for")) return loop(ForKind::kSerial);
  if (accept("parallel")) return loop(ForKind::kParallel);
  if (accept("vectorized")) return loop(ForKind::kVectorized);
  if (accept("unrolled")) return loop(ForKind::kUnrolled);
  if (accept("allocate")) return allocate();
  if (accept("let")) return let();
  if (accept("if")) {
    Expr condition = expr();
    Stmt body = block();
    Stmt else_body = accept("else") ? block() : Stmt();
    return guarded([&] { return make_if(condition, body, else_body); });
  }
  return store();
}

Stmt Parser::loop(ForKind kind) {
  const std::string name = new_name("a loop variable");
  expect("=");
  Expr min = expr();
  expect(",");
  Expr extent = expr();
  const Var var = bind(name, Type{});
  Stmt body = block();
  unbind(name);
  return guarded([&] { return make_for(var, min, extent, kind, body); });
}

Stmt Parser::allocate() {
  const std::string name = new_name("a buffer");
  expect(":");
  const DType dtype = this->dtype();
  std::vector<Expr> shape = indices(nullptr);
  const std::string scope_word = word("a scope");
  Scope scope = Scope::kParameter;
  for (const Scope candidate : {Scope::kSharedWorkspace, Scope::kWorkerWorkspace, Scope::kRegister}) {
    if (scope_name(candidate) == scope_word) scope = candidate;
  }
  if (scope == Scope::kParameter) fail("\"" + scope_word + "\" is not a scope");
  const int64_t offset = accept("at") ? integer() : 0;
  const Buffer buffer = declare_buffer(name, dtype, std::move(shape), scope);
  Stmt body = block();
  unbind(name);
  return make_allocate(buffer, body, offset);
}

Stmt Parser::let() {
  const std::string name = new_name("a variable");
  expect(":");
  const Type type = this->type();
  expect("=");
  Expr value = expr();
  const Var var = bind(name, type);
  Stmt body = block();
  unbind(name);
  return guarded([&] { return make_let(var, value, body); });
}

Stmt Parser::store() {
  const std::string name = word("a statement");
  const auto buffer = buffers_.find(name);
  if (!active_.contains(name) || buffer == buffers_.end()) {
    --at_;
    fail("unknown buffer \"" + name + "\"");
  }
  const Buffer target = buffer->second;
  Expr mask;
  std::vector<Expr> at = indices(&mask);
  expect("=");
  Expr value = expr();
  return guarded([&] { return make_store(target, std::move(at), value, mask); });
}

Function parse_function(std::string_view text) { return Parser(text).function(); }

}  // namespace tensormill::te
