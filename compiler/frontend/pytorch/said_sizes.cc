#include "compiler/frontend/pytorch/said_sizes.h"

#include <string>
#include <vector>

#include "compiler/te/dim_facts.h"

namespace tensormill::frontend::pytorch {

namespace {

using te::Dim;

std::optional<Dim> dim_of(const SymExpr& expr);

/// A sum, product, minimum or maximum of all of them.
std::optional<Dim> folded(const SymExpr& call, Dim (*join)(const Dim&, const Dim&)) {
  std::optional<Dim> all;
  for (const SymExpr& arg : call.args) {
    const std::optional<Dim> own = dim_of(arg);
    if (!own) return std::nullopt;
    all = all ? join(*all, *own) : *own;
  }
  return all;
}

std::optional<Dim> power(const SymExpr& call) {
  constexpr int64_t kMostFactors = 8;
  if (call.args.size() != 2 || call.args[1].kind != SymExpr::Kind::kInteger) return std::nullopt;
  const int64_t exponent = call.args[1].value;
  const std::optional<Dim> base = dim_of(call.args[0]);
  if (!base || exponent < 0 || exponent > kMostFactors) return std::nullopt;
  Dim product(1);
  for (int64_t i = 0; i < exponent; ++i) product *= *base;
  return product;
}

std::optional<Dim> quotient(const SymExpr& call, Dim (*divide)(const Dim&, const Dim&)) {
  if (call.args.size() != 2) return std::nullopt;
  const std::optional<Dim> a = dim_of(call.args[0]), b = dim_of(call.args[1]);
  if (!a || !b || *b == Dim(0)) return std::nullopt;
  return divide(*a, *b);
}

std::optional<Dim> dim_of(const SymExpr& expr) {
  if (expr.kind == SymExpr::Kind::kInteger) return Dim(expr.value);
  if (expr.kind == SymExpr::Kind::kSymbol) return Dim::symbol(expr.name);
  if (expr.kind != SymExpr::Kind::kCall) return std::nullopt;
  if (expr.name == "Add") return folded(expr, [](const Dim& a, const Dim& b) { return a + b; });
  if (expr.name == "Mul") return folded(expr, [](const Dim& a, const Dim& b) { return a * b; });
  if (expr.name == "Max") return folded(expr, [](const Dim& a, const Dim& b) { return te::max(a, b); });
  if (expr.name == "Min") return folded(expr, [](const Dim& a, const Dim& b) { return te::min(a, b); });
  if (expr.name == "FloorDiv") return quotient(expr, &te::floordiv);
  if (expr.name == "Mod") return quotient(expr, &te::floormod);
  return expr.name == "Pow" ? power(expr) : std::nullopt;
}

}  // namespace

std::optional<Dim> dim_of(const SymDim& size) {
  if (size.value) return Dim(*size.value);
  return size.expr ? dim_of(*size.expr) : std::nullopt;
}

bool lies_in_rows(const TensorMeta& meta) {
  if (meta.storage_offset.value != 0 || meta.strides.size() != meta.sizes.size()) return false;
  std::vector<Dim> sizes, strides;
  te::DimFacts facts;
  for (size_t i = 0; i < meta.sizes.size(); ++i) {
    const std::optional<Dim> size = dim_of(meta.sizes[i]), stride = dim_of(meta.strides[i]);
    if (!size || !stride) return false;
    sizes.push_back(*size);
    strides.push_back(*stride);
    for (const Dim* each : {&*size, &*stride})
      for (const std::string& symbol : each->symbols())
        if (facts.find(symbol) == nullptr) facts.declare(symbol, Dim(1));
  }
  const auto are_equal = [&](const Dim& a, const Dim& b) {
    return a == b || facts.prove_equal(facts.simplify(a), facts.simplify(b)) == te::Truth::kProven;
  };
  Dim dense(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!are_equal(sizes[i], Dim(1)) && !are_equal(strides[i], dense)) return false;
    dense *= sizes[i];
  }
  return true;
}

}  // namespace tensormill::frontend::pytorch
