#include "compiler/frontend/pytorch/extent_real.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace tensormill::frontend::pytorch {

namespace {

constexpr int64_t kMostUnder = int64_t{1} << 20, kMostWeight = int64_t{1} << 31;
/// Parts of a formula.
constexpr size_t kMostTerms = 4096;

/// How often extents, or 1, are in a number at most.
double weight_of(const ir::SymInt& number) {
  const te::Dim dim = number.expr();
  double weight = std::fabs(static_cast<double>(dim.constant()));
  if (dim.is_constant()) return weight;
  for (const te::DimTerm& term : dim.terms()) weight += std::fabs(static_cast<double>(term.coefficient));
  return weight;
}

bool is_small(const Ratio& ratio) {
  return ratio.under <= kMostUnder && ratio.over.expr().size() <= kMostTerms &&
         weight_of(ratio.over) < static_cast<double>(kMostWeight);
}

std::optional<Ratio> quotient(const Ratio& a, const Ratio& b) {
  if (!b.over.is_constant() || b.over.hint() == 0) return std::nullopt;
  const int64_t by = b.over.hint();
  return Ratio{a.over * (by > 0 ? b.under : -b.under), a.under * std::abs(by)};
}

std::optional<Ratio> of_two(std::string_view op, const Ratio& a, const Ratio& b) {
  if (op == "truediv") return quotient(a, b);
  if (op == "mul") {
    if (!a.over.is_constant() && !b.over.is_constant()) return std::nullopt;
    return Ratio{a.over * b.over, a.under * b.under};
  }
  if (op != "add" && op != "sub") return std::nullopt;
  const int64_t under = std::max(a.under, b.under);  // of two powers of 2
  const ir::SymInt left = a.over * (under / a.under), right = b.over * (under / b.under);
  return Ratio{op == "add" ? left + right : left - right, under};
}

}  // namespace

bool is_exact(const Ratio& ratio) { return std::has_single_bit(static_cast<uint64_t>(ratio.under)); }

std::optional<Ratio> ratio_of(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  for (int64_t under = 1; under <= kMostUnder; under *= 2) {
    const double over = number * static_cast<double>(under);
    if (!(std::fabs(over) < static_cast<double>(kMostWeight))) return std::nullopt;
    if (over == std::trunc(over)) return Ratio{static_cast<int64_t>(over), under};
  }
  return std::nullopt;
}

std::optional<Ratio> joined(std::string_view op, const Ratio& a, const Ratio& b) {
  if (!is_exact(a) || !is_exact(b) || !is_small(a) || !is_small(b)) return std::nullopt;
  std::optional<Ratio> made = of_two(op, a, b);
  return made && is_small(*made) ? made : std::nullopt;
}

ir::SymInt floor_of(const Ratio& ratio) { return floordiv(ratio.over, ratio.under); }
ir::SymInt ceil_of(const Ratio& ratio) { return floordiv(ratio.over + (ratio.under - 1), ratio.under); }
ir::SymInt trunc_of(const Ratio& ratio) {
  const ir::SymInt down = floor_of(ratio);
  if (is_proven(ir::Relation::kLessEqual, 0, ratio.over)) return down;
  return max(down, 0) + min(ceil_of(ratio), 0);
}

}  // namespace tensormill::frontend::pytorch
