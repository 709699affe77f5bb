// Extents of nests as arguments of kernels.
#include <algorithm>
#include <set>

#include "compiler/plan/generic_nest.h"
#include "compiler/te/linear.h"
#include "runtime/base/error.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::plan {

namespace {

/// Past what a package holds, of either sign: such a formula is none (package::fits_package).
constexpr int64_t kTooLarge = int64_t{1} << 50;

int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &result);
  return overflows || result > kTooLarge || result < -kTooLarge ? kTooLarge : result;
}

/// a + sign × b
DimFormula sum_of(DimFormula a, const DimFormula& b, int64_t sign) {
  a.offset += sign * b.offset;
  for (const DimProduct& product : b.products) {
    const auto same = std::find_if(a.products.begin(), a.products.end(),
                                   [&](const DimProduct& other) { return other.factors == product.factors; });
    if (same != a.products.end()) {
      same->scale += sign * product.scale;
    } else {
      a.products.push_back({sign * product.scale, product.factors});
    }
  }
  std::erase_if(a.products, [](const DimProduct& product) { return product.scale == 0; });
  return a;
}

DimFormula product_of(const DimFormula& a, const DimFormula& b) {
  DimFormula result{times(a.offset, b.offset), {}};
  const auto add = [&](int64_t scale, std::vector<DimTerm> factors) {
    if (scale != 0) result = sum_of(std::move(result), {0, {{scale, std::move(factors)}}}, 1);
  };
  for (const DimProduct& x : a.products) {
    add(times(x.scale, b.offset), x.factors);
    for (const DimProduct& y : b.products) {
      std::vector<DimTerm> factors = x.factors;
      factors.insert(factors.end(), y.factors.begin(), y.factors.end());
      add(times(x.scale, y.scale), std::move(factors));
    }
  }
  for (const DimProduct& y : b.products) add(times(a.offset, y.scale), y.factors);
  return result;
}

}  // namespace

te::Expr TermVars::argument(const DimFormula& formula) {
  const auto found = std::find(formulas_.begin(), formulas_.end(), formula);
  const auto at = static_cast<size_t>(found - formulas_.begin());
  if (found == formulas_.end()) {
    formulas_.push_back(formula);
    vars_.push_back(te::make_var("n" + std::to_string(at)));
  }
  return te::Expr(vars_[at]);
}

bool TermVars::is_positive(size_t var) const {
  const std::vector<DimProduct>& products = formulas_[var].products;
  if (formulas_[var].offset != 0 || products.size() != 1 || products[0].factors.size() != 1) return false;
  const DimTerm& term = products[0].factors[0];
  return products[0].scale == 1 && term.mul == 1 && term.add == 0 && term.div == 1 &&
         static_cast<size_t>(term.dim) < free_dims_;
}

te::Expr TermVars::whole(const DimFormula& formula) {
  return formula.products.empty() ? te::Expr(formula.offset) : argument(formula);
}

te::Expr TermVars::expr(const DimFormula& formula) {
  if (formula.products.empty()) return te::Expr(formula.offset);
  if (formula.products.size() > 1 || formula.products[0].factors.size() > 1) return argument(formula);
  // scale × (mul × dim + add) + offset is written out, so that bounds of windows can be shown.
  DimProduct product = formula.products[0];
  DimTerm& term = product.factors[0];
  int64_t scale = product.scale, offset = formula.offset;
  if (term.div == 1) {
    offset += scale * term.add;
    scale *= term.mul;
    term = {term.dim, 1, 0, 1};
  }
  product.scale = 1;
  te::Expr value = argument({0, {product}});
  if (scale != 1) value = value * te::Expr(scale);
  return offset != 0 ? value + te::Expr(offset) : value;
}

DimFormula TermVars::formula_of(const te::Expr& expr) const {
  const te::Linear sum = te::to_linear(expr);
  DimFormula result{sum.constant, {}};
  for (const te::Term& term : sum.terms) {
    const auto at = std::find(vars_.begin(), vars_.end(), term.atom->var);
    TM_CHECK(at != vars_.end(), "an extent of other variables than those of formulas");
    const DimFormula& formula = formulas_[static_cast<size_t>(at - vars_.begin())];
    result = sum_of(std::move(result), product_of({term.coefficient, {}}, formula), 1);
  }
  return result;
}

std::optional<te::Expr> TermVars::product(const te::Expr& a, const te::Expr& b) {
  const DimFormula formula = product_of(formula_of(a), formula_of(b));
  if (!package::fits_package(formula)) return std::nullopt;
  return expr(formula);
}

/// Whether data say which element of an empty input is read: none of them is there.
bool checks_index(const Nest& nest, const EmptyInputs& empty) {
  bool found = false;
  const auto look = [&](const te::Expr& expr) {
    if (expr->op != te::ExprOp::kRead) return;
    const auto input = std::find(nest.inputs.begin(), nest.inputs.end(), expr->tensor);
    if (!empty[static_cast<size_t>(input - nest.inputs.begin())]) return;
    for (const te::Expr& arg : expr->args) {
      te::for_each_expr(arg,
                        [&](const te::Expr& part) { found = found || part->op == te::ExprOp::kCheckIndex; });
    }
  };
  for (const te::Expr& body : nest.tensor->body) te::for_each_expr(body, look);
  if (!nest.tensor->reduction) return found;
  for (const te::Expr& source : nest.tensor->reduction->source) te::for_each_expr(source, look);
  return found;
}

namespace {

/// Whether a free dim is an argument, and 0 of it takes the elements of no operand.
bool has_dim_of_no_shape(const std::vector<std::vector<DimFormula>>& shapes, const TermVars& vars) {
  const auto vanishes = [](const DimFormula& formula, int32_t dim) {
    const auto has_dim = [&](const DimProduct& product) {
      return std::any_of(product.factors.begin(), product.factors.end(),
                         [&](const DimTerm& term) { return term.dim == dim && term.add == 0; });
    };
    return formula.offset == 0 && !formula.products.empty() &&
           std::all_of(formula.products.begin(), formula.products.end(), has_dim);
  };
  for (size_t i = 0; i < vars.formulas().size(); ++i) {
    if (!vars.is_positive(i)) continue;
    const int32_t dim = vars.formulas()[i].products[0].factors[0].dim;
    const bool is_extent = std::any_of(shapes.begin(), shapes.end(), [&](const auto& shape) {
      return std::any_of(shape.begin(), shape.end(),
                         [&](const DimFormula& formula) { return vanishes(formula, dim); });
    });
    if (!is_extent) return true;
  }
  return false;
}

}  // namespace

std::vector<EmptyCase> empty_cases(const Nest& nest, const std::vector<std::vector<DimFormula>>& shapes,
                                   const TermVars& vars, const std::vector<std::vector<int64_t>>& points) {
  std::set<EmptyInputs> cases;
  EmptyInputs all(nest.inputs.size(), false);
  for (const std::vector<int64_t>& dims : points) {
    const auto least_of = [&](const std::vector<DimFormula>& shape) {
      int64_t least = 1;
      for (const DimFormula& formula : shape) {
        if (formula != DimFormula{}) least = std::min(least, evaluate(formula, dims));
      }
      return least;
    };
    if (least_of(shapes[0]) < 1) continue;
    bool any = false, negative = false;
    EmptyInputs empty;
    for (size_t i = 1; i < shapes.size(); ++i) {
      const int64_t least = least_of(shapes[i]);
      negative = negative || least < 0;
      empty.push_back(least == 0);
      any = any || least == 0;
    }
    if (negative) continue;
    for (size_t i = 0; i < empty.size(); ++i) all[i] = all[i] || empty[i];
    for (size_t i = 0; i < vars.formulas().size(); ++i)
      any = any || (vars.is_positive(i) && evaluate(vars.formulas()[i], dims) == 0);
    if (any) cases.insert(std::move(empty));
  }
  // By how much something is moved, say, may be 0 by itself.
  const EmptyInputs none(nest.inputs.size(), false);
  if (has_dim_of_no_shape(shapes, vars)) cases.insert(none);
  std::vector<EmptyCase> result;
  const bool are_several = std::count(all.begin(), all.end(), true) > 1;
  for (const EmptyInputs& each : cases) {
    const bool is_own = each == none || !are_several;
    if (is_own && !checks_index(nest, each)) result.push_back({each});
  }
  if (are_several) result.push_back({all, true});
  return result;
}

}  // namespace tensormill::plan
