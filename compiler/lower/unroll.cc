// Unrolled loops become copies of their body with the variable's value in place.
#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"
#include "runtime/base/error.h"

namespace tensormill::lower {

using te::ForKind;
using te::Stmt;

namespace {

class Unroller : public RangeRewriter {
protected:
  Stmt rewrite_for(const Stmt& stmt) override {
    if (stmt->for_kind != ForKind::kUnrolled) return RangeRewriter::rewrite_for(stmt);
    const te::Expr min = rewrite(stmt->min), extent = rewrite(stmt->extent);
    TM_CHECK(te::as_int(min) && te::as_int(extent), "an unrolled loop has a constant range");
    std::vector<Stmt> copies;
    for (int64_t i = *te::as_int(min); i < *te::as_int(min) + *te::as_int(extent); ++i) {
      ranges_.bind(stmt->var, {i, i});
      Stmt copy = rewrite(stmt->body);
      if (copy->op != te::StmtOp::kSeq || !copy->children.empty()) copies.push_back(std::move(copy));
    }
    return te::make_seq(std::move(copies));
  }
};

}  // namespace

te::Function run_unroll(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = Unroller().rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
