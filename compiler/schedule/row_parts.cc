#include "compiler/schedule/row_parts.h"

#include <algorithm>

#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"

namespace tensormill::schedule {

namespace {

using te::Expr;
using te::ExprOp;

class Divider {
public:
  Divider(const std::vector<te::Axis>& axes, const te::BoundsContext& context)
      : axes_(axes), last_(axes.back().var), context_(context) {}

  std::optional<RowParts> run(const Expr& body) {
    if (body->op != ExprOp::kSelect || !take(body->args[0])) return std::nullopt;
    parts_.inside = body->args[1];
    parts_.outside = body->args[2];
    return parts_;
  }

private:
  bool take(const Expr& condition) {
    if (te::has_check(condition)) return false;
    if (context_.proves(condition)) return true;
    if (condition->op == ExprOp::kBitAnd) return take(condition->args[0]) && take(condition->args[1]);
    const bool is_below = condition->op == ExprOp::kLt || condition->op == ExprOp::kLe;
    const bool is_above = condition->op == ExprOp::kGt || condition->op == ExprOp::kGe;
    if ((!is_below && !is_above) || condition->args[0]->type != te::Type{} || reads(condition)) return false;
    if (!te::mentions(condition, last_)) {
      parts_.rows = both(parts_.rows, condition);
      return true;
    }
    // last < end, or last >= begin.
    te::Linear rest = te::to_linear(condition->args[1]);
    rest.add(te::to_linear(condition->args[0]), -1);
    const int64_t step = rest.coefficient_of(Expr(last_));
    rest.add(Expr(last_), -step);
    if (rest.overflow || (step != 1 && step != -1)) return false;
    if (step == 1) rest = negated(rest);
    const bool is_end = is_below == (step == -1);
    const bool is_strict = condition->op == ExprOp::kLt || condition->op == ExprOp::kGt;
    if (is_strict != is_end) rest.add_constant(1);
    const Expr place = te::from_linear(rest);
    Expr& known = is_end ? parts_.end : parts_.begin;
    if (known || mentions_axis(place)) return false;
    known = place;
    return true;
  }

  static te::Linear negated(const te::Linear& sum) {
    te::Linear result;
    result.add(sum, -1);
    return result;
  }

  static bool reads(const Expr& expr) {
    bool found = false;
    te::for_each_expr(expr, [&](const Expr& part) { found = found || part->op == ExprOp::kRead; });
    return found;
  }

  bool mentions_axis(const Expr& expr) const {
    return std::any_of(axes_.begin(), axes_.end(),
                       [&](const te::Axis& axis) { return te::mentions(expr, axis.var); });
  }

  const std::vector<te::Axis>& axes_;
  const te::Var& last_;
  const te::BoundsContext& context_;
  RowParts parts_;
};

}  // namespace

std::optional<RowParts> row_parts_of(const te::Expr& body, const std::vector<te::Axis>& axes,
                                     const te::BoundsContext& context) {
  if (axes.empty()) return std::nullopt;
  return Divider(axes, context).run(body);
}

}  // namespace tensormill::schedule
