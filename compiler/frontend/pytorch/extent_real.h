/// Real numbers that follow from free extents, exactly where that is known. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/ir/sym_int.h"

namespace tensormill::frontend::pytorch {

/// `over` / `under`: a float64 that is rounded once, which no rounding down or up to whole numbers shows as
/// long as `over` is below 2^53. Of a power of 2 below it is the number itself.
struct Ratio {
  ir::SymInt over;
  int64_t under = 1;  ///< 1 or more
};
/// Nothing for numbers of more than 20 digits behind the binary point, or 31 in all: products of these with
/// extents would be rounded.
std::optional<Ratio> ratio_of(double number);
/// `op`: "add", "sub", "mul" or "truediv". Nothing where float64 would round what is rounded already, of
/// divisors and of both factors that are free, and past the digits that ratio_of takes.
std::optional<Ratio> joined(std::string_view op, const Ratio& a, const Ratio& b);
/// Rounded down, up and toward zero.
ir::SymInt floor_of(const Ratio& ratio);
ir::SymInt ceil_of(const Ratio& ratio);
ir::SymInt trunc_of(const Ratio& ratio);
/// Whether it is the number itself.
bool is_exact(const Ratio& ratio);

/// A real number that follows from free extents: as a run works it out, a float64 without dims, and as it is
/// where all runs are to have the extents at which the model is looked at.
struct ExtentReal {
  ir::ValueId value = ir::kAbsent;
  std::function<double()> fixed;
  std::optional<Ratio> ratio = {};
};

}  // namespace tensormill::frontend::pytorch
