#include "compiler/te/simplifier.h"
#include "compiler/te/simplify.h"

namespace tensormill::te {
namespace {

class StmtSimplifier {
public:
  explicit StmtSimplifier(BoundsContext context) : context_(std::move(context)) {}

  /// Null when nothing is left.
  Stmt visit(const Stmt& stmt) {
    switch (stmt->op) {
      case StmtOp::kFor:
        return loop(*stmt);
      case StmtOp::kStore:
        return store(stmt);
      case StmtOp::kAllocate: {
        const Stmt body = visit(stmt->body);
        return body ? make_allocate(stmt->buffer, body, stmt->offset) : body;
      }
      case StmtOp::kIf:
        return branch(*stmt);
      case StmtOp::kSeq: {
        std::vector<Stmt> children;
        for (const Stmt& child : stmt->children) {
          if (Stmt kept = visit(child)) children.push_back(std::move(kept));
        }
        return children.empty() ? Stmt() : make_seq(std::move(children));
      }
      case StmtOp::kLet:
        break;
    }
    return let(*stmt);
  }

private:
  Expr on(const Expr& expr) const { return simplify(expr, context_); }

  Stmt loop(const StmtNode& node) {
    const Expr min = on(node.min), extent = on(node.extent);
    if (context_.proves(extent <= 0)) return {};
    if (is_int(extent, 1) && node.for_kind != ForKind::kVectorized)
      return visit(substitute(node.body, node.var, min));
    const BoundsContext outside = context_;
    context_.bind_extent(node.var, min, extent);
    const Stmt body = visit(node.body);
    context_ = outside;
    return body ? make_for(node.var, min, extent, node.for_kind, body) : body;
  }

  Stmt store(const Stmt& stmt) const {
    std::vector<Expr> indices;
    for (const Expr& index : stmt->indices) indices.push_back(on(index));
    Expr mask = stmt->mask ? on(stmt->mask) : Expr();
    if (mask && is_int(mask, 0)) return {};
    if (mask && is_int(mask, 1)) mask = {};
    return make_store(stmt->buffer, std::move(indices), on(stmt->value), std::move(mask));
  }

  Stmt branch(const StmtNode& node) {
    const Expr condition = on(node.condition);
    if (is_int(condition, 1)) return visit(node.body);
    if (is_int(condition, 0)) return node.else_body ? visit(node.else_body) : Stmt();
    const BoundsContext outside = context_;
    context_.assume(condition);
    const Stmt body = visit(node.body);
    context_ = outside;
    if (!node.else_body) return body ? make_if(condition, body) : body;
    const Expr negation = simplify(logical_not(condition));
    context_.assume(negation);
    const Stmt else_body = visit(node.else_body);
    context_ = outside;
    if (body) return make_if(condition, body, else_body);
    return else_body ? make_if(negation, else_body) : else_body;
  }

  Stmt let(const StmtNode& node) {
    const Expr value = on(node.value);
    if (is_const(value) || value->op == ExprOp::kVar) return visit(substitute(node.body, node.var, value));
    const BoundsContext outside = context_;
    context_.bind_value(node.var, value);
    const Stmt body = visit(node.body);
    context_ = outside;
    return body ? make_let(node.var, value, body) : body;
  }

  BoundsContext context_;
};

}  // namespace

Stmt simplify(const Stmt& stmt, BoundsContext context) {
  const Stmt result = StmtSimplifier(std::move(context)).visit(stmt);
  return result ? result : make_seq({});
}

Stmt simplify(const Stmt& stmt) { return simplify(stmt, BoundsContext()); }

}  // namespace tensormill::te
