/// The parser of both text forms. Not for other folders: use text.h.
/// Thread-safety: an object belongs to one thread.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::te {

struct Token {
  enum class Kind : uint8_t { kWord, kNumber, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;
  size_t position = 0;
};

/// All tokens, the last of which is kEnd. Throws Error(kInvalidArgument).
std::vector<Token> tokenize(std::string_view text);
/// Throws Error(kInvalidArgument) with line and column of `position`.
[[noreturn]] void fail_parse(std::string_view text, size_t position, const std::string& message);

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokenize(text)) {}
  Function function();
  Program program();

private:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(std::string_view symbol) const { return peek().kind != Token::Kind::kEnd && peek().text == symbol; }
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol);
  void expect_end();
  [[noreturn]] void fail(const std::string& message) const;
  /// Runs a construction; what it refuses is the text's fault.
  template <typename Make>
  auto guarded(Make&& make) const;

  std::string word(const char* what);
  std::string new_name(const char* what);
  int64_t integer();
  DType dtype();
  Type type();
  std::shared_ptr<const ByteTable> table();

  Expr expr();
  Expr constant();
  Expr binary();
  Expr call();
  Expr access();
  /// "[a, b; mask]"
  std::vector<Expr> indices(Expr* mask);
  std::vector<Expr> exprs(std::string_view end);

  Var bind(const std::string& name, Type type);
  void unbind(const std::string& name);
  Buffer declare_buffer(const std::string& name, DType dtype, std::vector<Expr> shape, Scope scope);
  std::vector<Var> dims();

  void header(Function& function);
  Stmt block();
  Stmt stmt();
  Stmt loop(ForKind kind);
  Stmt allocate();
  Stmt let();
  Stmt store();

  Tensor stage(bool is_reduction);
  Expr part(DType dtype);
  void reduction_body(TensorNode& node, Reduction& reduction);
  std::vector<Axis> axes();

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::set<std::string, std::less<>> active_;  ///< names that may be used here
  std::map<std::string, Var, std::less<>> variables_;
  std::map<std::string, Buffer, std::less<>> buffers_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace tensormill::te
