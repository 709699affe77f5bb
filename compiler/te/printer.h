/// Shared by the printers of loop IR and of programs: one text under construction and the names given so far.
/// Not for other folders: use text.h.
/// Thread-safety: an object belongs to one thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::te {

/// "+" for kAdd …; empty for operators that are written as calls.
std::string_view infix_symbol(ExprOp op);
std::string_view scope_name(Scope scope);
/// Words that the grammar uses and that no variable is called.
bool is_reserved_word(std::string_view word);
/// The shortest text that reads back as the same float of this type.
std::string float_text(DType dtype, double value);

class Printer {
public:
  void expr(const Expr& expr);
  void stmt(const Stmt& stmt);
  void function(const Function& function);
  void program(const Program& program);
  std::string take() { return std::move(text_); }

private:
  /// The name of a node, made from `hint` when it is first seen.
  const std::string& name(const void* node, std::string_view hint);
  /// Gives a node a fixed name (canonical programs).
  void set_name(const void* node, std::string name) { names_[node] = std::move(name); }
  void line();
  void open();
  void close();
  void list(const std::vector<Expr>& exprs);
  void call(const Expr& expr);
  void constant(const Expr& expr);
  void memory(const Expr& expr);
  void shape(DType dtype, const std::vector<Expr>& extents);
  void block(const Stmt& stmt);
  void loop(const StmtNode& node);
  void store(const StmtNode& node);
  void stage(const TensorNode& stage);
  void name_program(const Program& program);

  std::string text_;
  int depth_ = 0;
  std::unordered_map<const void*, std::string> names_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace tensormill::te
