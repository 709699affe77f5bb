#include "compiler/te/verify_races.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "compiler/te/linear.h"
#include "compiler/te/prover.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

/// A digit of the task number: task = sum of weight * digit.
struct Digit {
  Var var;
  int64_t weight;
  int64_t count;
};

void collect_divisors(const Expr& expr, const Var& task, std::set<int64_t>& divisors) {
  for_each_expr(expr, [&](const Expr& part) {
    if (part->op != ExprOp::kFloorDiv && part->op != ExprOp::kFloorMod) return;
    const int64_t* by = as_int(part->args[1]);
    if (by == nullptr || *by <= 1) return;
    const Expr& of = part->args[0];
    if (of->op == ExprOp::kVar && of->var == task) divisors.insert(*by);
    if (of->op != ExprOp::kFloorDiv || of->args[0]->op != ExprOp::kVar || of->args[0]->var != task) return;
    const int64_t* inner = as_int(of->args[1]);
    int64_t whole = 0;
    if (inner != nullptr && !__builtin_mul_overflow(*inner, *by, &whole)) divisors.insert(whole);
  });
}

/// Digits from the most significant down; divisors that do not divide each other are left out.
std::vector<Digit> digits_of(const std::set<int64_t>& divisors, int64_t count) {
  std::vector<int64_t> weights = {1};
  for (const int64_t divisor : divisors) {
    if (divisor % weights.back() == 0 && divisor < count) weights.push_back(divisor);
  }
  std::vector<Digit> digits;
  for (size_t i = weights.size(); i-- > 0;) {
    const int64_t above = i + 1 < weights.size() ? weights[i + 1] / weights[i] : (count - 1) / weights[i] + 1;
    digits.push_back({make_var("digit" + std::to_string(i)), weights[i], above});
  }
  return digits;
}

/// Of where it happens; of a vector the lanes that are masked out touch nothing.
std::vector<Expr> conditions_of(const TaskAccess& access) {
  std::vector<Expr> conditions = access.context.conditions();
  conditions.insert(conditions.end(), access.mask.begin(), access.mask.end());
  return conditions;
}

class PairProver {
public:
  PairProver(const Var& task, std::vector<Digit> digits, int64_t first, const BoundsContext& outer,
             const std::vector<Var>& outer_variables)
      : task_(task), digits_(std::move(digits)), first_(first), outer_(outer) {
    for (const Var& var : outer_variables) shared_.insert(var.get());
  }

  bool disjoint(const TaskAccess& a, const TaskAccess& b, bool by_conditions) {
    if (a.indices.size() != b.indices.size()) return false;
    for (size_t digit = 0; digit < digits_.size(); ++digit) {
      if (!differ(a, b, digit, by_conditions)) return false;
    }
    return true;
  }

private:
  /// The indices of an access in an iteration with the given digits, over variables of its own, and in
  /// `conditions`, if given, what holds of them, which is no part of `context`: one index is to have one
  /// form.
  std::vector<Linear> indices_of(const TaskAccess& access, const std::vector<Expr>& digits,
                                 BoundsContext& context, std::vector<Expr>* conditions) {
    LaneView view{{}, {}, access.context};
    std::vector<Expr> parts = access.indices;
    if (conditions) {
      const std::vector<Expr> own = conditions_of(access);
      parts.insert(parts.end(), own.begin(), own.end());
    }
    parts = view_lanes(parts, view);
    Expr number = Expr(first_);
    for (size_t i = 0; i < digits.size(); ++i) number = number + digits[i] * Expr(digits_[i].weight);
    std::map<const VarNode*, Var> renamed;
    for (Expr& part : parts) {
      std::set<Var> variables;
      for_each_expr(part, [&](const Expr& each) {
        if (each->op == ExprOp::kVar) variables.insert(each->var);
      });
      // The order of the set is that of addresses; it decides nothing that can be seen.
      for (const Var& var : variables) {
        if (var == task_ || shared_.contains(var.get())) continue;
        Var& own = renamed[var.get()];
        if (!own) {
          own = make_var(var->name, var->dtype, var->lanes);
          const Interval* range = view.context.find(var);
          if (range != nullptr) context.bind(own, *range);
        }
        part = substitute(part, var, Expr(own));
      }
      part = substitute(part, task_, number);
    }
    if (conditions)
      conditions->insert(conditions->end(),
                         parts.begin() + static_cast<std::ptrdiff_t>(access.indices.size()), parts.end());
    std::vector<Linear> result;
    for (size_t i = 0; i < access.indices.size(); ++i)
      result.push_back(to_linear(simplify(parts[i], context)));
    return result;
  }

  /// Iterations whose digits before `at` are equal and whose digit there is larger for b.
  bool differ(const TaskAccess& a, const TaskAccess& b, size_t at, bool by_conditions) {
    if (digits_[at].count <= 1) return true;
    BoundsContext context = outer_;
    const Var step = make_var("step");
    context.bind(step, {1, digits_[at].count - 1});
    std::vector<Expr> first, second;
    for (size_t i = 0; i < digits_.size(); ++i) {
      const Var own = make_var("d"), other = make_var("d");
      context.bind(own, {0, digits_[i].count - 1});
      context.bind(other, {0, digits_[i].count - 1});
      first.emplace_back(own);
      second.emplace_back(i < at ? own : other);
    }
    std::vector<Expr> conditions;
    std::vector<Expr>* const found = by_conditions ? &conditions : nullptr;
    const std::vector<Linear> left = indices_of(a, first, context, found);
    const std::vector<Linear> right = indices_of(b, second, context, found);
    for (const Expr& condition : conditions) context.assume(simplify(condition, context));
    std::vector<Linear> differences;
    for (size_t i = 0; i < left.size(); ++i) {
      Linear difference = right[i];
      difference.add(left[i], -1);
      differences.push_back(std::move(difference));
    }
    const auto apart = [&](Linear joined) {
      recombine(joined);
      // Only now, since a sum of two would hide that the digit stays below its count.
      const int64_t by = joined.coefficient_of(second[at]);
      if (joined.overflow || by == std::numeric_limits<int64_t>::min()) return false;
      joined.add(second[at], -by);
      joined.add(first[at], by);
      joined.add(Expr(step), by);
      return !joined.overflow && never_zero(joined, context);
    };
    return any_apart(differences, radices_of(a, b, false), apart) ||
           any_apart(differences, radices_of(a, b, true), apart);
  }

  /// Extents by which dimensions are joined to one number: those of the buffer, or larger ones that fit a
  /// tail which runs past its dimension before it is masked. Empty where they are not known.
  static std::vector<int64_t> radices_of(const TaskAccess& a, const TaskAccess& b, bool tails) {
    if (a.extents.size() != a.indices.size() || a.extents != b.extents) return {};
    std::vector<int64_t> radices = a.extents;
    for (size_t i = 0; tails && i < radices.size(); ++i) {
      for (const TaskAccess* access : {&a, &b}) {
        for (const Term& term : to_linear(access->indices[i]).terms) {
          const int64_t* inner = term.atom->op == ExprOp::kFloorMod ? as_int(term.atom->args[1]) : nullptr;
          int64_t whole = 0;
          if (inner == nullptr || __builtin_mul_overflow(*inner, term.coefficient, &whole)) continue;
          radices[i] = std::max(radices[i], whole);
        }
      }
    }
    return radices;
  }

  /// Whether some run of dimensions, read as one number, differs always.
  static bool any_apart(const std::vector<Linear>& differences, const std::vector<int64_t>& radices,
                        const LinearFilter& apart) {
    for (size_t last = 0; last < differences.size(); ++last) {
      Linear joined = differences[last];
      __int128 weight = 1;
      for (size_t first = last;; --first) {
        if (apart(joined)) return true;
        if (first == 0 || radices.empty()) break;
        weight *= radices[first];
        if (weight > std::numeric_limits<int32_t>::max()) break;
        joined.add(differences[first - 1], static_cast<int64_t>(weight));
      }
    }
    return false;
  }

  /// Largest weight first: when the rest cannot reach one weight, that digit of a zero sum is zero.
  static bool never_zero(const Linear& difference, const BoundsContext& context) {
    const Prover prover(context);
    std::map<int64_t, Linear, std::greater<>> by_weight;
    for (const Term& term : difference.terms) {
      if (term.coefficient == std::numeric_limits<int64_t>::min()) return false;
      const int64_t weight = std::abs(term.coefficient);
      by_weight[weight].add(term.atom, term.coefficient / weight);
    }
    Linear rest = difference;
    for (const auto& [weight, digit] : by_weight) {
      const Range total = prover.linear_range(rest);
      if (total.low > 0 || total.high < 0) return true;
      rest.add(digit, -weight);
      // The constant's share of this digit is the multiple of the weight that is nearest to it.
      const int64_t share = (rest.constant + (rest.constant < 0 ? -weight / 2 : weight / 2)) / weight;
      rest.constant -= share * weight;
      const Range below = prover.linear_range(rest);
      if (below.high >= weight || below.low <= -weight) return false;
      Linear value = digit;
      value.add_constant(share);
      const Range here = prover.linear_range(value);
      if (here.low > 0 || here.high < 0) return true;
    }
    return rest.constant != 0;
  }

  const Var& task_;
  std::vector<Digit> digits_;
  int64_t first_;
  const BoundsContext& outer_;
  std::set<const VarNode*> shared_;
};

std::string describe(const TaskAccess& access) {
  std::string text = access.buffer_name + "[";
  for (size_t i = 0; i < access.indices.size(); ++i) text += (i > 0 ? ", " : "") + print(access.indices[i]);
  return text + "]";
}

bool are_equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return equal(x, y); });
}

/// Whether the indices are the same of variables in the same ranges: a guard around one of them narrows some.
bool are_alike(const TaskAccess& a, const TaskAccess& b) {
  if (a.is_store != b.is_store || !are_equal(a.indices, b.indices)) return false;
  bool alike = true;
  for (const Expr& index : a.indices) {
    for_each_expr(index, [&](const Expr& part) {
      if (part->op != ExprOp::kVar) return;
      const Interval *own = a.context.find(part->var), *other = b.context.find(part->var);
      alike = alike && (own == nullptr) == (other == nullptr) &&
              (own == nullptr || (own->low == other->low && own->high == other->high));
    });
  }
  return alike;
}

/// Two accesses of different tasks that may be of one element, if any. `by_conditions`: whether what holds
/// where each happens is looked at, which is seldom needed, and keeps apart what is at the same indices.
std::optional<std::string> find_race(const std::vector<const TaskAccess*>& accesses, PairProver& prover,
                                     bool by_conditions) {
  std::vector<const TaskAccess*> distinct;
  for (const TaskAccess* access : accesses) {
    const auto same = [&](const TaskAccess* other) {
      return are_alike(*access, *other) &&
             (!by_conditions || are_equal(conditions_of(*access), conditions_of(*other)));
    };
    if (std::none_of(distinct.begin(), distinct.end(), same)) distinct.push_back(access);
  }
  for (const TaskAccess* a : distinct) {
    for (const TaskAccess* b : distinct) {
      if (!a->is_store && !b->is_store) continue;
      if (!prover.disjoint(*a, *b, by_conditions)) return describe(*a) + " and " + describe(*b);
    }
  }
  return std::nullopt;
}

void verify_class(const Var& task, const std::vector<const TaskAccess*>& accesses, PairProver& prover) {
  if (!find_race(accesses, prover, false)) return;
  if (const std::optional<std::string> race = find_race(accesses, prover, true))
    throw InternalError("verify: tasks of parallel loop " + task->name + " may race: " + *race);
}

}  // namespace

void verify_races(const Var& task, const Expr& min, const Expr& extent,
                  const std::vector<TaskAccess>& accesses, const BoundsContext& outer,
                  const std::vector<Var>& outer_variables) {
  const Interval first = outer.bounds(min), count = outer.bounds(extent);
  // A symbolic number of tasks is taken as the largest that an index can be.
  const int64_t most = count.high ? *count.high : int64_t{1} << 40;
  if (most <= 1) return;
  TM_CHECK(first.is_point(), "parallel loop " + task->name + " starts at a constant");
  std::set<int64_t> divisors;
  std::map<int, std::vector<const TaskAccess*>> classes;
  for (const TaskAccess& access : accesses) {
    classes[access.buffer_class].push_back(&access);
    for (const Expr& index : access.indices) collect_divisors(index, task, divisors);
  }
  PairProver prover(task, digits_of(divisors, most), *first.low, outer, outer_variables);
  for (auto& [id, members] : classes) {
    const bool stores =
        std::any_of(members.begin(), members.end(), [](const TaskAccess* a) { return a->is_store; });
    if (stores) verify_class(task, members, prover);
  }
}

}  // namespace tensormill::te
