// Vector math becomes arithmetic (math.h). Where the target has a fused multiply-add, an accumulation x = x +
// a*b becomes one, and so does a sum with a product by a power of two: that product is exact, so that the two
// forms round alike (unless it overflows, which the fused form does not). What the arithmetic uses more than
// once gets a name.
#include <cmath>
#include <unordered_map>

#include "compiler/lower/math.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"
#include "compiler/schedule/naming.h"
#include "compiler/te/rewrite_args.h"

namespace tensormill::lower {

using te::Expr;
using te::ExprOp;
using te::Stmt;
using te::StmtOp;

namespace {

class Legalizer {
public:
  explicit Legalizer(const target::CpuFacts& facts) : facts_(facts) {}

  Stmt run(const Stmt& stmt) {
    switch (stmt->op) {
      case StmtOp::kSeq: {
        std::vector<Stmt> children;
        for (const Stmt& child : stmt->children) children.push_back(run(child));
        return te::make_seq(std::move(children));
      }
      case StmtOp::kFor:
        return te::make_for(stmt->var, stmt->min, stmt->extent, stmt->for_kind, run(stmt->body));
      case StmtOp::kAllocate:
        return te::make_allocate(stmt->buffer, run(stmt->body), stmt->offset);
      case StmtOp::kStore:
        return store(stmt);
      case StmtOp::kIf:
        return named({stmt->condition}, [&](const std::vector<Expr>& values) {
          return te::make_if(values[0], run(stmt->body), stmt->else_body ? run(stmt->else_body) : Stmt());
        });
      case StmtOp::kLet:
        return named({stmt->value}, [&](const std::vector<Expr>& values) {
          return te::make_let(stmt->var, values[0], run(stmt->body));
        });
    }
    return stmt;
  }

private:
  Stmt named(const std::vector<Expr>& values, const std::function<Stmt(const std::vector<Expr>&)>& make) {
    std::vector<Expr> legal;
    bool changed = false;
    for (const Expr& value : values) {
      legal.push_back(legalize(value));
      changed = changed || !legal.back().same_as(value);
    }
    done_.clear();
    return changed ? schedule::name_shared(std::move(legal), make) : make(values);
  }

  Stmt store(const Stmt& stmt) {
    const Expr fused = accumulation(stmt);
    std::vector<Expr> parts = stmt->indices;
    parts.push_back(fused ? fused : stmt->value);
    return named(parts, [&](const std::vector<Expr>& values) {
      return te::make_store(stmt->buffer, {values.begin(), values.end() - 1}, values.back(), stmt->mask);
    });
  }

  // x[i] = x[i] + a*b as an fma, or null.
  Expr accumulation(const Stmt& stmt) const {
    const Expr& value = stmt->value;
    if (!facts_.fma || value->op != ExprOp::kAdd || !value->type.is_float()) return {};
    if (value->type.dtype != DType::kFloat32 && value->type.dtype != DType::kFloat64) return {};
    for (size_t side = 0; side < 2; ++side) {
      const Expr& held = value->args[side];
      const Expr& product = value->args[1 - side];
      if (held->op != ExprOp::kLoad || held->buffer != stmt->buffer || product->op != ExprOp::kMul) continue;
      bool same = held->args.size() == stmt->indices.size();
      for (size_t d = 0; same && d < held->args.size(); ++d)
        same = te::equal(held->args[d], stmt->indices[d]);
      if (same) return te::fma(product->args[0], product->args[1], held);
    }
    return {};
  }

  // a*2^k + b, b + a*2^k, b - a*2^k as an fma, or null; k >= 0.
  Expr exact_product(const Expr& expr) const {
    const bool add = expr->op == ExprOp::kAdd, sub = expr->op == ExprOp::kSub;
    const DType dtype = expr->type.dtype;
    if (!facts_.fma || (!add && !sub) || (dtype != DType::kFloat32 && dtype != DType::kFloat64)) return {};
    for (size_t side = add ? 0 : 1; side < 2; ++side) {
      const Expr& product = expr->args[side];
      if (product->op != ExprOp::kMul) continue;
      for (size_t i = 0; i < 2; ++i) {
        const Expr& factor = product->args[i];
        int exponent = 0;
        if (factor->op != ExprOp::kFloatImm || std::frexp(factor->float_value, &exponent) != 0.5 ||
            exponent < 1)
          continue;
        const Expr scale = add ? factor : te::float_imm(dtype, -factor->float_value, factor->type.lanes);
        return te::fma(product->args[1 - i], scale, expr->args[1 - side]);
      }
    }
    return {};
  }

  Expr legalize(const Expr& expr) {
    if (expr->args.empty()) return expr;
    if (const auto done = done_.find(expr.get()); done != done_.end()) return done->second;
    te::RewrittenArgs rewritten = te::rewrite_args(expr, [this](const Expr& part) { return legalize(part); });
    Expr result = is_vector_math(expr->op) ? legalize_math(expr->op, rewritten.args, facts_)
                                           : std::move(rewritten).of(expr);
    if (const Expr fused = exact_product(result)) result = fused;
    done_.emplace(expr.get(), result);
    return result;
  }

  const target::CpuFacts& facts_;
  std::unordered_map<const te::ExprNode*, Expr> done_;
};

}  // namespace

te::Function run_legalize(const te::Function& input, const target::Target& target) {
  te::Function result = input;
  result.body = Legalizer(target.facts).run(input.body);
  return result;
}

}  // namespace tensormill::lower
