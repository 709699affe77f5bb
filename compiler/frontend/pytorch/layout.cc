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

}  // namespace

Layout row_major_layout(std::vector<Dim> sizes) {
  Layout layout{std::move(sizes), {}};
  layout.strides.assign(layout.sizes.size(), Dim(1));
  for (size_t i = layout.sizes.size(); i-- > 1;) layout.strides[i - 1] = layout.strides[i] * layout.sizes[i];
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

// at::detail::computeStride: whether each run of axes that lie densely divides into wanted ones. A run may be
// taken for two: where both divide, it does.
std::optional<bool> has_view(const Layout& layout, const std::vector<Dim>& wanted, const DimFacts& facts) {
  const std::vector<Dim>&sizes = layout.sizes, &strides = layout.strides;
  if (has_none(sizes) || strides == row_major_layout(sizes).strides) return true;
  const DimFacts known = with_elements(with_elements(facts, sizes), wanted);
  size_t left = wanted.size();
  bool is_sure = true;  // whatever the symbols are, runs end where they did so far
  Dim elements(1), base = strides.back();
  for (size_t d = sizes.size(); d-- > 1;) {
    elements *= sizes[d];
    const Truth ends = lies_apart(known, sizes[d - 1], strides[d - 1], elements * base);
    if (ends == Truth::kRefuted) continue;
    is_sure = is_sure && ends == Truth::kProven;
    const Truth divides = take(known, wanted, left, elements);
    if (divides == Truth::kRefuted && is_sure) return false;
    if (divides != Truth::kProven) return std::nullopt;
    base = strides[d - 1];
    elements = Dim(1);
  }
  return true;  // the first run has as many elements as what is left
}

}  // namespace tensormill::frontend::pytorch
