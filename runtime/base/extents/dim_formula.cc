#include "runtime/base/extents/dim_formula.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

constexpr int64_t kLimit = int64_t{1} << 62;

int64_t checked(bool overflow, int64_t value) {
  if (overflow || value > kLimit || value < -kLimit) {
    throw Error(ErrorCode::kMemoryBudget, "an extent of the bound shapes passes 2^62");
  }
  return value;
}

int64_t multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &result);
  return checked(overflow, result);
}

int64_t add(int64_t a, int64_t b) {
  int64_t result = 0;
  const bool overflow = __builtin_add_overflow(a, b, &result);
  return checked(overflow, result);
}

/// Of a number that is whole.
int64_t integer_of(double number) {
  const bool fits = std::fabs(number) <= static_cast<double>(kLimit);
  return checked(!fits, fits ? static_cast<int64_t>(number) : 0);
}

}  // namespace

int64_t evaluate(const DimTerm& term, std::span<const int64_t> dims) {
  TM_CHECK(term.div >= 1 && term.dim >= 0 && static_cast<size_t>(term.dim) < dims.size(),
           "a term over dim " + std::to_string(term.dim));
  const int64_t numerator = add(multiply(term.mul, dims[static_cast<size_t>(term.dim)]), term.add);
  const int64_t quotient = numerator / term.div;
  return numerator % term.div < 0 ? quotient - 1 : quotient;
}

int64_t evaluate(const DimFormula& formula, std::span<const int64_t> dims) {
  int64_t sum = formula.offset;
  for (const DimProduct& summand : formula.products) {
    int64_t product = summand.scale;
    for (const DimTerm& term : summand.factors) product = multiply(product, evaluate(term, dims));
    sum = add(sum, product);
  }
  return sum;
}

int64_t scaled_extent(int64_t extent, float factor) {
  return integer_of(std::floor(static_cast<float>(extent) * factor));
}

int64_t rounded_extent(int64_t extent, int64_t up, int64_t down) {
  return integer_of(
      std::round(static_cast<double>(extent) * (static_cast<double>(up) / static_cast<double>(down))));
}

int64_t evaluate(const Extent& formula, std::span<const int64_t> dims) {
  const std::optional<int64_t> value = formula.evaluate(dims);
  if (!value)
    throw Error(ErrorCode::kMemoryBudget, "an extent, " + formula.to_string() + ", has no value there");
  return *value;
}

int64_t evaluate(const DerivedExtent& extent, std::span<const int64_t> dims) {
  if (extent.formula) return evaluate(*extent.formula, dims);
  int64_t value = evaluate(extent.of, dims);
  float factor = extent.factor;
  if (extent.ratio) {
    // Without elements there is nothing to divide by, and nothing to multiply.
    const int64_t up = evaluate(extent.ratio->up, dims);
    const int64_t down = std::max<int64_t>(evaluate(extent.ratio->down, dims), 1);
    factor = extent.rounds ? 1 : static_cast<float>(up) / static_cast<float>(down);
    if (extent.rounds) value = rounded_extent(value, up, down);
  }
  if (factor != 1) value = scaled_extent(value, factor);
  return std::max(std::min(value, extent.most), extent.least);
}

std::vector<int64_t> with_derived(std::span<const int64_t> dims, std::span<const DerivedExtent> derived) {
  std::vector<int64_t> all(dims.begin(), dims.end());
  for (const DerivedExtent& extent : derived) all.push_back(evaluate(extent, all));
  return all;
}

}  // namespace tensormill
