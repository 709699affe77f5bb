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

void declare(te::DimFacts& facts, const std::vector<Dim>& dims, int64_t low) {
  for (const Dim& dim : dims)
    for (const std::string& symbol : dim.symbols())
      if (facts.find(symbol) == nullptr) facts.declare(symbol, Dim(low));
}

/// Comparisons that the facts decide.
class Decided {
public:
  explicit Decided(const te::DimFacts& facts) : facts_(facts) {}
  bool is_sure() const { return is_sure_; }
  bool equal(const Dim& a, const Dim& b) {
    return a == b || holds(facts_.prove_equal(facts_.simplify(a), facts_.simplify(b)));
  }
  bool less(const Dim& a, const Dim& b) {
    return holds(facts_.prove_le(facts_.simplify(a + 1), facts_.simplify(b)));
  }

private:
  bool holds(te::Truth truth) {
    is_sure_ = is_sure_ && truth != te::Truth::kUnknown;
    return truth == te::Truth::kProven;
  }
  const te::DimFacts& facts_;
  bool is_sure_ = true;
};

/// at::detail::computeStride, as has_view of numbers. Nothing is done behind a comparison that is not
/// decided.
bool divides(Decided& decided, const std::vector<Dim>& sizes, const std::vector<Dim>& strides,
             const std::vector<Dim>& wanted) {
  if (strides.size() != sizes.size()) return false;
  if (sizes.empty()) return true;
  for (const Dim& size : sizes)
    if (decided.equal(size, Dim(0))) return true;
  size_t left = wanted.size();
  Dim elements(1), view_elements(1), base = strides.back();
  for (size_t d = sizes.size(); decided.is_sure() && d-- > 0;) {
    elements *= sizes[d];
    const bool ends_run =
        d == 0 || (!decided.equal(sizes[d - 1], Dim(1)) && !decided.equal(strides[d - 1], elements * base));
    if (!ends_run) continue;
    while (decided.is_sure() && left > 0 &&
           (decided.less(view_elements, elements) || decided.equal(wanted[left - 1], Dim(1))))
      view_elements *= wanted[--left];
    if (!decided.equal(view_elements, elements)) return false;
    if (d > 0) base = strides[d - 1];
    elements = view_elements = Dim(1);
  }
  return left == 0;
}

std::optional<bool> has_view_of(const TensorMeta& meta, const std::optional<std::vector<Dim>>& wanted) {
  const std::optional<std::vector<Dim>> sizes = dims_of(meta.sizes), strides = dims_of(meta.strides);
  if (!sizes || !strides || !wanted) return std::nullopt;
  te::DimFacts facts;
  for (const std::vector<Dim>* dims : {&*sizes, &*strides, &*wanted}) declare(facts, *dims, 2);
  Decided decided(facts);
  const bool answer = divides(decided, *sizes, *strides, *wanted);
  return decided.is_sure() ? std::optional(answer) : std::nullopt;
}

}  // namespace

std::optional<bool> has_view(const TensorMeta& meta, const std::vector<SymDim>& wanted) {
  return has_view_of(meta, dims_of(wanted));
}

std::optional<bool> has_flat_view(const TensorMeta& meta) {
  const std::optional<std::vector<Dim>> sizes = dims_of(meta.sizes);
  if (!sizes) return std::nullopt;
  Dim elements(1);
  for (const Dim& size : *sizes) elements *= size;
  return has_view_of(meta, std::vector<Dim>{elements});
}

bool lies_in_rows(const TensorMeta& meta) {
  const std::optional<std::vector<Dim>> known = dims_of(meta.sizes), known_strides = dims_of(meta.strides);
  if (meta.storage_offset.value != 0 || !known || !known_strides || known->size() != known_strides->size())
    return false;
  const std::vector<Dim>&sizes = *known, &strides = *known_strides;
  te::DimFacts facts;
  for (const std::vector<Dim>* dims : {&sizes, &strides}) declare(facts, *dims, 1);
  Decided decided(facts);
  Dim dense(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (!decided.equal(strides[i], dense) && !decided.equal(sizes[i], Dim(1))) return false;
    dense *= sizes[i];
  }
  return true;
}

}  // namespace tensormill::frontend::pytorch
