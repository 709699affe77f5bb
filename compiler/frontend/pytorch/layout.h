/// Where elements of tensors lie, as formulas, and what follows of that for torch's views. Thread-safety:
/// pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/sym_int.h"
#include "compiler/te/dim_facts.h"

namespace tensormill::frontend::pytorch {

/// Extents, and as many strides: how far apart neighbours of an axis are, in elements. Of an axis of one
/// element, which has no neighbours, the stride tells nothing.
struct Layout {
  std::vector<te::Dim> sizes, strides;
  bool is_exact = true;  ///< the strides are torch's, also those of axes of one element
};
Layout row_major_layout(std::vector<te::Dim> sizes);
/// The same tensor with its axes in that order.
Layout turned(const Layout& layout, const std::vector<int64_t>& axes);
std::vector<te::Dim> dims_of(const ir::SymShape& shape);

/// Torch's names of orders of axes (torch.memory_format). kPreserve: that of what is copied.
enum class MemoryFormat : uint8_t { kPreserve, kRows, kChannelsLast, kChannelsLast3d };
/// The axes in that order, the slowest first: in it the elements lie row after row. Nothing where there is no
/// such order of so many axes.
std::optional<std::vector<int64_t>> axes_in(MemoryFormat format, size_t rank);
/// What torch makes in the format. `axes`: as axes_in gives them.
Layout dense_layout(const std::vector<te::Dim>& sizes, const std::vector<int64_t>& axes);

// The answers hold for all numbers that the symbols may be by the facts; nothing where it is one for some of
// them and the other for others, or where neither is proven. Of a tensor without elements, to which nothing
// is written, the answer may be either.

/// Whether the elements lie row after row, none apart: torch's is_contiguous().
std::optional<bool> lies_in_rows(const Layout& layout, const te::DimFacts& facts);
/// Whether torch looks at the tensor in other sizes, of as many elements, without a copy.
std::optional<bool> has_view(const Layout& layout, const std::vector<te::Dim>& wanted,
                             const te::DimFacts& facts);
/// Where the elements of that view lie; nothing where it is not known that there is one.
std::optional<Layout> viewed(const Layout& layout, const std::vector<te::Dim>& wanted,
                             const te::DimFacts& facts);
/// Where the elements lie of that tensor in `wanted` sizes, where axes of one element and new ones in front
/// have as many as that says (torch's expand()); nothing where others may differ.
std::optional<Layout> expanded(const Layout& layout, const std::vector<te::Dim>& wanted);
/// An order of the axes, the slowest first, in which the elements lie row after row, where one is proven.
std::optional<std::vector<int64_t>> dense_axes(const Layout& layout, const te::DimFacts& facts);
/// Torch's suggest_memory_format() of strides that have to match it: kRows of all that are no other's.
std::optional<MemoryFormat> suggested_format(const Layout& layout, const te::DimFacts& facts);

}  // namespace tensormill::frontend::pytorch
