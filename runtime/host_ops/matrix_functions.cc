// Exponentials, and products of reflections.
#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/matrix_forms.h"

namespace tensormill::host_ops {

namespace {

void expect_form(bool fits) {
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step takes matrices of another size");
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(a.rows, b.columns);
  for (size_t row = 0; row < a.rows; ++row)
    for (size_t k = 0; k < a.columns; ++k)
      for (size_t column = 0; column < b.columns; ++column)
        y.at(row, column) += a.at(row, k) * b.at(k, column);
  return y;
}

/// The largest sum of a column's sizes.
double column_norm(const Matrix& x) {
  double most = 0;
  for (size_t column = 0; column < x.columns; ++column) {
    double sum = 0;
    for (size_t row = 0; row < x.rows; ++row) sum += std::fabs(x.at(row, column));
    most = std::max(most, sum);
  }
  return most;
}

Matrix exponential(Matrix x) {
  constexpr int kTerms = 18;  // of norms up to 1/2 the rest is below 2^-74
  int squares = 0;
  static_cast<void>(std::frexp(column_norm(x), &squares));
  squares = std::max(squares + 1, 0);
  for (double& each : x.elements) each = std::ldexp(each, -squares);
  Matrix y = identity(x.rows, x.rows);
  for (int term = kTerms; term > 0; --term) {
    y = product(x, y);
    for (double& each : y.elements) each /= term;
    for (size_t i = 0; i < x.rows; ++i) y.at(i, i) += 1;
  }
  for (; squares > 0; --squares) y = product(y, y);
  return y;
}

}  // namespace

void matrix_exponentials(const HostCall& call) {
  expect(call, 1, 1);
  const MatrixReader x(call, 0);
  expect_form(x.rows() == x.columns());
  MatrixWriter out(call, 0, x.count(), x.rows(), x.rows());
  for (size_t i = 0; i < x.count(); ++i)
    out.put(i, is_finite(x[i]) ? exponential(x[i]) : filled(x.rows(), x.rows(), std::nan("")));
}

void qr_reflections(const HostCall& call) {
  expect(call, 1, 2);
  const MatrixReader x(call, 0);
  const size_t least = std::min(x.rows(), x.columns());
  MatrixWriter out(call, 0, x.count(), x.rows(), x.columns()), factors(call, 1, x.count(), least, 1);
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix own = x[i], taus(least, 1);
    taus.elements = reflect_columns(own);
    out.put(i, own);
    factors.put(i, taus);
  }
}

void product_of_reflections_step(const HostCall& call) {
  expect(call, 2, 1);
  const MatrixReader x(call, 0), factors(call, 1);
  expect_form(factors.count() == x.count() && factors.rows() == 1 &&
              factors.columns() <= std::min(x.rows(), x.columns()));
  MatrixWriter out(call, 0, x.count(), x.rows(), x.columns());
  for (size_t i = 0; i < x.count(); ++i)
    out.put(i, product_of_reflections(x[i], factors[i].elements, 0, x.columns()));
}

}  // namespace tensormill::host_ops
