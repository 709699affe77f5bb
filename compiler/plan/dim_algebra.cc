#include "compiler/plan/dim_algebra.h"

#include <algorithm>

namespace tensormill::plan {

namespace {

/// Past what a package holds, of either sign: such a formula is none (package::fits_package).
constexpr int64_t kTooLarge = int64_t{1} << 50;

int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &result);
  return overflows || result > kTooLarge || result < -kTooLarge ? kTooLarge : result;
}

}  // namespace

bool varies(const std::vector<int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [&](int64_t value) { return value != values[0]; });
}

DimTerm identity(size_t dim) { return {static_cast<int32_t>(dim), 1, 0, 1}; }

DimFormula single(int64_t scale, const DimTerm& term) { return {0, {{scale, {term}}}}; }

void take_inside(DimFormula& formula) {
  DimProduct& product = formula.products[0];
  product.factors[0].add += formula.offset / product.scale * product.factors[0].div;
  formula.offset = 0;
}

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

}  // namespace tensormill::plan
