#include "compiler/plan/generic_guard.h"

#include <algorithm>

namespace tensormill::plan {

using te::Expr;
using te::Stmt;

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
    if (has_no_elements(i)) continue;
    for (const Expr& part : nest_.inputs[i]->shape) add(part);
  }
  for (const Expr& part : nest_.tensor->shape) add(part);
  for (const Expr& part : nest_.joined) add(part);
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
  for (size_t i = 0; i < nest_.inputs.size(); ++i) {
    if (is_empty(i)) add(nest_.inputs[i]->shape);
  }
  if (!result.empty()) return result;
  std::vector<Expr> dims;
  for (size_t i = 0; i < vars_.vars().size(); ++i) {
    if (vars_.is_positive(i)) dims.emplace_back(vars_.vars()[i]);
  }
  add(dims);
  return result;
}

Stmt ExtentGuard::around(Stmt body) const {
  std::vector<Expr> all = conditions();
  const std::vector<Expr> none = empty_ == nullptr ? std::vector<Expr>() : absences();
  all.insert(all.end(), none.begin(), none.end());
  for (size_t i = all.size(); i-- > 0;) body = te::make_if(all[i], body);
  return body;
}

}  // namespace tensormill::plan
