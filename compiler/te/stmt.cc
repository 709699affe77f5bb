#include "compiler/te/stmt.h"

#include <unordered_map>

#include "compiler/te/rewrite_args.h"

#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

Stmt make_node(StmtNode node) { return Stmt(std::make_shared<const StmtNode>(std::move(node))); }

StmtNode node_of(StmtOp op) {
  StmtNode node{};
  node.op = op;
  return node;
}

/// Replaces variables by node; what was rewritten is kept, since expressions share subtrees.
class Substituter : public Rewriter {
public:
  using Rewriter::rewrite;
  Substituter(const Var& var, const Expr& value) : var_(var), value_(value) {}

  Expr rewrite(const Expr& expr) override {
    if (expr->op == ExprOp::kVar) return expr->var == var_ ? value_ : expr;
    if (is_const(expr)) return expr;
    auto [it, fresh] = done_.try_emplace(expr.get());
    if (fresh) {
      Expr result = Rewriter::rewrite(expr);
      done_[expr.get()] = result;
      return result;
    }
    return it->second;
  }

private:
  const Var& var_;
  const Expr& value_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

std::string_view for_kind_name(ForKind kind) {
  switch (kind) {
    case ForKind::kParallel:
      return "parallel";
    case ForKind::kVectorized:
      return "vectorized";
    case ForKind::kUnrolled:
      return "unrolled";
    default:
      return "for";
  }
}

Stmt make_for(Var var, Expr min, Expr extent, ForKind kind, Stmt body) {
  TM_CHECK(var != nullptr && body, "a loop needs a variable and a body");
  TM_CHECK(var->dtype == DType::kInt64 && var->lanes == 1 && min->type == Type{} && extent->type == Type{},
           "loop over " + var->name + " is not over i64");
  StmtNode node = node_of(StmtOp::kFor);
  node.for_kind = kind;
  node.var = std::move(var);
  node.min = std::move(min);
  node.extent = std::move(extent);
  node.body = std::move(body);
  return make_node(std::move(node));
}

Stmt make_store(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask) {
  // A load of the same element has the lanes and checks the indices; it is how a store's operands are checked
  // too.
  const Expr element = load(buffer, indices, std::move(mask));
  if (value->type.lanes != element->type.lanes) value = broadcast(value, element->type.lanes);
  TM_CHECK(value->type == element->type, "store of " + to_string(value->type) + " into " + buffer->name +
                                             " of " + to_string(element->type));
  StmtNode node = node_of(StmtOp::kStore);
  node.buffer = std::move(buffer);
  node.indices = std::move(indices);
  node.value = std::move(value);
  node.mask = element->mask;
  return make_node(std::move(node));
}

Stmt make_allocate(Buffer buffer, Stmt body, int64_t offset) {
  TM_CHECK(buffer != nullptr && body, "an allocation needs a buffer and a body");
  StmtNode node = node_of(StmtOp::kAllocate);
  node.buffer = std::move(buffer);
  node.body = std::move(body);
  node.offset = offset;
  return make_node(std::move(node));
}

Stmt make_if(Expr condition, Stmt body, Stmt else_body) {
  TM_CHECK(condition->type == (Type{DType::kBool, 1}), "condition of type " + to_string(condition->type));
  TM_CHECK(static_cast<bool>(body), "an if needs a body");
  StmtNode node = node_of(StmtOp::kIf);
  node.condition = std::move(condition);
  node.body = std::move(body);
  node.else_body = std::move(else_body);
  return make_node(std::move(node));
}

Stmt make_seq(std::vector<Stmt> children) {
  std::vector<Stmt> flat;
  for (Stmt& child : children) {
    TM_CHECK(static_cast<bool>(child), "null statement in a sequence");
    if (child->op == StmtOp::kSeq) {
      flat.insert(flat.end(), child->children.begin(), child->children.end());
    } else {
      flat.push_back(std::move(child));
    }
  }
  if (flat.size() == 1) return flat[0];
  StmtNode node = node_of(StmtOp::kSeq);
  node.children = std::move(flat);
  return make_node(std::move(node));
}

Stmt make_let(Var var, Expr value, Stmt body) {
  TM_CHECK(var != nullptr && body, "a let needs a variable and a body");
  const Type type{var->dtype, var->lanes};
  TM_CHECK(value->type == type,
           "let " + var->name + " of type " + to_string(type) + " = " + to_string(value->type));
  StmtNode node = node_of(StmtOp::kLet);
  node.var = std::move(var);
  node.value = std::move(value);
  node.body = std::move(body);
  return make_node(std::move(node));
}

bool equal(const Stmt& a, const Stmt& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) return false;
  if (a->op != b->op || a->for_kind != b->for_kind || a->var != b->var || a->buffer != b->buffer)
    return false;
  if (a->indices.size() != b->indices.size() || a->children.size() != b->children.size()) return false;
  for (size_t i = 0; i < a->indices.size(); ++i) {
    if (!equal(a->indices[i], b->indices[i])) return false;
  }
  for (size_t i = 0; i < a->children.size(); ++i) {
    if (!equal(a->children[i], b->children[i])) return false;
  }
  return equal(a->min, b->min) && equal(a->extent, b->extent) && equal(a->value, b->value) &&
         equal(a->condition, b->condition) && equal(a->mask, b->mask) && equal(a->body, b->body) &&
         equal(a->else_body, b->else_body);
}

Expr Rewriter::rewrite(const Expr& expr) {
  if (expr->args.empty() && !expr->mask) return expr;
  return rewrite_args(expr, [this](const Expr& part) { return rewrite(part); }).of(expr);
}

namespace {

bool same(const Expr& a, const Expr& b) { return a.same_as(b); }
bool same(const Stmt& a, const Stmt& b) { return a.get() == b.get(); }

}  // namespace

Stmt Rewriter::rewrite(const Stmt& stmt) {
  const auto on = [this](const auto& child) { return child ? rewrite(child) : child; };
  const StmtNode& node = *stmt;
  switch (node.op) {
    case StmtOp::kFor: {
      const Expr min = on(node.min), extent = on(node.extent);
      const Stmt body = on(node.body);
      if (same(min, node.min) && same(extent, node.extent) && same(body, node.body)) return stmt;
      return make_for(node.var, min, extent, node.for_kind, body);
    }
    case StmtOp::kStore: {
      std::vector<Expr> indices;
      bool changed = false;
      for (const Expr& index : node.indices) {
        indices.push_back(on(index));
        changed |= !same(indices.back(), index);
      }
      const Expr value = on(node.value), mask = on(node.mask);
      if (!changed && same(value, node.value) && same(mask, node.mask)) return stmt;
      return make_store(node.buffer, std::move(indices), value, mask);
    }
    case StmtOp::kAllocate: {
      const Stmt body = on(node.body);
      return same(body, node.body) ? stmt : make_allocate(node.buffer, body, node.offset);
    }
    case StmtOp::kIf: {
      const Expr condition = on(node.condition);
      const Stmt body = on(node.body), else_body = on(node.else_body);
      if (same(condition, node.condition) && same(body, node.body) && same(else_body, node.else_body))
        return stmt;
      return make_if(condition, body, else_body);
    }
    case StmtOp::kSeq: {
      std::vector<Stmt> children;
      bool changed = false;
      for (const Stmt& child : node.children) {
        children.push_back(on(child));
        changed |= !same(children.back(), child);
      }
      return changed ? make_seq(std::move(children)) : stmt;
    }
    case StmtOp::kLet:
      break;
  }
  const Expr value = on(node.value);
  const Stmt body = on(node.body);
  return same(value, node.value) && same(body, node.body) ? stmt : make_let(node.var, value, body);
}

Expr substitute(const Expr& expr, const Var& var, const Expr& value) {
  return Substituter(var, value).rewrite(expr);
}
Stmt substitute(const Stmt& stmt, const Var& var, const Expr& value) {
  return Substituter(var, value).rewrite(stmt);
}

}  // namespace tensormill::te
