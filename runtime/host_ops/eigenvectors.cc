// Eigenvectors of matrices of any kind: a Hessenberg form by reflections, and QR steps of one shift on it, in
// complex numbers (Golub and Van Loan, Matrix Computations, 7.4 and 7.5).
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/matrix_steps.h"

namespace tensormill::host_ops {

namespace {

using Number = std::complex<double>;

constexpr double kLeast = std::numeric_limits<double>::epsilon(),
                 kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// A square matrix, row after row.
struct Square {
  size_t order = 0;
  std::vector<Number> elements;

  explicit Square(size_t order_of) : order(order_of), elements(order_of * order_of) {}
  Number& at(size_t row, size_t column) { return elements[row * order + column]; }
  const Number& at(size_t row, size_t column) const { return elements[row * order + column]; }
};

/// The sum of both parts' sizes, which is enough to compare by.
double rough_size(Number x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

/// y less (y v) factor v^*, of the columns `first` ..., all rows.
void reflect_columns(Square& y, const std::vector<Number>& v, Number factor, size_t first) {
  for (size_t row = 0; row < y.order; ++row) {
    Number sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += y.at(row, first + i) * v[i];
    sum *= factor;
    for (size_t i = 0; i < v.size(); ++i) y.at(row, first + i) -= sum * std::conj(v[i]);
  }
}

/// Leaves zeros below the diagonal below the diagonal of x; what is done to its columns is done to those of
/// `turns`. The element that stays of a column is real, of another sign than it was.
void make_hessenberg(Square& x, Square& turns) {
  for (size_t k = 0; k + 2 < x.order; ++k) {
    const size_t first = k + 1;
    double rest = 0;
    for (size_t row = first + 1; row < x.order; ++row) rest += std::norm(x.at(row, k));
    const Number head = x.at(first, k);
    if (rest == 0 && head.imag() == 0) continue;
    const double size = std::sqrt(std::norm(head) + rest), made = head.real() >= 0 ? -size : size;
    const Number factor = std::conj((made - head) / made);
    std::vector<Number> v(x.order - first, 1);
    for (size_t i = 1; i < v.size(); ++i) v[i] = x.at(first + i, k) / (head - made);
    x.at(first, k) = made;
    for (size_t row = first + 1; row < x.order; ++row) x.at(row, k) = 0;
    for (size_t column = first; column < x.order; ++column) {
      Number sum = 0;
      for (size_t i = 0; i < v.size(); ++i) sum += std::conj(v[i]) * x.at(first + i, column);
      for (size_t i = 0; i < v.size(); ++i) x.at(first + i, column) -= factor * v[i] * sum;
    }
    reflect_columns(x, v, std::conj(factor), first);
    reflect_columns(turns, v, std::conj(factor), first);
  }
}

/// What turns (x, y) to (r, 0), r being (cosine x - conj(sine) y).
struct Turn {
  double cosine;
  Number sine;
};

Turn turn_of(Number x, Number y) {
  if (y == 0.0) return {x.real() < 0 ? -1.0 : 1.0, 0};
  if (x == 0.0) return {0, -y / std::abs(y)};
  const double scale = std::max(rough_size(x), rough_size(y));
  const Number a = x / scale, b = y / scale;
  const double own = std::norm(a), size = std::sqrt(own + std::norm(b)), length = std::sqrt(own);
  // Of a tiny x nothing but its direction counts.
  const double cosine = std::copysign(length / size, x.real() < 0 ? -1.0 : 1.0);
  const Number direction = length > 0 ? a / length : x / std::abs(x);
  return {cosine, -b * std::conj(direction) * std::copysign(1.0, cosine) / size};
}

void turn_rows(Square& x, Turn by, size_t row, size_t first) {
  for (size_t column = first; column < x.order; ++column) {
    const Number a = x.at(row, column), b = x.at(row + 1, column);
    x.at(row, column) = by.cosine * a - std::conj(by.sine) * b;
    x.at(row + 1, column) = by.sine * a + by.cosine * b;
  }
}

void turn_columns(Square& x, Turn by, size_t column, size_t rows) {
  for (size_t row = 0; row < rows; ++row) {
    const Number a = x.at(row, column), b = x.at(row, column + 1);
    x.at(row, column) = by.cosine * a - by.sine * b;
    x.at(row, column + 1) = std::conj(by.sine) * a + by.cosine * b;
  }
}

/// The eigenvalue of the last two rows and columns up to `end` that is next to their last element; after many
/// steps that led to none, another number.
Number shift_of(const Square& x, size_t end, size_t steps) {
  if ((steps == 10 || steps == 20) && end > 1)
    return std::fabs(x.at(end, end - 1).real()) + std::fabs(x.at(end - 1, end - 2).real());
  Number a = x.at(end - 1, end - 1), b = x.at(end - 1, end), c = x.at(end, end - 1), d = x.at(end, end);
  const double size = std::abs(a) + std::abs(b) + std::abs(c) + std::abs(d);
  a /= size, b /= size, c /= size, d /= size;
  const Number root = std::sqrt((a - d) * (a - d) + 4.0 * (b * c)), whole = a * d - b * c;
  Number first = (a + d + root) / 2.0, second = (a + d - root) / 2.0;
  // Their product is known better than the smaller one.
  if (rough_size(first) > rough_size(second)) {
    second = whole / first;
  } else if (rough_size(second) != 0) {
    first = whole / second;
  }
  return size * (rough_size(first - d) < rough_size(second - d) ? first : second);
}

/// Whether the element below the diagonal is nothing beside those next to it: then it is made nothing.
bool ends_below(Square& x, size_t row) {
  const double around = rough_size(x.at(row, row)) + rough_size(x.at(row + 1, row + 1));
  if (!(rough_size(x.at(row + 1, row)) <= around * kLeast)) return false;
  x.at(row + 1, row) = 0;
  return true;
}

/// A triangle of the Hessenberg form x; whether it came to one.
bool make_triangle(Square& x, Square& turns) {
  constexpr size_t kStepsOfOne = 30;
  size_t left = kStepsOfOne * x.order, steps = 0;
  for (size_t end = x.order - 1;; --left) {
    for (; end > 0 && ends_below(x, end - 1); --end) steps = 0;
    if (end == 0) return true;
    if (left == 0) return false;
    ++steps;
    size_t start = end - 1;
    while (start > 0 && !ends_below(x, start - 1)) --start;
    const Number shift = shift_of(x, end, steps);
    Turn by = turn_of(x.at(start, start) - shift, x.at(start + 1, start));
    for (size_t k = start; k < end; ++k) {
      if (k > start) by = turn_of(x.at(k, k - 1), x.at(k + 1, k - 1));
      turn_rows(x, by, k, k > start ? k - 1 : k);
      if (k > start) x.at(k + 1, k - 1) = 0;
      turn_columns(x, by, k, std::min(k + 2, end) + 1);
      turn_columns(turns, by, k, x.order);
    }
  }
}

/// Of the triangle x eigenvectors as columns, and of what it was made of, by the turns: of length one.
Square vectors_of(const Square& x, const Square& turns) {
  const size_t order = x.order;
  double whole = 0;
  for (const Number each : x.elements) whole += std::norm(each);
  const double least = kLeast * std::max(std::sqrt(whole), std::numeric_limits<double>::min());
  Square own(order), made(order);
  for (size_t k = 0; k < order; ++k) {
    own.at(k, k) = 1;
    for (size_t row = k; row-- > 0;) {
      Number rest = -x.at(row, k);
      for (size_t i = row + 1; i < k; ++i) rest -= x.at(row, i) * own.at(i, k);
      Number apart = x.at(row, row) - x.at(k, k);
      if (apart == 0.0) apart = least;
      own.at(row, k) = rest / apart;
    }
    double size = 0;
    for (size_t row = 0; row < order; ++row) {
      for (size_t i = 0; i <= k; ++i) made.at(row, k) += turns.at(row, i) * own.at(i, k);
      size += std::norm(made.at(row, k));
    }
    for (size_t row = 0; row < order; ++row) made.at(row, k) /= std::sqrt(size);
  }
  return made;
}

/// Values, and vectors as columns, by rising sizes of the values; nothing where the steps came to no end.
struct Eigenvectors {
  std::vector<Number> values;
  Square vectors;
};

Eigenvectors eigenvectors_of(Square x) {
  const size_t order = x.order;
  Eigenvectors made{std::vector<Number>(order, Number(kNoNumber, kNoNumber)), Square(order)};
  double most = 0;
  for (const Number each : x.elements)
    most = std::max({most, std::fabs(each.real()), std::fabs(each.imag())});
  const bool has_numbers = std::all_of(x.elements.begin(), x.elements.end(), [](Number each) {
    return std::isfinite(each.real()) && std::isfinite(each.imag());
  });
  std::fill(made.vectors.elements.begin(), made.vectors.elements.end(), Number(kNoNumber, kNoNumber));
  if (!has_numbers || order == 0) return made;
  const double factor = most == 0 ? 1 : most;
  for (Number& each : x.elements) each /= factor;
  Square turns(order);
  for (size_t k = 0; k < order; ++k) turns.at(k, k) = 1;
  make_hessenberg(x, turns);
  if (!make_triangle(x, turns)) return made;
  made.vectors = vectors_of(x, turns);
  for (size_t k = 0; k < order; ++k) made.values[k] = x.at(k, k) * factor;
  for (size_t k = 0; k < order; ++k) {
    const auto begin = made.values.begin() + static_cast<std::ptrdiff_t>(k);
    const auto least =
        static_cast<size_t>(std::min_element(begin, made.values.end(),
                                             [](Number a, Number b) { return std::abs(a) < std::abs(b); }) -
                            made.values.begin());
    if (least == k) continue;
    std::swap(made.values[k], made.values[least]);
    for (size_t row = 0; row < order; ++row) std::swap(made.vectors.at(row, k), made.vectors.at(row, least));
  }
  return made;
}

}  // namespace

void eigenvectors(const HostCall& call) {
  expect(call, 2, 4);
  const MatrixReader real(call, 0), imaginary(call, 1);
  const size_t order = real.rows();
  if (real.columns() != order || imaginary.rows() != order || imaginary.columns() != order ||
      imaginary.count() != real.count())
    throw Error(ErrorCode::kInvalidPackage, "a host step takes eigenvectors of what are no square matrices");
  std::vector<MatrixWriter> results;
  for (size_t i = 0; i < 4; ++i) results.emplace_back(call, i, real.count(), order, i < 2 ? 1 : order);
  for (size_t i = 0; i < real.count(); ++i) {
    const Matrix a = real[i], b = imaginary[i];
    Square x(order);
    for (size_t k = 0; k < x.elements.size(); ++k) x.elements[k] = {a.elements[k], b.elements[k]};
    const Eigenvectors made = eigenvectors_of(std::move(x));
    for (size_t part = 0; part < 4; ++part) {
      const std::vector<Number>& from = part < 2 ? made.values : made.vectors.elements;
      Matrix own(order, part < 2 ? 1 : order);
      for (size_t k = 0; k < from.size(); ++k)
        own.elements[k] = part % 2 == 0 ? from[k].real() : from[k].imag();
      results[part].put(i, own);
    }
  }
}

}  // namespace tensormill::host_ops
