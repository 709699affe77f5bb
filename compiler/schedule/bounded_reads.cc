#include "compiler/schedule/bounded_reads.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

bool is_within(const Expr& index, const Expr& bound, const te::BoundsContext& context) {
  return context.proves(index >= Expr(0)) && context.proves(index < bound);
}

Expr clamped(const Expr& index, const Expr& bound) {
  return te::max(te::min(index, bound - Expr(1)), Expr(0));
}

/// `seen`: what has been looked at, as a part of an index or not.
bool reads_by_data(const Expr& expr, bool in_index, std::set<std::pair<const te::ExprNode*, bool>>& seen) {
  const bool is_read = expr->op == ExprOp::kRead;
  if (in_index && is_read) return true;
  if (!seen.emplace(expr.get(), in_index).second) return false;
  return std::any_of(expr->args.begin(), expr->args.end(),
                     [&](const Expr& arg) { return reads_by_data(arg, in_index || is_read, seen); });
}

/// Whether the select's condition is of places alone, and no data that it leaves out say what is read: then
/// loads of what it chooses may have the condition as their mask.
bool can_mask(const te::ExprNode& select) {
  bool can = true;
  te::for_each_expr(select.args[0], [&](const Expr& part) {
    can = can && part->op != ExprOp::kRead && !part->type.is_float();
  });
  std::set<std::pair<const te::ExprNode*, bool>> seen;
  return can && !reads_by_data(select.args[1], false, seen);
}

}  // namespace

void BoundedReads::forget() {
  kept_.clear();
  done_.clear();
}

Expr BoundedReads::run(const Expr& expr) {
  if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
  const bool is_read = expr->op == ExprOp::kRead;
  const Expr presence = is_read && sources_.presence ? sources_.presence(expr->tensor) : Expr();
  if (presence && te::is_int(presence, 0)) return te::imm_like(expr->type, 0);
  std::vector<Expr> args;
  for (const Expr& arg : expr->args) {
    const bool is_chosen =
        expr->op == ExprOp::kSelect && args.size() == 1 && masks_ && !chosen_ && can_mask(*expr);
    args.push_back(is_chosen ? run_where(expr->args[0], arg) : run(arg));
  }
  Expr result = expr;
  // The first place of an axis without elements is looked up, by an index that is none.
  if (expr->op == ExprOp::kCheckIndex && sources_.looks_up_nothing && !context_.proves(args[1] >= Expr(1)))
    args[1] = te::max(args[1], Expr(1));
  if (is_read) {
    result = presence ? load_where(presence, *expr, std::move(args)) : load(*expr, std::move(args));
  } else if (!args.empty()) {
    result = te::with_args(expr, std::move(args));
  }
  kept_.push_back(expr);
  done_.emplace(expr.get(), result);
  return result;
}

Expr BoundedReads::load(const te::ExprNode& read, std::vector<Expr> indices) const {
  const te::Buffer buffer = sources_.buffer(read.tensor);
  if (!buffer) return te::read(read.tensor, std::move(indices), read.output);
  Expr mask;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& bound = read.tensor->shape[d];
    // Of a number the verifier does not show that the mask leaves out what is past it.
    if (chosen_ && te::as_int(bound) == nullptr) {
      const Expr index = te::simplify(indices[d], chosen_context_);
      if (!te::equal(index, indices[d]) && is_within(index, bound, chosen_context_)) {
        indices[d] = index;
        if (!is_within(index, bound, context_)) mask = chosen_;
        continue;
      }
    }
    if (is_within(indices[d], bound, context_)) continue;
    if (indices[d]->op == ExprOp::kCheckIndex && te::equal(indices[d]->args[1], bound)) continue;
    indices[d] = clamped(indices[d], bound);
  }
  return te::load(buffer, std::move(indices), mask);
}

Expr BoundedReads::load_where(const Expr& presence, const te::ExprNode& read,
                              std::vector<Expr> indices) const {
  te::BoundsContext present = context_;
  present.assume(presence);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr& bound = read.tensor->shape[d];
    if (!is_within(indices[d], bound, present)) indices[d] = clamped(indices[d], bound);
  }
  return te::load(sources_.buffer(read.tensor), std::move(indices), presence);
}

Expr BoundedReads::run_where(const Expr& condition, const Expr& value) {
  std::unordered_map<const te::ExprNode*, Expr> before;
  std::swap(before, done_);
  chosen_ = condition;
  chosen_context_ = context_;
  chosen_context_.assume(condition);
  const Expr result = run(value);
  chosen_ = Expr();
  std::swap(before, done_);
  return result;
}

}  // namespace tensormill::schedule
