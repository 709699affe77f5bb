// Of LoopBuilder: iterations that compute several elements together.
#include "compiler/plan/generic_loop_builder.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/schedule/conditions.h"
#include "compiler/schedule/naming.h"
#include "compiler/te/linear.h"
#include "compiler/te/rewrite_args.h"

namespace tensormill::plan {

using schedule::all_of;
using schedule::is_of_indices;
using schedule::split_conjunction;
using schedule::visit_once;
using te::Expr;
using te::ExprOp;
using te::Stmt;

namespace {

using Nodes = std::unordered_map<const te::ExprNode*, Expr>;

/// `expr` with `put` in the place of variables, and the first of a select's values where its condition is one
/// of `taken`.
class Rewriter {
public:
  Rewriter(std::unordered_map<const te::VarNode*, Expr> put, const std::vector<Expr>& taken)
      : put_(std::move(put)) {
    for (const Expr& condition : taken) taken_.emplace(condition.get(), condition);
  }

  Expr run(const Expr& expr) {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    Expr result;
    if (expr->op == ExprOp::kVar && put_.count(expr->var.get()) != 0) {
      result = put_.at(expr->var.get());
    } else if (expr->op == ExprOp::kSelect && taken_.count(expr->args[0].get()) != 0) {
      result = run(expr->args[1]);
    } else {
      result = te::rewrite_args(expr, [this](const Expr& part) { return run(part); }).of(expr);
    }
    done_.emplace(expr.get(), result);
    return result;
  }

private:
  const std::unordered_map<const te::VarNode*, Expr> put_;
  Nodes taken_, done_;
};

void add_new(const Expr& condition, std::vector<Expr>& all) {
  std::vector<Expr> parts;
  split_conjunction(condition, parts);
  for (const Expr& part : parts) {
    const bool is_known =
        std::any_of(all.begin(), all.end(), [&](const Expr& each) { return te::equal(each, part); });
    if (!is_known) all.push_back(part);
  }
}

}  // namespace

std::vector<Expr> LoopBuilder::at_lane(const std::vector<Expr>& exprs) const {
  std::unordered_map<const te::VarNode*, Expr> places;
  for (size_t i = 0; i < tensor_.axes.size(); ++i) places.emplace(tensor_.axes[i].var.get(), position(i));
  Rewriter rewriter(std::move(places), {});
  std::vector<Expr> result;
  for (const Expr& expr : exprs) result.push_back(rewriter.run(expr));
  return result;
}

Stmt LoopBuilder::compute_places() {
  std::vector<Stmt> groups;
  for (size_t first = 0; first < nest_.places.size(); first += static_cast<size_t>(tiling_.places))
    groups.push_back(compute_group(first));
  return te::make_seq(std::move(groups));
}

Stmt LoopBuilder::compute_group(size_t first) {
  const size_t end = first + static_cast<size_t>(tiling_.places);
  const te::Var& vector = tensor_.axes[tiling_.vector_axis.value_or(tensor_.axes.size() - 1)].var;
  std::vector<Expr> selects, conditions;
  std::unordered_set<const te::ExprNode*> seen;
  const auto look = [&](const Expr& expr) {
    // The same for all lanes.
    if (expr->op != ExprOp::kSelect || !is_of_indices(expr->args[0]) || te::mentions(expr->args[0], vector))
      return;
    selects.push_back(expr->args[0]);
    add_new(expr->args[0], conditions);
  };
  for (size_t i = first; i < end; ++i) visit_once(tensor_.body[i], seen, look);
  for (size_t i = first; i < end; ++i) {
    if (nest_.places[i].inside) add_new(nest_.places[i].inside, conditions);
  }
  const Stmt any = store_group(first, {});
  if (conditions.empty()) return any;
  const te::BoundsContext before = context_;
  for (const Expr& condition : conditions) context_.assume(condition);
  for (size_t i = first; i < end; ++i) {
    if (nest_.places[i].inside) selects.push_back(nest_.places[i].inside);
  }
  const Stmt inside = store_group(first, selects);
  context_ = before;
  return te::make_if(at_lane({all_of(conditions)})[0], inside, any);
}

Stmt LoopBuilder::store_group(size_t first, const std::vector<Expr>& taken) {
  reads_.forget();
  Rewriter chooser({}, taken);
  std::vector<Expr> values;
  const size_t rank = tensor_.axes.size(), count = static_cast<size_t>(tiling_.places);
  for (size_t i = 0; i < count; ++i) values.push_back(reads_.run(chooser.run(tensor_.body[first + i])));
  std::vector<bool> is_guarded;
  for (size_t i = 0; i < count; ++i) {
    const NestPlace& place = nest_.places[first + i];
    values.insert(values.end(), place.at.begin(), place.at.end());
    const bool is_taken =
        std::any_of(taken.begin(), taken.end(), [&](const Expr& each) { return each.same_as(place.inside); });
    is_guarded.push_back(place.inside && !is_taken);
  }
  for (size_t i = 0; i < count; ++i) {
    if (is_guarded[i]) values.push_back(nest_.places[first + i].inside);
  }
  const Stmt body = schedule::name_shared(at_lane(values), [&](const std::vector<Expr>& named) {
    std::vector<Stmt> result;
    size_t condition = count * (rank + 1);
    for (size_t i = 0; i < count; ++i) {
      const auto at = named.begin() + static_cast<std::ptrdiff_t>(count + i * rank);
      Stmt store = te::make_store(outputs_[0], {at, at + static_cast<std::ptrdiff_t>(rank)}, named[i]);
      result.push_back(is_guarded[i] ? te::make_if(named[condition++], store) : store);
    }
    return te::make_seq(std::move(result));
  });
  reads_.forget();
  return each_output(body);
}

}  // namespace tensormill::plan
