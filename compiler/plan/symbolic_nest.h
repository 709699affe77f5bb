/// Nests whose extents are expressions over the symbols of a graph, as kernels that take their extents as
/// arguments. Thread-safety: as the DimTable's.
#pragma once

#include <map>
#include <vector>

#include "compiler/plan/dim_table.h"
#include "compiler/plan/generic_nest.h"

namespace tensormill::plan {

/// What the variables of a graph's symbols stand for.
using SymbolVars = std::map<te::Var, te::Dim>;

/// The extents of a shape. Throws Error(kNotSupported) for one that is no expression over symbols.
std::vector<te::Dim> dims_of(const std::vector<te::Expr>& shape, const SymbolVars& symbols);

/// The nest with `vars` in the place of all that is computed from symbols alone.
Nest with_arguments(const Nest& nest, const SymbolVars& symbols, DimTable& table, TermVars& vars);

}  // namespace tensormill::plan
