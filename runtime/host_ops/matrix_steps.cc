#include "runtime/host_ops/matrix_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// The row from `first` on whose element in column `first` is the largest; a NaN is larger than all.
size_t pivot_row(const Matrix& matrix, size_t first) {
  size_t best = first;
  for (size_t row = first; row < matrix.rows; ++row) {
    const double size = std::fabs(matrix.at(row, first));
    if (std::isnan(size)) return row;
    if (size > std::fabs(matrix.at(best, first))) best = row;
  }
  return best;
}

/// x - factor * y, of `count` elements.
void subtract(double* x, const double* y, double factor, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] -= factor * y[i];
}

/// Which row was exchanged for row 0, 1, ...: itself or a later one.
using Pivots = std::vector<size_t>;

bool is_odd(const Pivots& pivots) {
  bool is = false;
  for (size_t step = 0; step < pivots.size(); ++step) is ^= pivots[step] != step;
  return is;
}

/// Leaves the upper triangle of elimination, and below it the factors by which rows were taken off; what is
/// done to the rows is done to those of `other`.
Pivots eliminate(Matrix& matrix, Matrix& other) {
  Pivots pivots(std::min(matrix.rows, matrix.columns));
  for (size_t step = 0; step < pivots.size(); ++step) {
    const size_t pivot = pivots[step] = pivot_row(matrix, step);
    double* const own = matrix.row(step);
    if (pivot != step) {
      std::swap_ranges(own, own + matrix.columns, matrix.row(pivot));
      std::swap_ranges(other.row(step), other.row(step) + other.columns, other.row(pivot));
    }
    if (own[step] == 0) continue;
    for (size_t row = step + 1; row < matrix.rows; ++row) {
      const double factor = matrix.at(row, step) /= own[step];
      subtract(matrix.row(row) + step + 1, own + step + 1, factor, matrix.columns - step - 1);
      subtract(other.row(row), other.row(step), factor, other.columns);
    }
  }
  return pivots;
}

struct Triangle {
  bool is_lower, is_unit;
};

/// x in place of b.
void solve_triangle(const Matrix& a, Matrix& b, Triangle form) {
  for (size_t step = 0; step < a.rows; ++step) {
    const size_t row = form.is_lower ? step : a.rows - 1 - step;
    const size_t first = form.is_lower ? 0 : row + 1;
    for (size_t k = first; k < first + step; ++k) subtract(b.row(row), b.row(k), a.at(row, k), b.columns);
    if (form.is_unit) continue;
    for (size_t column = 0; column < b.columns; ++column) b.at(row, column) /= a.at(row, row);
  }
}

[[noreturn]] void fail_shape(const char* what) {
  throw Error(ErrorCode::kInvalidPackage, std::string("a host step takes ") + what);
}

void expect_square(const MatrixReader& x) {
  if (x.rows() != x.columns()) fail_shape("what is no square matrix for one");
}

/// Operands a, b of as many rows.
template <typename Solve>
void solve_all(const HostCall& call, const Solve& solve) {
  expect(call, 2, 1);
  const MatrixReader a(call, 0), b(call, 1);
  expect_square(a);
  if (a.count() != b.count() || a.rows() != b.rows()) fail_shape("a right side of another shape");
  MatrixWriter out(call, 0, b.count(), b.rows(), b.columns());
  for (size_t i = 0; i < a.count(); ++i) {
    Matrix left = a[i], right = b[i];
    solve(left, right);
    out.put(i, right);
  }
}

}  // namespace

MatrixReader::MatrixReader(const HostCall& call, size_t index)
    : data_(static_cast<const double*>(call.inputs[index].data)) {
  const TensorView& view = call.inputs[index];
  if (view.dtype != DType::kFloat64 || view.shape.size() != 3) fail_shape("what are no matrices of float64");
  // Of matrices without elements there may be any number: where nothing is stored there are none to look at.
  const bool has_results = std::any_of(call.output_bytes.begin(), call.output_bytes.end(),
                                       [](size_t bytes) { return bytes != 0; });
  count_ = has_results ? static_cast<size_t>(view.shape[0]) : 0;
  rows_ = static_cast<size_t>(view.shape[1]);
  columns_ = static_cast<size_t>(view.shape[2]);
}

Matrix MatrixReader::operator[](size_t index) const {
  Matrix matrix(rows_, columns_);
  std::copy_n(data_ + index * rows_ * columns_, rows_ * columns_, matrix.elements.begin());
  return matrix;
}

MatrixWriter::MatrixWriter(const HostCall& call, size_t index, size_t count, size_t rows, size_t columns)
    : data_(static_cast<double*>(storage(call, index, count * rows * columns, sizeof(double)))),
      size_(rows * columns) {}

void MatrixWriter::put(size_t index, const Matrix& matrix) {
  std::copy_n(matrix.elements.begin(), size_, data_ + index * size_);
}

size_t columns_of_result(const HostCall& call, size_t index, size_t count, size_t rows, size_t none) {
  const size_t elements = call.output_bytes[index] / sizeof(double), all = count * rows;
  if (all == 0) return none;
  if (elements % all != 0) fail_shape("a result of another size");
  return elements / all;
}

void determinants(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& view = call.inputs[0];
  if (!is_float(view.dtype) || view.shape.size() != 3 || view.shape[1] != view.shape[2])
    throw Error(ErrorCode::kInvalidPackage,
                "a host step takes determinants of what is no square matrix of floats");
  const Tensor x = copied(view);
  const auto order = static_cast<size_t>(view.shape[1]);
  Tensor results(view.dtype, {view.shape[0]});
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    Matrix matrix(order, order), nothing(order, 0);
    const auto elements = static_cast<int64_t>(matrix.elements.size());
    for (int64_t k = 0; k < elements; ++k)
      matrix.elements[static_cast<size_t>(k)] = x.element_as_double(i * elements + k);
    double result = is_odd(eliminate(matrix, nothing)) ? -1 : 1;
    for (size_t step = 0; step < order; ++step) result *= matrix.at(step, step);
    results.set_element(i, result);
  }
  void* target = storage(call, 0, static_cast<size_t>(view.shape[0]), dtype_bytes(view.dtype));
  if (results.num_bytes() != 0) std::memcpy(target, results.data(), results.num_bytes());
}

void log_determinants(const HostCall& call) {
  expect(call, 1, 2);
  const MatrixReader x(call, 0);
  expect_square(x);
  MatrixWriter signs(call, 0, x.count(), 1, 1), logs(call, 1, x.count(), 1, 1);
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix own = x[i], nothing(x.rows(), 0), sign(1, 1), log(1, 1);
    double& whole = sign.at(0, 0);
    whole = is_odd(eliminate(own, nothing)) ? -1 : 1;
    for (size_t step = 0; step < own.rows; ++step) {
      const double pivot = own.at(step, step);
      whole *= pivot == 0 || std::isnan(pivot) ? pivot : std::copysign(1.0, pivot);
      log.at(0, 0) += std::log(std::fabs(pivot));
    }
    signs.put(i, sign);
    logs.put(i, log);
  }
}

void solve_matrices(const HostCall& call) {
  solve_all(call, [](Matrix& a, Matrix& b) {
    static_cast<void>(eliminate(a, b));
    solve_triangle(a, b, {false, false});
  });
}

void pivoted_triangles(const HostCall& call) {
  expect(call, 1, 2);
  const MatrixReader x(call, 0);
  const size_t least = std::min(x.rows(), x.columns());
  MatrixWriter out(call, 0, x.count(), x.rows(), x.columns()), exchanged(call, 1, x.count(), 1, least);
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix own = x[i], nothing(x.rows(), 0), pivots(1, least);
    const Pivots found = eliminate(own, nothing);
    for (size_t step = 0; step < least; ++step) pivots.at(0, step) = static_cast<double>(found[step] + 1);
    out.put(i, own);
    exchanged.put(i, pivots);
  }
}

void pivoted_rows(const HostCall& call) {
  expect(call, 2, 1);
  const MatrixReader pivots(call, 0), x(call, 1);
  if (pivots.count() != x.count() || pivots.rows() != 1) fail_shape("pivots of other matrices");
  MatrixWriter out(call, 0, x.count(), 1, x.rows());
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix rows(1, x.rows());
    std::iota(rows.elements.begin(), rows.elements.end(), 0.0);
    const Matrix exchanged = pivots[i];
    for (size_t step = 0; step < exchanged.columns; ++step) {
      const double other = exchanged.at(0, step) - 1;
      if (!(other >= 0 && other < static_cast<double>(x.rows()) && step < x.rows()))
        throw Error(ErrorCode::kTensorData, "pivot " + std::to_string(exchanged.at(0, step)) + " of " +
                                                std::to_string(x.rows()) + " rows");
      std::swap(rows.elements[step], rows.elements[static_cast<size_t>(other)]);
    }
    out.put(i, rows);
  }
}

void solve_triangles(const HostCall& call) {
  const Attributes attributes(call);
  const Triangle form{attributes.flag("lower"), attributes.flag("unit")};
  solve_all(call, [&](Matrix& a, Matrix& b) { solve_triangle(a, b, form); });
}

// A row after the other: each element less what the ones before it make of it.
void cholesky_factors(const HostCall& call) {
  expect(call, 1, 1);
  const MatrixReader x(call, 0);
  expect_square(x);
  MatrixWriter out(call, 0, x.count(), x.rows(), x.columns());
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix factor = x[i];
    bool is_definite = true;
    for (size_t row = 0; row < factor.rows; ++row) {
      double* const own = factor.row(row);
      for (size_t column = 0; column <= row; ++column) {
        const double* const other = factor.row(column);
        double rest = own[column];
        for (size_t k = 0; k < column; ++k) rest -= own[k] * other[k];
        own[column] = column == row ? std::sqrt(rest) : rest / other[column];
      }
      is_definite = is_definite && own[row] > 0;
      std::fill(own + row + 1, own + factor.columns, 0.0);
    }
    if (!is_definite) std::fill(factor.elements.begin(), factor.elements.end(), std::nan(""));
    out.put(i, factor);
  }
}

}  // namespace tensormill::host_ops
