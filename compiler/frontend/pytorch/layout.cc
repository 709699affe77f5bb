#include "compiler/frontend/pytorch/layout.h"

#include <algorithm>

namespace tensormill::frontend::pytorch {

namespace {

using te::Dim;
using te::DimFacts;
using te::Truth;

bool has_none(const std::vector<Dim>& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const Dim& size) { return size == Dim(0); });
}

/// The facts, and that there are elements.
DimFacts with_elements(DimFacts facts, const std::vector<Dim>& sizes) {
  for (const Dim& size : sizes)
    if (!size.is_constant()) facts.assume_le(1, size);
  return facts;
}

Truth are_equal(const DimFacts& facts, const Dim& a, const Dim& b) {
  return a == b ? Truth::kProven : facts.prove_equal(facts.simplify(a), facts.simplify(b));
}

/// Whether neighbours of an axis are not where those of rows are. How far apart they are tells nothing of an
/// axis of one element.
Truth lies_apart(const DimFacts& facts, const Dim& size, const Dim& stride, const Dim& dense) {
  const Truth is_dense = are_equal(facts, stride, dense);
  if (is_dense == Truth::kProven) return Truth::kRefuted;
  const Truth is_one = are_equal(facts, size, 1);
  if (is_one == Truth::kProven) return Truth::kRefuted;
  return is_dense == Truth::kRefuted && is_one == Truth::kRefuted ? Truth::kProven : Truth::kUnknown;
}

/// Strides of axes from `first` on to the one before `behind`, whose elements lie row after row, `base`
/// apart.
void set_strides(Layout& layout, size_t first, size_t behind, const Dim& base) {
  Dim stride = base;
  for (size_t i = behind; i-- > first;) {
    layout.strides[i] = stride;
    stride *= layout.sizes[i];
  }
}

/// Whether the last of the `left` first wanted extents have so many elements together: these are taken then.
Truth take(const DimFacts& facts, const std::vector<Dim>& wanted, size_t& left, const Dim& elements) {
  bool is_sure = true;
  Dim product(1);
  for (size_t first = left;; product *= wanted[--first]) {
    const Truth fits = are_equal(facts, product, elements);
    if (fits == Truth::kProven) {
      left = first;
      return fits;
    }
    is_sure = is_sure && fits == Truth::kRefuted;
    if (first == 0) return is_sure ? Truth::kRefuted : Truth::kUnknown;
  }
}

/// Whether torch has a view in other sizes, and where its elements lie.
struct FoundView {
  std::optional<bool> is_there;
  Layout layout;
};

// at::detail::computeStride: whether each run of axes that lie densely divides into wanted ones. A run may be
// taken for two: where both divide, it does.
FoundView find_view(const Layout& layout, const std::vector<Dim>& wanted, const DimFacts& facts) {
  const std::vector<Dim>&sizes = layout.sizes, &strides = layout.strides;
  FoundView found{true, row_major_layout(wanted)};
  found.layout.is_exact = layout.is_exact;
  if (has_none(sizes) || strides == row_major_layout(sizes).strides) return found;
  found.layout.is_exact = false;
  const DimFacts known = with_elements(with_elements(facts, sizes), wanted);
  size_t left = wanted.size();
  bool is_sure = true;  // whatever the symbols are, runs end where they did so far
  Dim elements(1), base = strides.back();
  for (size_t d = sizes.size(); d-- > 1;) {
    elements *= sizes[d];
    const Truth ends = lies_apart(known, sizes[d - 1], strides[d - 1], elements * base);
    if (ends == Truth::kRefuted) continue;
    is_sure = is_sure && ends == Truth::kProven;
    const size_t behind = left;
    const Truth divides = take(known, wanted, left, elements);
    if (divides == Truth::kRefuted && is_sure) return {false, {}};
    if (divides != Truth::kProven) return {std::nullopt, {}};
    set_strides(found.layout, left, behind, base);
    base = strides[d - 1];
    elements = Dim(1);
  }
  set_strides(found.layout, 0, left, base);  // the first run has as many elements as what is left
  return found;
}

}  // namespace

Layout row_major_layout(std::vector<Dim> sizes) {
  Layout layout{std::move(sizes), {}};
  layout.strides.assign(layout.sizes.size(), Dim(1));
  set_strides(layout, 0, layout.sizes.size(), Dim(1));
  return layout;
}

Layout turned(const Layout& layout, const std::vector<int64_t>& axes) {
  Layout made{{}, {}, layout.is_exact};
  for (const int64_t axis : axes) {
    made.sizes.push_back(layout.sizes[static_cast<size_t>(axis)]);
    made.strides.push_back(layout.strides[static_cast<size_t>(axis)]);
  }
  return made;
}

std::optional<std::vector<int64_t>> axes_in(MemoryFormat format, size_t rank) {
  if (format == MemoryFormat::kRows) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
    return axes;
  }
  if (format == MemoryFormat::kChannelsLast && rank == 4) return std::vector<int64_t>{0, 2, 3, 1};
  if (format == MemoryFormat::kChannelsLast3d && rank == 5) return std::vector<int64_t>{0, 2, 3, 4, 1};
  return std::nullopt;
}

Layout dense_layout(const std::vector<Dim>& sizes, const std::vector<int64_t>& axes) {
  Layout layout{sizes, sizes};
  Dim stride(1);
  for (size_t i = axes.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(axes[i]);
    layout.strides[axis] = stride;
    stride *= sizes[axis];
  }
  return layout;
}

std::vector<Dim> dims_of(const ir::SymShape& shape) {
  std::vector<Dim> dims;
  for (const ir::SymInt& extent : shape) dims.push_back(extent.expr());
  return dims;
}

std::optional<bool> lies_in_rows(const Layout& layout, const DimFacts& facts) {
  const std::vector<Dim> rows = row_major_layout(layout.sizes).strides;
  if (has_none(layout.sizes) || layout.strides == rows) return true;
  const DimFacts known = with_elements(facts, layout.sizes);
  bool is_sure = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Truth is_apart = lies_apart(known, layout.sizes[i], layout.strides[i], rows[i]);
    if (is_apart == Truth::kProven) return false;
    is_sure = is_sure && is_apart == Truth::kRefuted;
  }
  return is_sure ? std::optional(true) : std::nullopt;
}

std::optional<bool> has_view(const Layout& layout, const std::vector<Dim>& wanted, const DimFacts& facts) {
  return find_view(layout, wanted, facts).is_there;
}

std::optional<Layout> viewed(const Layout& layout, const std::vector<Dim>& wanted, const DimFacts& facts) {
  FoundView found = find_view(layout, wanted, facts);
  if (!found.is_there.value_or(false)) return std::nullopt;
  return std::move(found.layout);
}

// at::inferExpandGeometry: what is there more than once is in one place.
std::optional<Layout> expanded(const Layout& layout, const std::vector<Dim>& wanted) {
  if (wanted.size() < layout.sizes.size()) return std::nullopt;
  const size_t more = wanted.size() - layout.sizes.size();
  Layout made{wanted, std::vector<Dim>(wanted.size(), Dim(0)), layout.is_exact};
  if (layout.sizes.empty()) return made;
  for (size_t i = wanted.size(); i-- > 0;) {
    const Dim own = i < more ? Dim(1) : layout.sizes[i - more];
    if (own == wanted[i]) {
      made.strides[i] = i < more ? wanted[i + 1] * made.strides[i + 1] : layout.strides[i - more];
    } else if (own == Dim(1)) {
      made.is_exact = made.is_exact && wanted[i].is_constant();  // of one element the stride is its own
    } else {
      return std::nullopt;
    }
  }
  return made;
}

// From the axis whose neighbours are next to each other on: each further one steps over all before it.
std::optional<std::vector<int64_t>> dense_axes(const Layout& layout, const DimFacts& facts) {
  const DimFacts known = with_elements(facts, layout.sizes);
  std::vector<int64_t> order, open;  // the fastest first
  std::vector<int64_t> single;
  for (size_t i = layout.sizes.size(); i-- > 0;)
    (layout.sizes[i] == Dim(1) ? single : open).push_back(static_cast<int64_t>(i));
  Dim stride(1);
  while (!open.empty()) {
    const auto next = std::find_if(open.begin(), open.end(), [&](int64_t axis) {
      return are_equal(known, layout.strides[static_cast<size_t>(axis)], stride) == Truth::kProven;
    });
    if (next == open.end()) return std::nullopt;
    stride *= layout.sizes[static_cast<size_t>(*next)];
    order.push_back(*next);
    open.erase(next);
  }
  order.insert(order.end(), single.begin(), single.end());
  std::reverse(order.begin(), order.end());
  return order;
}

std::optional<MemoryFormat> suggested_format(const Layout& layout, const DimFacts& facts) {
  const size_t rank = layout.sizes.size();
  const MemoryFormat other = rank == 4 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
  const std::optional<std::vector<int64_t>> axes = axes_in(other, rank);
  if (!axes) return MemoryFormat::kRows;
  const DimFacts known = with_elements(facts, layout.sizes);
  const auto is_long = [&](const Dim& size) { return known.prove_le(2, size) == Truth::kProven; };
  if (!layout.is_exact && !std::all_of(layout.sizes.begin(), layout.sizes.end(), is_long))
    return std::nullopt;
  const auto has_strides = [&](const Layout& dense) {
    for (size_t i = 0; i < rank; ++i)
      if (are_equal(known, layout.strides[i], dense.strides[i]) != Truth::kProven) return false;
    return true;
  };
  if (has_strides(row_major_layout(layout.sizes))) return MemoryFormat::kRows;
  // Of one element behind the first axis both orders are one, which torch takes for rows.
  const bool has_order = std::any_of(layout.sizes.begin() + 1, layout.sizes.end(), is_long);
  if (has_order && has_strides(dense_layout(layout.sizes, *axes))) return other;
  return std::nullopt;
}

}  // namespace tensormill::frontend::pytorch
