#include "compiler/plan/generic_guard.h"

#include <algorithm>
#include <optional>

#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"

namespace tensormill::plan {

using schedule::both;
using te::Expr;
using te::ExprOp;
using te::Stmt;

namespace {

/// The reads that are evaluated wherever `expr` is.
void find_certain_reads(const Expr& expr, std::vector<Expr>& reads) {
  if (expr->op == ExprOp::kRead) reads.push_back(expr);
  const size_t count = expr->op == ExprOp::kSelect ? 1 : expr->args.size();
  for (size_t i = 0; i < count; ++i) find_certain_reads(expr->args[i], reads);
}

/// Of a sum of axes with positive factors, and of extents.
std::optional<Expr> largest(const Expr& index, const te::TensorNode& tensor, const TermVars& vars) {
  te::Linear sum = te::to_linear(index);
  if (sum.overflow) return std::nullopt;
  const auto end_of = [&](const std::vector<te::Axis>& axes) {
    for (const te::Axis& axis : axes) {
      const int64_t factor = sum.coefficient_of(Expr(axis.var));
      if (factor < 0) return false;
      sum.add(Expr(axis.var), -factor);
      sum.add(te::to_linear(axis.extent - Expr(1)), factor);
    }
    return true;
  };
  if (!end_of(tensor.axes) || !end_of(tensor.reduction->axes) || sum.overflow) return std::nullopt;
  const auto is_extent = [&](const te::Term& term) {
    return std::any_of(vars.vars().begin(), vars.vars().end(),
                       [&](const te::Var& var) { return te::equal(term.atom, Expr(var)); });
  };
  if (!std::all_of(sum.terms.begin(), sum.terms.end(), is_extent)) return std::nullopt;
  return te::from_linear(sum);
}

}  // namespace

/// Nor is there an element in any other case.
bool ExtentGuard::is_always_empty(size_t input) const {
  const std::vector<Expr>& shape = nest_.inputs[input]->shape;
  return std::any_of(shape.begin(), shape.end(), [](const Expr& extent) {
    const int64_t* number = te::as_int(extent);
    return number != nullptr && *number == 0;
  });
}

std::vector<Expr> ExtentGuard::conditions() const {
  std::vector<Expr> result;
  const auto add = [&](const Expr& extent) {
    if (te::as_int(extent) != nullptr) return;
    for (const Expr& known : result) {
      if (te::equal(known->args[0], extent)) return;
    }
    result.push_back(extent >= Expr(1));
  };
  for (size_t i = 0; i < vars_.vars().size() && empty_ == nullptr; ++i) {
    if (vars_.is_positive(i)) add(Expr(vars_.vars()[i]));
  }
  for (size_t i = 0; i < nest_.inputs.size(); ++i) {
    if (is_empty(i) || is_always_empty(i)) continue;
    for (const Expr& part : nest_.inputs[i]->shape) add(part);
  }
  for (const Expr& part : nest_.tensor->shape) add(part);
  // Of axes that an empty input is summed along one may be 0.
  for (size_t i = 0; i < nest_.joined.size() && empty_ == nullptr; ++i) add(nest_.joined[i]);
  return result;
}

/// What tells this case from the others: an extent of each empty input is 0, or a free dim is.
std::vector<Expr> ExtentGuard::absences() const {
  std::vector<Expr> result;
  const auto add = [&](const std::vector<Expr>& extents) {
    Expr least = extents.at(0);
    for (const Expr& extent : extents) least = te::min(least, extent);
    result.push_back(least < Expr(1));
  };
  std::vector<Expr> of_any;
  for (size_t i = 0; i < nest_.inputs.size(); ++i) {
    if (!is_empty(i)) continue;
    const std::vector<Expr>& extents = nest_.inputs[i]->shape;
    if (!empty_->is_any) add(extents);
    of_any.insert(of_any.end(), extents.begin(), extents.end());
  }
  if (empty_->is_any) add(of_any);
  if (!result.empty()) return result;
  std::vector<Expr> dims;
  for (size_t i = 0; i < vars_.vars().size(); ++i) {
    if (vars_.is_positive(i)) dims.emplace_back(vars_.vars()[i]);
  }
  add(dims);
  return result;
}

Expr ExtentGuard::presence(size_t input) const {
  if (is_always_empty(input)) return te::bool_imm(false);
  if (!is_empty(input)) return {};
  if (!empty_->is_any) return te::bool_imm(false);
  Expr all;
  for (const Expr& extent : nest_.inputs[input]->shape) {
    if (te::as_int(extent) != nullptr) continue;
    all = both(all, extent >= Expr(1));
  }
  return all;
}

Stmt ExtentGuard::around(Stmt body) const {
  std::vector<Expr> all = conditions();
  const std::vector<Expr> none = empty_ == nullptr ? std::vector<Expr>() : absences();
  all.insert(all.end(), none.begin(), none.end());
  for (size_t i = all.size(); i-- > 0;) body = te::make_if(all[i], body);
  return body;
}

std::vector<Expr> assume_reads_within(const te::TensorNode& tensor, const TermVars& vars,
                                      te::BoundsContext& context) {
  std::vector<Expr> conditions, reads;
  if (!tensor.reduction) return conditions;
  for (const Expr& source : tensor.reduction->source) find_certain_reads(source, reads);
  for (const Expr& read : reads) {
    for (size_t d = 0; d < read->args.size(); ++d) {
      const Expr &index = read->args[d], &bound = read->tensor->shape[d];
      if (context.proves(index < bound)) continue;
      const std::optional<Expr> last = largest(index, tensor, vars);
      if (!last || te::as_int(*last - bound) != nullptr) continue;
      const Expr condition = *last < bound;
      te::BoundsContext assumed = context;
      assumed.assume(condition);
      if (!assumed.proves(index < bound)) continue;
      context = std::move(assumed);
      conditions.push_back(condition);
    }
  }
  return conditions;
}

}  // namespace tensormill::plan
