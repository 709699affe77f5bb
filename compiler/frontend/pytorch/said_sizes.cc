#include "compiler/frontend/pytorch/said_sizes.h"

#include <string>

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

namespace {

std::optional<std::vector<Dim>> dims_of(const std::vector<SymDim>& sizes) {
  std::vector<Dim> dims;
  for (const SymDim& size : sizes) {
    const std::optional<Dim> own = dim_of(size);
    if (!own) return std::nullopt;
    dims.push_back(*own);
  }
  return dims;
}

std::optional<Layout> layout_of(const TensorMeta& meta) {
  std::optional<std::vector<Dim>> sizes = dims_of(meta.sizes), strides = dims_of(meta.strides);
  if (!sizes || !strides || sizes->size() != strides->size()) return std::nullopt;
  return Layout{std::move(*sizes), std::move(*strides)};
}

/// That all symbols are `low` or more.
te::DimFacts facts_of(const std::vector<const std::vector<Dim>*>& all, int64_t low) {
  te::DimFacts facts;
  for (const std::vector<Dim>* dims : all)
    for (const Dim& dim : *dims)
      for (const std::string& symbol : dim.symbols())
        if (facts.find(symbol) == nullptr) facts.declare(symbol, Dim(low));
  return facts;
}

constexpr int64_t kLeastOfAnExport = 2;

}  // namespace

std::optional<bool> has_view(const TensorMeta& meta, const std::vector<SymDim>& wanted) {
  const std::optional<Layout> layout = layout_of(meta);
  const std::optional<std::vector<Dim>> sizes = dims_of(wanted);
  if (!layout || !sizes) return std::nullopt;
  return has_view(*layout, *sizes, facts_of({&layout->sizes, &layout->strides, &*sizes}, kLeastOfAnExport));
}

std::optional<bool> lies_in(const TensorMeta& meta, const std::vector<int64_t>& axes) {
  const std::optional<Layout> layout = layout_of(meta);
  if (!layout || layout->sizes.size() != axes.size()) return std::nullopt;
  return lies_in_rows(turned(*layout, axes), facts_of({&layout->sizes, &layout->strides}, kLeastOfAnExport));
}

std::optional<MemoryFormat> suggested_format(const TensorMeta& meta) {
  const std::optional<Layout> layout = layout_of(meta);
  if (!layout) return std::nullopt;
  return suggested_format(*layout, facts_of({&layout->sizes, &layout->strides}, kLeastOfAnExport));
}

std::optional<std::vector<int64_t>> axes_of_whole(const TensorMeta& meta) {
  const std::optional<Layout> layout = layout_of(meta);
  if (!layout || meta.storage_offset.value != 0) return std::nullopt;
  return dense_axes(*layout, facts_of({&layout->sizes, &layout->strides}, 1));
}

}  // namespace tensormill::frontend::pytorch
