// Extents of nests: as arguments of kernels, and in the samples that say them.
#include <algorithm>

#include "compiler/plan/dim_algebra.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/te/linear.h"
#include "runtime/base/error.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::plan {

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

std::vector<bool> have_form(const std::vector<const Nest*>& samples) {
  const auto has_elements = [](const Nest* sample) {
    return num_elements(sample->tensor->constant_shape()) != 0;
  };
  const bool reduces = std::any_of(samples.begin(), samples.end(), [&](const Nest* sample) {
    return sample->tensor->reduction && has_elements(sample);
  });
  std::vector<bool> result;
  for (const Nest* sample : samples) {
    const bool is_of_nothing = reduces && sample->sources.empty();
    result.push_back(has_elements(sample) && !is_of_nothing);
  }
  if (std::find(result.begin(), result.end(), true) == result.end()) result[0] = true;
  return result;
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

const Nest& first_with_form(const std::vector<const Nest*>& samples) {
  const std::vector<bool> has_form = have_form(samples);
  return *samples[static_cast<size_t>(std::find(has_form.begin(), has_form.end(), true) - has_form.begin())];
}

std::optional<std::vector<DimFormula>> fit_shape(const std::vector<Shape>& shapes,
                                                 const std::vector<bool>& counts, DimFitter& fitter) {
  const Shape& first =
      shapes[static_cast<size_t>(std::find(counts.begin(), counts.end(), true) - counts.begin())];
  std::vector<DimFormula> formulas;
  for (size_t d = 0; d < first.size(); ++d) {
    std::vector<int64_t> values;
    bool are_all = true;
    for (const Shape& shape : shapes) {
      are_all = are_all && shape.size() == first.size();
      values.push_back(shape.size() == first.size() ? shape[d] : 0);
    }
    std::optional<DimFormula> formula = are_all ? fitter.fit(values) : std::nullopt;
    if (!formula) formula = fitter.fit_some(values, counts);
    if (!formula) return std::nullopt;
    formulas.push_back(*std::move(formula));
  }
  return formulas;
}

}  // namespace tensormill::plan
