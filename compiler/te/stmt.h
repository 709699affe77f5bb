/// Loop IR: what a kernel does, step by step. Statements are immutable trees like expressions. A function is
/// one kernel; it is executed by the interpreter (interpret.h) and by code generation, bit for bit alike.
/// Thread-safety: immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/te/expr.h"

namespace tensormill::te {

enum class StmtOp : uint8_t {
  kFor,    ///< var runs over [min, min+extent) with body; see ForKind
  kStore,  ///< buffer[indices] = value, where mask is on (null mask: everywhere); lanes come from index and
           ///< value
  kAllocate,  ///< buffer exists inside body; contents are undefined at its start
  kIf,        ///< condition (scalar bool), body, else_body (may be null)
  kSeq,       ///< children in order
  kLet,       ///< var = value inside body
};

enum class ForKind : uint8_t {
  kSerial,
  kParallel,    ///< iterations are tasks that may run in any order on any worker; at most one level deep
  kVectorized,  ///< constant extent; the vectorize pass turns it into vector operations
  kUnrolled,    ///< constant extent; the unroll pass replicates the body
};
std::string_view for_kind_name(ForKind kind);

struct StmtNode;
class Stmt {
public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  const StmtNode* operator->() const { return node_.get(); }
  const StmtNode& operator*() const { return *node_; }
  const StmtNode* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }

private:
  std::shared_ptr<const StmtNode> node_;
};

struct StmtNode {
  StmtOp op;
  ForKind for_kind = ForKind::kSerial;
  Var var;           ///< kFor, kLet
  Expr min, extent;  ///< kFor: int64
  Expr value;        ///< kStore, kLet
  Expr condition;    ///< kIf
  Expr mask;         ///< kStore, may be null
  Buffer buffer;     ///< kStore, kAllocate
  int64_t offset =
      0;  ///< kAllocate from kFlat on: byte offset in the workspace of the buffer's scope; 64 | offset
  std::vector<Expr> indices;   ///< kStore
  Stmt body, else_body;        ///< kFor, kAllocate, kIf, kLet
  std::vector<Stmt> children;  ///< kSeq
};

Stmt make_for(Var var, Expr min, Expr extent, ForKind kind, Stmt body);
Stmt make_store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask = {});
Stmt make_allocate(Buffer buffer, Stmt body, int64_t offset = 0);
Stmt make_if(Expr condition, Stmt body, Stmt else_body = {});
/// Flattens nested sequences; one child stands for itself; none is an empty kSeq.
Stmt make_seq(std::vector<Stmt> children);
Stmt make_let(Var var, Expr value, Stmt body);
bool equal(const Stmt& a, const Stmt& b);

struct Parameter {
  Buffer buffer;
  bool is_output = false;
};

/// One kernel. Parameters are noalias unless two share an alias class (aliases[i] == aliases[j] >= 0).
struct Function {
  std::string name;  ///< the symbol: [a-z_][a-z0-9_]*
  std::vector<Parameter> parameters;
  std::vector<int> aliases;  ///< one per parameter, -1: no alias
  std::vector<Var> dims;     ///< symbolic extents, in tm_call::dims order
  Stmt body;
  int64_t shared_workspace_bytes = 0;  ///< set by the storage pass
  int64_t worker_workspace_bytes = 0;
};

/// How far a function is lowered: what the verifier demands.
enum class Level : uint8_t {
  kLoops,    ///< multi-dimensional loads and stores, any for kind, vector math operators
  kFlat,     ///< one-dimensional buffers, workspaces placed
  kCodegen,  ///< kFlat; no vectorized or unrolled loop left, no vector math operator
};

/// Rewrites bottom-up: f is called on each statement (expression) whose children are already rewritten.
class Rewriter {
public:
  virtual ~Rewriter() = default;
  virtual Expr rewrite(const Expr& expr);
  virtual Stmt rewrite(const Stmt& stmt);
};
/// `expr` (or `stmt`) with variables replaced.
Expr substitute(const Expr& expr, const Var& var, const Expr& value);
Stmt substitute(const Stmt& stmt, const Var& var, const Expr& value);

/// Calls `visit` on each sub-expression, parents first. Visits masks too.
template <typename Visit>
void for_each_expr(const Expr& expr, Visit&& visit) {
  visit(expr);
  for (const Expr& arg : expr->args) for_each_expr(arg, visit);
  if (expr->mask) for_each_expr(expr->mask, visit);
}

}  // namespace tensormill::te
