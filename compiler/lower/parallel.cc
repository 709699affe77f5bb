// Parallel loops: one level deep, starting at 0. A parallel loop inside another runs serially.
#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"

namespace tensormill::lower {

using te::Expr;
using te::ForKind;
using te::Stmt;

namespace {

class ParallelNormalizer : public RangeRewriter {
protected:
  Stmt rewrite_for(const Stmt& stmt) override {
    if (stmt->for_kind != ForKind::kParallel) return RangeRewriter::rewrite_for(stmt);
    if (inside_) {
      return RangeRewriter::rewrite_for(
          te::make_for(stmt->var, stmt->min, stmt->extent, ForKind::kSerial, stmt->body));
    }
    inside_ = true;
    Stmt loop = stmt;
    if (!te::is_int(stmt->min, 0)) {
      const Stmt body = te::substitute(stmt->body, stmt->var, Expr(stmt->var) + stmt->min);
      loop = te::make_for(stmt->var, Expr(0), stmt->extent, ForKind::kParallel, body);
    }
    Stmt result = RangeRewriter::rewrite_for(loop);
    inside_ = false;
    return result;
  }

private:
  bool inside_ = false;
};

}  // namespace

te::Function run_parallel(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = ParallelNormalizer().rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
