/// Extents as functions of a package's free dims: offset + Σ scale × Π floor((mul × dim + add) / div).
/// Products of such quotients are what convolutions, pooling, slices and reshapes make of a batch, a height
/// or a length; concatenations add them up. A dim of a formula is a free dim or, behind all of them, a
/// derived extent. Thread-safety: values.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/extents/extent.h"

namespace tensormill {

/// floor((mul × dims[dim] + add) / div), div >= 1.
struct DimTerm {
  int32_t dim = 0;
  int64_t mul = 1;
  int64_t add = 0;
  int64_t div = 1;
  auto operator<=>(const DimTerm&) const = default;
};

struct DimProduct {
  int64_t scale = 1;
  std::vector<DimTerm> factors;
  auto operator<=>(const DimProduct&) const = default;
};

struct DimFormula {
  int64_t offset = 0;
  std::vector<DimProduct> products;  ///< none: a constant
  auto operator<=>(const DimFormula&) const = default;
};

/// The float32 quotient of two extents.
struct ExtentRatio {
  DimFormula up, down;
  bool operator==(const ExtentRatio&) const = default;
};

/// floor(extent × factor) within [least, most]. What resizing by a number that is no small quotient makes:
/// the product is one of float32, which may round up to an integer that the exact one is below, or stay below
/// one (ONNX, Resize); a factor of 1 is none. And what is left of an extent where a slice starts or ends at a
/// number. Or the extent × ratio, rounded, within those: an axis that is resized as another one is. Or, where
/// it is there, the formula, and nothing else.
struct DerivedExtent {
  DimFormula of;  ///< over the free dims and the derived extents before this one, as the ratio is
  float factor = 1;
  int64_t most = std::numeric_limits<int64_t>::max();
  int64_t least = std::numeric_limits<int64_t>::min();
  std::optional<ExtentRatio> ratio = std::nullopt;  ///< the factor, where extents decide about it
  bool rounds = false;                              ///< rounded_extent by the ratio
  std::optional<Extent> formula = std::nullopt;     ///< over the free dims, in their order
  bool operator==(const DerivedExtent&) const = default;
};

/// The value for `dims`, whose size covers every term. Throws Error(kMemoryBudget) past ±2^62.
int64_t evaluate(const DimTerm& term, std::span<const int64_t> dims);
int64_t evaluate(const DimFormula& formula, std::span<const int64_t> dims);
/// floor(extent × factor), the product of float32. Throws Error(kMemoryBudget) past 2^62.
int64_t scaled_extent(int64_t extent, float factor);
/// extent × (up / down), of float64, rounded to the nearest integer. Throws Error(kMemoryBudget) past 2^62.
int64_t rounded_extent(int64_t extent, int64_t up, int64_t down);
/// The formula's value for `dims`, of which it has one symbol each. Throws Error(kMemoryBudget) where it has
/// none.
int64_t evaluate(const Extent& formula, std::span<const int64_t> dims);
/// The value of an extent that is derived from `dims`.
int64_t evaluate(const DerivedExtent& extent, std::span<const int64_t> dims);
/// The free dims and, behind them, the derived extents.
std::vector<int64_t> with_derived(std::span<const int64_t> dims, std::span<const DerivedExtent> derived);

}  // namespace tensormill
