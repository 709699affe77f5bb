// Orthogonal factors of matrices: QR, eigenvectors of symmetric ones, singular values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/matrix_forms.h"

namespace tensormill::host_ops {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

double dot(const double* x, const double* y, size_t count) {
  return std::inner_product(x, x + count, y, 0.0);
}

Matrix transposed(const Matrix& x) {
  Matrix y(x.columns, x.rows);
  for (size_t row = 0; row < x.rows; ++row)
    for (size_t column = 0; column < x.columns; ++column) y.at(column, row) = x.at(row, column);
  return y;
}

void check(bool fits) {
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step takes factors of another size");
}

}  // namespace

Matrix identity(size_t rows, size_t columns) {
  Matrix y(rows, columns);
  for (size_t i = 0; i < std::min(rows, columns); ++i) y.at(i, i) = 1;
  return y;
}

Matrix filled(size_t rows, size_t columns, double value) {
  Matrix y(rows, columns);
  std::fill(y.elements.begin(), y.elements.end(), value);
  return y;
}

bool is_finite(const Matrix& x) {
  return std::all_of(x.elements.begin(), x.elements.end(), [](double each) { return std::isfinite(each); });
}

double scaled(Matrix& x) {
  double most = 0;
  for (const double each : x.elements) most = std::max(most, std::fabs(each));
  if (most == 0) return 1;
  for (double& each : x.elements) each /= most;
  return most;
}

double reflect(Matrix& x, size_t first, size_t column) {
  double rest = 0;
  for (size_t row = first + 1; row < x.rows; ++row) rest += x.at(row, column) * x.at(row, column);
  const double head = x.at(first, column);
  if (rest == 0) return 0;
  const double size = std::sqrt(head * head + rest), made = head < 0 ? size : -size;
  for (size_t row = first + 1; row < x.rows; ++row) x.at(row, column) /= head - made;
  x.at(first, column) = made;
  return (made - head) / made;
}

std::vector<double> reflector(const Matrix& x, size_t first, size_t column) {
  std::vector<double> v(x.rows - first, 1);
  for (size_t i = 1; i < v.size(); ++i) v[i] = x.at(first + i, column);
  return v;
}

void apply_reflection(const std::vector<double>& v, double tau, Matrix& y, size_t first, size_t column) {
  const size_t count = y.columns - column;
  std::vector<double> sums(count, 0);
  for (size_t i = 0; i < v.size(); ++i) {
    const double* own = y.row(first + i) + column;
    for (size_t k = 0; k < count; ++k) sums[k] += v[i] * own[k];
  }
  for (size_t i = 0; i < v.size(); ++i) {
    double* own = y.row(first + i) + column;
    for (size_t k = 0; k < count; ++k) own[k] -= tau * v[i] * sums[k];
  }
}

Matrix product_of_reflections(const Matrix& x, const std::vector<double>& taus, size_t below,
                              size_t columns) {
  Matrix y = identity(x.rows, columns);
  for (size_t k = taus.size(); k-- > 0;)
    apply_reflection(reflector(x, k + below, k), taus[k], y, k + below, 0);
  return y;
}

std::vector<double> reflect_columns(Matrix& x) {
  std::vector<double> taus(std::min(x.rows, x.columns));
  for (size_t k = 0; k < taus.size(); ++k) {
    taus[k] = reflect(x, k, k);
    apply_reflection(reflector(x, k, k), taus[k], x, k, k + 1);
  }
  return taus;
}

void qr_factors(const HostCall& call) {
  expect(call, 1, 2);
  const MatrixReader x(call, 0);
  const size_t least = std::min(x.rows(), x.columns());
  const size_t kept = columns_of_result(call, 0, x.count(), x.rows(), least);
  check(kept == least || kept == x.rows());
  MatrixWriter q(call, 0, x.count(), x.rows(), kept), r(call, 1, x.count(), kept, x.columns());
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix own = x[i];
    const std::vector<double> taus = reflect_columns(own);
    q.put(i, product_of_reflections(own, taus, 0, kept));
    Matrix upper(kept, x.columns());
    for (size_t row = 0; row < least; ++row)
      std::copy(own.row(row) + row, own.row(row) + own.columns, upper.row(row) + row);
    r.put(i, upper);
  }
}

namespace {

/// A symmetric tridiagonal matrix, and orthogonal columns, which are the rows of `vectors`.
struct Tridiagonal {
  std::vector<double> diagonal, below;
  Matrix vectors;
};

/// x = q t q^T by reflections.
Tridiagonal tridiagonal(Matrix x) {
  const size_t order = x.rows;
  std::vector<double> taus;
  for (size_t k = 0; k + 2 < order; ++k) {
    taus.push_back(reflect(x, k + 1, k));
    const double tau = taus.back();
    const std::vector<double> v = reflector(x, k + 1, k);
    const size_t count = v.size();
    // The rest less v w^T + w v^T, of which the lower triangle is kept.
    std::vector<double> w(count, 0);
    for (size_t row = 0; row < count; ++row) {
      const double* own = x.row(k + 1 + row) + k + 1;
      for (size_t column = 0; column < row; ++column) {
        w[row] += tau * own[column] * v[column];
        w[column] += tau * own[column] * v[row];
      }
      w[row] += tau * own[row] * v[row];
    }
    const double shared = -0.5 * tau * dot(w.data(), v.data(), count);
    for (size_t row = 0; row < count; ++row) w[row] += shared * v[row];
    for (size_t row = 0; row < count; ++row) {
      double* own = x.row(k + 1 + row) + k + 1;
      for (size_t column = 0; column <= row; ++column) own[column] -= v[row] * w[column] + w[row] * v[column];
    }
  }
  Tridiagonal made{std::vector<double>(order), std::vector<double>(order > 0 ? order - 1 : 0),
                   transposed(product_of_reflections(x, taus, 1, order))};
  for (size_t k = 0; k < order; ++k) made.diagonal[k] = x.at(k, k);
  for (size_t k = 0; k + 1 < order; ++k) made.below[k] = x.at(k + 1, k);
  return made;
}

struct Rotation {
  double cosine, sine;
};

/// What turns (x, z) to (r, 0).
Rotation rotation_of(double x, double z) {
  if (z == 0) return {x < 0 ? -1.0 : 1.0, 0};
  if (x == 0) return {0, z < 0 ? 1.0 : -1.0};
  if (std::fabs(x) > std::fabs(z)) {
    const double t = z / x, cosine = 1 / std::copysign(std::sqrt(1 + t * t), x);
    return {cosine, -t * cosine};
  }
  const double t = x / z, sine = -1 / std::copysign(std::sqrt(1 + t * t), z);
  return {-t * sine, sine};
}

void rotate(double* x, double* y, Rotation by, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const double own = x[i];
    x[i] = by.cosine * own - by.sine * y[i];
    y[i] = by.sine * own + by.cosine * y[i];
  }
}

/// An implicit step with Wilkinson's shift on the rows `start` ... `end`.
void step_down(Tridiagonal& t, size_t start, size_t end) {
  std::vector<double>&d = t.diagonal, &e = t.below;
  const double half = (d[end - 1] - d[end]) / 2, last = e[end - 1];
  const double reach = std::hypot(half, last);
  const double shift =
      half == 0 ? d[end] - std::fabs(last) : d[end] - last / ((half + std::copysign(reach, half)) / last);
  double x = d[start] - shift, z = e[start];
  for (size_t k = start; k < end && z != 0; ++k) {
    const Rotation by = rotation_of(x, z);
    const double c = by.cosine, s = by.sine;
    const double crossed = s * d[k] + c * e[k], next = s * e[k] + c * d[k + 1];
    d[k] = c * (c * d[k] - s * e[k]) - s * (c * e[k] - s * d[k + 1]);
    d[k + 1] = s * crossed + c * next;
    e[k] = c * crossed - s * next;
    if (k > start) e[k - 1] = c * e[k - 1] - s * z;
    x = e[k];
    if (k + 1 < end) {
      z = -s * e[k + 1];
      e[k + 1] *= c;
    }
    rotate(t.vectors.row(k), t.vectors.row(k + 1), by, t.vectors.columns);
  }
}

/// Leaves a diagonal matrix.
void make_diagonal(Tridiagonal& t) {
  constexpr size_t kStepsOfOne = 30;
  size_t steps = kStepsOfOne * t.diagonal.size();
  for (size_t end = t.below.size(); end > 0 && steps > 0; --steps) {
    for (size_t k = 0; k < end; ++k) {
      const double sizes = std::fabs(t.diagonal[k]) + std::fabs(t.diagonal[k + 1]),
                   own = t.below[k] / kEpsilon;
      if (std::fabs(t.below[k]) < std::numeric_limits<double>::min() || own * own <= sizes) t.below[k] = 0;
    }
    while (end > 0 && t.below[end - 1] == 0) --end;
    if (end == 0) break;
    size_t start = end - 1;
    while (start > 0 && t.below[start - 1] != 0) --start;
    step_down(t, start, end);
  }
}

}  // namespace

void symmetric_eigenvectors(const HostCall& call) {
  expect(call, 1, 2);
  const MatrixReader x(call, 0);
  check(x.rows() == x.columns());
  MatrixWriter values(call, 0, x.count(), x.rows(), 1), vectors(call, 1, x.count(), x.rows(), x.rows());
  for (size_t i = 0; i < x.count(); ++i) {
    Matrix own = x[i], sizes(x.rows(), 1);
    for (size_t row = 0; row < own.rows; ++row)
      std::fill(own.row(row) + row + 1, own.row(row) + own.columns, 0.0);
    if (!is_finite(own)) {
      values.put(i, filled(x.rows(), 1, kNan));
      vectors.put(i, filled(x.rows(), x.rows(), kNan));
      continue;
    }
    const double factor = scaled(own);
    Tridiagonal made = tridiagonal(std::move(own));
    make_diagonal(made);
    for (size_t k = 0; k < x.rows(); ++k) {
      const auto begin = made.diagonal.begin();
      const auto least = static_cast<size_t>(
          std::min_element(begin + static_cast<std::ptrdiff_t>(k), made.diagonal.end()) - begin);
      std::swap(made.diagonal[k], made.diagonal[least]);
      if (least != k)
        std::swap_ranges(made.vectors.row(k), made.vectors.row(k) + x.rows(), made.vectors.row(least));
      sizes.at(k, 0) = made.diagonal[k] * factor;
    }
    values.put(i, sizes);
    vectors.put(i, transposed(made.vectors));
  }
}

namespace {

/// Turns the rows of x until each two are orthogonal, and those of y with them.
void make_orthogonal(Matrix& x, Matrix& y) {
  constexpr int kMostSweeps = 60;
  bool has_turned = true;
  for (int sweep = 0; sweep < kMostSweeps && has_turned; ++sweep) {
    has_turned = false;
    for (size_t p = 0; p < x.rows; ++p) {
      for (size_t q = p + 1; q < x.rows; ++q) {
        double *a = x.row(p), *b = x.row(q);
        const double aa = dot(a, a, x.columns), bb = dot(b, b, x.columns), ab = dot(a, b, x.columns);
        if (!(std::fabs(ab) > kEpsilon * std::sqrt(aa) * std::sqrt(bb))) continue;
        has_turned = true;
        const double slope = (bb - aa) / (2 * ab);
        const double t = std::copysign(1.0, slope) / (std::fabs(slope) + std::sqrt(1 + slope * slope));
        const double cosine = 1 / std::sqrt(1 + t * t);
        rotate(a, b, {cosine, cosine * t}, x.columns);
        rotate(y.row(p), y.row(q), {cosine, cosine * t}, y.columns);
      }
    }
  }
}

/// Rows from `known` on, of length one and orthogonal to each other and those before them.
void complete(Matrix& x, size_t known) {
  size_t axis = 0;
  for (size_t row = known; row < x.rows; ++row) {
    // One of the axes is at least so far from what the rows before span.
    const double least = std::sqrt(static_cast<double>(x.columns - row) / static_cast<double>(x.columns)) / 2;
    double* const own = x.row(row);
    double size = 0;
    for (size_t tries = 0; tries < x.columns && !(size >= least); ++tries, axis = (axis + 1) % x.columns) {
      std::fill(own, own + x.columns, 0.0);
      own[axis] = 1;
      for (size_t i = 0; i < 2 * row; ++i) {
        const double* other = x.row(i % row);
        const double part = dot(own, other, x.columns);
        for (size_t k = 0; k < x.columns; ++k) own[k] -= part * other[k];
      }
      size = std::sqrt(dot(own, own, x.columns));
    }
    for (size_t k = 0; k < x.columns; ++k) own[k] /= size;
  }
}

/// Of x, which has as many columns as rows or fewer: values in falling order, columns as rows.
struct Singular {
  std::vector<double> values;
  Matrix left, right;
};

Singular decomposed(Matrix x, size_t left, size_t right) {
  const double factor = scaled(x);
  Matrix columns = transposed(x), turns = identity(x.columns, x.columns);
  make_orthogonal(columns, turns);
  std::vector<double> sizes(x.columns);
  std::vector<size_t> order(x.columns);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t k = 0; k < x.columns; ++k) sizes[k] = std::sqrt(dot(columns.row(k), columns.row(k), x.rows));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  Singular made{std::vector<double>(x.columns), Matrix(left, x.rows), Matrix(right, x.columns)};
  size_t known = 0;
  for (size_t k = 0; k < x.columns; ++k) {
    const size_t from = order[k];
    made.values[k] = sizes[from] * factor;
    std::copy_n(turns.row(from), x.columns, made.right.row(k));
    if (sizes[from] == 0) continue;
    for (size_t row = 0; row < x.rows; ++row) made.left.at(k, row) = columns.at(from, row) / sizes[from];
    known = k + 1;
  }
  complete(made.left, known);
  return made;
}

}  // namespace

void singular_values(const HostCall& call) {
  expect(call, 1, 3);
  const MatrixReader x(call, 0);
  const size_t least = std::min(x.rows(), x.columns());
  const size_t left = columns_of_result(call, 1, x.count(), x.rows(), least),
               right = columns_of_result(call, 2, x.count(), x.columns(), least);
  check((left == least || left == x.rows()) && (right == least || right == x.columns()));
  MatrixWriter values(call, 0, x.count(), least, 1), u(call, 1, x.count(), x.rows(), left),
      v(call, 2, x.count(), x.columns(), right);
  const bool is_wide = x.columns() > x.rows();
  for (size_t i = 0; i < x.count(); ++i) {
    if (!is_finite(x[i])) {
      values.put(i, filled(least, 1, kNan));
      u.put(i, filled(x.rows(), left, kNan));
      v.put(i, filled(x.columns(), right, kNan));
      continue;
    }
    Singular made = is_wide ? decomposed(transposed(x[i]), right, left) : decomposed(x[i], left, right);
    if (is_wide) std::swap(made.left, made.right);
    Matrix sizes(least, 1);
    sizes.elements = made.values;
    values.put(i, sizes);
    u.put(i, transposed(made.left));
    v.put(i, transposed(made.right));
  }
}

}  // namespace tensormill::host_ops
