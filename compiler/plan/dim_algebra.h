/// Sums and products of formulas over free dims. Thread-safety: pure functions.
#pragma once

#include "runtime/base/dim_formula.h"

namespace tensormill::plan {

/// Whether not all are equal.
bool varies(const std::vector<int64_t>& values);
/// The dim itself.
DimTerm identity(size_t dim);
/// scale × term
DimFormula single(int64_t scale, const DimTerm& term);
/// Of one quotient, the offset in it: offset + scale × floor(x / div) = scale × floor((x + offset / scale ×
/// div) / div), where the scale divides the offset.
void take_inside(DimFormula& formula);
/// a + sign × b
DimFormula sum_of(DimFormula a, const DimFormula& b, int64_t sign);
DimFormula product_of(const DimFormula& a, const DimFormula& b);

}  // namespace tensormill::plan
