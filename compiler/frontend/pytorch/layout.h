/// Where elements of tensors lie, as formulas, and what follows of that for torch's views. Thread-safety:
/// pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/sym_int.h"
#include "compiler/te/dim_facts.h"

namespace tensormill::frontend::pytorch {

/// Extents, and as many strides: how far apart neighbours of an axis are, in elements.
struct Layout {
  std::vector<te::Dim> sizes, strides;
};
Layout row_major_layout(std::vector<te::Dim> sizes);
std::vector<te::Dim> dims_of(const ir::SymShape& shape);

// The answers hold for all numbers that the symbols may be by the facts; nothing where it is one for some of
// them and the other for others, or where neither is proven. Of a tensor without elements, to which nothing
// is written, the answer may be either.

/// Whether the elements lie row after row, none apart: torch's is_contiguous().
std::optional<bool> lies_in_rows(const Layout& layout, const te::DimFacts& facts);
/// Whether torch looks at the tensor in other sizes, of as many elements, without a copy.
std::optional<bool> has_view(const Layout& layout, const std::vector<te::Dim>& wanted,
                             const te::DimFacts& facts);

}  // namespace tensormill::frontend::pytorch
