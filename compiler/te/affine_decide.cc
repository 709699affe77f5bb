#include <algorithm>
#include <cstdlib>

#include "compiler/te/affine.h"

namespace tensormill::te {

namespace {

// Bounds are within 2^56 (affine.cc), so that with this no end wraps.
constexpr int64_t kMaxStride = int64_t{1} << 46;

// A vector as base + offset, where the offset of each lane is inside `lanes`.
struct LaneForm {
  Linear base;
  IndexRange lanes;
};

std::optional<LaneForm> lane_form(const Expr& expr, const BoundsContext& context) {
  if (expr->type.lanes == 1) return LaneForm{to_affine(expr, context), {0, 0}};
  switch (expr->op) {
    case ExprOp::kIntImm: {
      LaneForm form;
      form.base.constant = expr->int_value;
      return form;
    }
    case ExprOp::kBroadcast:
      return LaneForm{to_affine(expr->args[0], context), {0, 0}};
    case ExprOp::kRamp: {
      const int64_t* stride = as_int(expr->args[1]);
      if (!stride || std::abs(*stride) > kMaxStride) return std::nullopt;
      const int64_t last = *stride * (expr->type.lanes - 1);
      return LaneForm{to_affine(expr->args[0], context),
                      {std::min<int64_t>(last, 0), std::max<int64_t>(last, 0)}};
    }
    default:
      return std::nullopt;
  }
}

std::optional<IndexRange> range_of_difference(const Expr& a, const Expr& b, const BoundsContext& context) {
  const std::optional<LaneForm> left = lane_form(a, context), right = lane_form(b, context);
  if (!left || !right) return std::nullopt;
  Linear difference = left->base;
  difference.add(right->base, -1);
  const std::optional<IndexRange> range = range_of(difference, context);
  if (!range) return std::nullopt;
  return IndexRange{range->low + left->lanes.low - right->lanes.high,
                    range->high + left->lanes.high - right->lanes.low};
}

}  // namespace

std::optional<bool> decide(const Expr& condition, const BoundsContext& context) {
  if (condition->op == ExprOp::kIntImm) return condition->int_value != 0;
  if (condition->op == ExprOp::kNot) {
    const std::optional<bool> arg = decide(condition->args[0], context);
    return arg ? std::optional<bool>(!*arg) : std::nullopt;
  }
  if (condition->args.size() != 2) return std::nullopt;
  const bool is_and = condition->op == ExprOp::kBitAnd;
  if (is_and || condition->op == ExprOp::kBitOr) {
    if (condition->type.dtype != DType::kBool) return std::nullopt;
    const std::optional<bool> a = decide(condition->args[0], context),
                              b = decide(condition->args[1], context);
    if (((a && *a != is_and) || (b && *b != is_and)) && !has_check(condition)) return !is_and;
    return a && b ? std::optional<bool>(is_and) : std::nullopt;
  }
  if (condition->args[0]->type.dtype != DType::kInt64 || has_check(condition)) return std::nullopt;
  const std::optional<IndexRange> d = range_of_difference(condition->args[0], condition->args[1], context);
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

}  // namespace tensormill::te
