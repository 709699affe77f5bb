/// The inner loops of recurrent layers, on the widest vectors that this CPU and the loops have in common.
/// Each element is computed by the same operations in the same order whatever the vectors' width: products,
/// and the functions of float, are the same bits on every CPU. Those of double are the C library's.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>

namespace tensormill::host_ops {

/// Columns of a panel of weights, and what the rows of its sums are a multiple of.
inline constexpr size_t kPanelColumns = 16;

/// sums[r][p * kPanelColumns + c] += sum over k of x[r][k] * weights[p][k][c], k rising.
template <typename T>
struct PanelProduct {
  const T* x;
  size_t x_stride;  ///< from row to row, in elements
  size_t rows;
  const T* weights;  ///< [panels, depth, kPanelColumns]
  size_t depth, panels;
  T* sums;
  size_t sums_stride;
  /// The last panel is read first: what was read last is still in the cache where all panels do not fit.
  bool backwards = false;
};

template <typename T>
struct RecurrentMath {
  void (*multiply_add)(const PanelProduct<T>& product);
  /// In place, of `count` elements: a multiple of kPanelColumns. Those of float are within 4 ulp.
  void (*sigmoid)(T* x, size_t count);
  void (*tanh)(T* x, size_t count);
};

/// For float and double.
template <typename T>
const RecurrentMath<T>& recurrent_math();

}  // namespace tensormill::host_ops
