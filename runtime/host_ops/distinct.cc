#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/host_ops/select.h"

namespace tensormill::host_ops {

namespace {

/// Slices of one axis: [outer, extent, inner] in memory.
struct Slices {
  const Tensor& x;
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;

  Slices(const Tensor& tensor, std::optional<size_t> axis) : x(tensor) {
    if (!axis) {
      extent = tensor.num_elements();
      return;
    }
    const Shape& shape = tensor.shape();
    for (size_t d = 0; d < *axis; ++d) outer *= shape[d];
    extent = shape[*axis];
    for (size_t d = *axis + 1; d < shape.size(); ++d) inner *= shape[d];
  }

  /// Element `at` of slice `index`, in row-major order of the other axes.
  int64_t element(int64_t index, int64_t at) const {
    return (at / inner * extent + index) * inner + at % inner;
  }
  int64_t size() const { return outer * inner; }
};

/// -1, 0 or 1; NaNs are larger than all else, and equal each other or are apart by where they are.
int compare_elements(const Tensor& x, int64_t a, int64_t b, bool nans_apart) {
  if (x.dtype() == kString) {
    const auto* bytes = static_cast<const uint8_t*>(x.data());
    return static_cast<int>(bytes[a] > bytes[b]) - static_cast<int>(bytes[a] < bytes[b]);
  }
  if (is_float(x.dtype())) {
    const double left = x.element_as_double(a), right = x.element_as_double(b);
    if (nans_apart && std::isnan(left) && std::isnan(right))
      return static_cast<int>(a > b) - static_cast<int>(a < b);
    if (std::isnan(left) || std::isnan(right))
      return static_cast<int>(std::isnan(left)) - static_cast<int>(std::isnan(right));
    return static_cast<int>(left > right) - static_cast<int>(left < right);
  }
  const int64_t left = x.element_as_int(a), right = x.element_as_int(b);
  if (x.dtype() == DType::kUInt64) {
    const auto u = static_cast<uint64_t>(left), v = static_cast<uint64_t>(right);
    return static_cast<int>(u > v) - static_cast<int>(u < v);
  }
  return static_cast<int>(left > right) - static_cast<int>(left < right);
}

int compare_slices(const Slices& slices, int64_t a, int64_t b, bool nans_apart) {
  for (int64_t at = 0; at < slices.size(); ++at) {
    const int order = compare_elements(slices.x, slices.element(a, at), slices.element(b, at), nans_apart);
    if (order != 0) return order;
  }
  return 0;
}

/// A representative of each group of equal slices, and each slice's group.
struct Groups {
  std::vector<int64_t> first;
  std::vector<int64_t> group;
  std::vector<int64_t> counts;
};

Groups group_slices(const Slices& slices, bool sorted, bool nans_apart) {
  std::vector<int64_t> order(static_cast<size_t>(slices.extent));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return compare_slices(slices, a, b, nans_apart) < 0; });
  Groups groups;
  groups.group.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare_slices(slices, order[i - 1], order[i], nans_apart) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    groups.group[static_cast<size_t>(order[i])] = static_cast<int64_t>(groups.first.size()) - 1;
    ++groups.counts.back();
  }
  if (sorted) return groups;
  std::vector<int64_t> rank(groups.first.size());
  std::iota(rank.begin(), rank.end(), 0);
  const auto first_of = [&](int64_t i) { return groups.first[static_cast<size_t>(i)]; };
  std::sort(rank.begin(), rank.end(), [&](int64_t a, int64_t b) { return first_of(a) < first_of(b); });
  Groups result;
  std::vector<int64_t> place(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) {
    place[static_cast<size_t>(rank[i])] = static_cast<int64_t>(i);
    result.first.push_back(first_of(rank[i]));
    result.counts.push_back(groups.counts[static_cast<size_t>(rank[i])]);
  }
  for (const int64_t old : groups.group) result.group.push_back(place[static_cast<size_t>(old)]);
  return result;
}

Tensor ints(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

}  // namespace

Distinct distinct(const Tensor& x, std::optional<size_t> axis, bool sorted, bool nans_apart) {
  const Slices slices(x, axis);
  const Groups groups = group_slices(slices, sorted, nans_apart);
  const int64_t count = static_cast<int64_t>(groups.first.size());
  Shape shape = axis ? x.shape() : Shape{count};
  if (axis) shape[*axis] = count;
  Tensor values(x.dtype(), shape);
  const size_t bytes = dtype_bytes(x.dtype());
  const std::byte* source = static_cast<const std::byte*>(x.data());
  std::byte* target = static_cast<std::byte*>(values.data());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t at = 0; at < slices.size(); ++at) {
      const int64_t to = (at / slices.inner * count + i) * slices.inner + at % slices.inner;
      const int64_t from = slices.element(groups.first[static_cast<size_t>(i)], at);
      std::memcpy(target + static_cast<size_t>(to) * bytes, source + static_cast<size_t>(from) * bytes,
                  bytes);
    }
  }
  return {std::move(values), ints(groups.first), ints(groups.group), ints(groups.counts)};
}

}  // namespace tensormill::host_ops
