#include <algorithm>
#include <cstdlib>

#include "compiler/schedule/affine.h"
#include "compiler/te/simplify.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

// Bounds are within 2^56 (affine.cc), so that with this no end wraps.
constexpr int64_t kMaxStride = int64_t{1} << 46;

// A vector as base + offset, where the offset of each lane is inside `lanes`.
struct LaneForm {
  Affine base;
  Range lanes;
};

std::optional<LaneForm> lane_form(const Expr& expr, const Ranges& ranges) {
  if (expr->type.lanes == 1) return LaneForm{to_affine(expr, ranges), {0, 0}};
  switch (expr->op) {
    case ExprOp::kIntImm: {
      LaneForm form;
      form.base.constant = expr->int_value;
      return form;
    }
    case ExprOp::kBroadcast:
      return LaneForm{to_affine(expr->args[0], ranges), {0, 0}};
    case ExprOp::kRamp: {
      const int64_t* stride = te::as_int(expr->args[1]);
      if (!stride || std::abs(*stride) > kMaxStride) return std::nullopt;
      const int64_t last = *stride * (expr->type.lanes - 1);
      return LaneForm{to_affine(expr->args[0], ranges),
                      {std::min<int64_t>(last, 0), std::max<int64_t>(last, 0)}};
    }
    default:
      return std::nullopt;
  }
}

std::optional<Range> range_of_difference(const Expr& a, const Expr& b, const Ranges& ranges) {
  const std::optional<LaneForm> left = lane_form(a, ranges), right = lane_form(b, ranges);
  if (!left || !right) return std::nullopt;
  Affine difference = left->base;
  difference.add(right->base, -1);
  const std::optional<Range> range = range_of(difference, ranges);
  if (!range) return std::nullopt;
  return Range{range->low + left->lanes.low - right->lanes.high,
               range->high + left->lanes.high - right->lanes.low};
}

}  // namespace

std::optional<bool> decide(const Expr& condition, const Ranges& ranges) {
  if (condition->op == ExprOp::kIntImm) return condition->int_value != 0;
  if (condition->op == ExprOp::kNot) {
    const std::optional<bool> arg = decide(condition->args[0], ranges);
    return arg ? std::optional<bool>(!*arg) : std::nullopt;
  }
  if (condition->args.size() != 2) return std::nullopt;
  const bool is_and = condition->op == ExprOp::kBitAnd;
  if (is_and || condition->op == ExprOp::kBitOr) {
    if (condition->type.dtype != DType::kBool) return std::nullopt;
    const std::optional<bool> a = decide(condition->args[0], ranges), b = decide(condition->args[1], ranges);
    if ((a && *a != is_and) || (b && *b != is_and)) return !is_and;
    return a && b ? std::optional<bool>(is_and) : std::nullopt;
  }
  if (condition->args[0]->type.dtype != DType::kInt64 || te::has_check(condition)) return std::nullopt;
  const std::optional<Range> d = range_of_difference(condition->args[0], condition->args[1], ranges);
  if (!d) return std::nullopt;
  const auto both = [](bool yes, bool no) {
    return yes ? std::optional<bool>(true) : no ? std::optional<bool>(false) : std::nullopt;
  };
  switch (condition->op) {
    case ExprOp::kLt:
      return both(d->high < 0, d->low >= 0);
    case ExprOp::kLe:
      return both(d->high <= 0, d->low > 0);
    case ExprOp::kGt:
      return both(d->low > 0, d->high <= 0);
    case ExprOp::kGe:
      return both(d->low >= 0, d->high < 0);
    case ExprOp::kEq:
      return both(d->low == 0 && d->high == 0, d->low > 0 || d->high < 0);
    case ExprOp::kNe:
      return both(d->low > 0 || d->high < 0, d->low == 0 && d->high == 0);
    default:
      return std::nullopt;
  }
}

bool uses_var(const Expr& expr, const te::Var& var) {
  if (expr->op == ExprOp::kVar) return expr->var == var;
  for (const Expr& arg : expr->args) {
    if (uses_var(arg, var)) return true;
  }
  return expr->mask && uses_var(expr->mask, var);
}

}  // namespace tensormill::schedule
