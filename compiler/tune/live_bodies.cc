#include "compiler/tune/live_bodies.h"

#include <algorithm>
#include <array>
#include <map>

namespace tensormill::tune {

namespace {

using te::ExprOp;

constexpr size_t kLooks = 256;  // iterations around a body that a condition is asked for, at most

/// A loop that is walked, with the place of its variable's value.
struct Walked {
  size_t loop = 0;
  size_t extent = 1;
  int64_t* value = nullptr;
  int64_t first = 0;
};

class Condition {
public:
  Condition(te::Expr expr, const std::vector<NestLoop>& loops, const Lets& lets, Values& values)
      : expr_(std::move(expr)), lets_(lets), values_(values) {
    std::vector<const te::VarNode*> vars;
    add_vars(expr_, vars);
    const size_t body = first_of_body(loops);
    for (size_t i = 0; i < loops.size(); ++i) {
      if (std::find(vars.begin(), vars.end(), loops[i].var.get()) == vars.end()) continue;
      int64_t* value = values.find(loops[i].var.get());
      const auto extent = static_cast<size_t>(loops[i].extent);
      if (i < body) outer_.push_back({i, extent, value, *value});
      if (i >= body && loops[i].kind == te::ForKind::kUnrolled) inner_.push_back({i, extent, value, *value});
    }
  }

  const std::vector<Walked>& inner() const { return inner_; }

  /// By the copies of the inner loops that run: how many of the bodies that were looked at.
  std::map<size_t, size_t> count() {
    size_t all = 1;
    for (const Walked& walked : outer_) all *= walked.extent;
    const size_t looks = std::min(all, kLooks);
    std::map<size_t, size_t> counts;
    // Evenly over all, the last among them: what is cut off stands at the ends.
    for (size_t look = 0; look < looks; ++look) {
      move(outer_, (look + 1) * all / looks - 1);
      ++counts[copies()];
    }
    move(outer_, 0);
    move(inner_, 0);
    update_lets(lets_, values_);
    return counts;
  }

  size_t copies_of_all() const {
    size_t all = 1;
    for (const Walked& walked : inner_) all *= walked.extent;
    return all;
  }

private:
  void add_vars(const te::Expr& expr, std::vector<const te::VarNode*>& vars) const {
    te::for_each_expr(expr, [&](const te::Expr& part) {
      if (part->op != ExprOp::kVar) return;
      vars.push_back(part->var.get());
      for (const auto& [var, definition] : lets_) {
        if (var == part->var) add_vars(definition, vars);
      }
    });
  }

  static void move(const std::vector<Walked>& loops, size_t place) {
    for (size_t i = loops.size(); i-- > 0;) {
      *loops[i].value = loops[i].first + static_cast<int64_t>(place % loops[i].extent);
      place /= loops[i].extent;
    }
  }

  bool holds(size_t copy) {
    move(inner_, copy);
    update_lets(lets_, values_);
    return evaluate(expr_, values_) != 0;
  }

  // Comparisons of indices: where the first copy and the last one run, those between do.
  size_t copies() {
    const size_t all = copies_of_all();
    if (all == 0 || (holds(0) && holds(all - 1))) return all;
    size_t live = 0;
    for (size_t copy = 0; copy < all; ++copy) live += holds(copy) ? 1 : 0;
    return live;
  }

  te::Expr expr_;
  const Lets& lets_;
  Values& values_;
  std::vector<Walked> outer_, inner_;
};

bool has_same_copies(const LiveBody& a, const LiveBody& b) {
  return std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                    [](const NestLoop& x, const NestLoop& y) { return x.extent == y.extent; });
}

void add(std::vector<LiveBody>& bodies, LiveBody fresh) {
  for (LiveBody& body : bodies) {
    if (!has_same_copies(body, fresh)) continue;
    body.share += fresh.share;
    return;
  }
  bodies.push_back(std::move(fresh));
}

}  // namespace

int64_t* Values::find(const te::VarNode* var) {
  for (auto at = values_.rbegin(); at != values_.rend(); ++at) {
    if (at->first == var) return &at->second;
  }
  return nullptr;
}

int64_t evaluate(const te::Expr& expr, Values& values) {
  if (const int64_t* constant = te::as_int(expr)) return *constant;
  if (expr->op == ExprOp::kVar) {
    const int64_t* value = values.find(expr->var.get());
    return value == nullptr ? 0 : *value;
  }
  // The first lane stands for a vector.
  if (expr->op == ExprOp::kCheckIndex || expr->op == ExprOp::kRamp || expr->op == ExprOp::kBroadcast)
    return evaluate(expr->args[0], values);
  if (expr->op == ExprOp::kLookup)
    return (*expr->table)[static_cast<uint8_t>(evaluate(expr->args[0], values))];
  const bool is_lanes = expr->op >= ExprOp::kLaneReduceAdd && expr->op <= ExprOp::kLaneReduceMax;
  if (expr->op >= ExprOp::kLoad || is_lanes || expr->type.is_float() || expr->args.empty()) return 0;
  for (const te::Expr& arg : expr->args) {
    if (arg->type.is_float()) return 0;
  }
  std::array<te::Scalar, 3> args{};
  for (size_t i = 0; i < expr->args.size(); ++i) args[i].i = evaluate(expr->args[i], values);
  return te::evaluate_op(expr->op, expr->args[0]->type.dtype, expr->type.dtype, args.data(),
                         expr->args.size())
      .i;
}

void update_lets(const Lets& lets, Values& values) {
  for (const auto& [var, definition] : lets) *values.find(var.get()) = evaluate(definition, values);
}

std::vector<LiveBody> live_bodies(const std::vector<te::Expr>& conditions, const std::vector<NestLoop>& loops,
                                  const Lets& lets, Values& values) {
  std::vector<LiveBody> bodies = {{1, loops}};
  for (const te::Expr& expr : conditions) {
    Condition condition(expr, loops, lets, values);
    if (condition.inner().empty()) continue;
    const std::map<size_t, size_t> counts = condition.count();
    const auto copies = static_cast<double>(condition.copies_of_all());
    double looks = 0;
    for (const auto& [live, count] : counts) looks += static_cast<double>(count);
    std::vector<LiveBody> next;
    for (const LiveBody& body : bodies) {
      for (const auto& [live, count] : counts) {
        LiveBody cut = body;
        cut.share *= static_cast<double>(count) / looks;
        // What several conditions leave out of a loop is left out at different ends.
        NestLoop& loop = cut.loops[condition.inner().front().loop];
        const double out =
            loops[condition.inner().front().loop].extent * (1 - static_cast<double>(live) / copies);
        loop.extent = std::max(loop.extent - out, 0.0);
        add(next, std::move(cut));
      }
    }
    bodies = std::move(next);
  }
  return bodies;
}

}  // namespace tensormill::tune
