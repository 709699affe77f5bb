/// Host steps on matrices [n,rows,columns], one after the other, of any extents: in double, O(rows^3) each.
/// Matrices of which there are none have whatever extents a plan says. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x [n,m,m] (float32, float64, float16, bfloat16) -> the determinant of each matrix, [n]: the product of the
/// pivots of Gaussian elimination with row exchange (Golub and Van Loan, Matrix Computations, 3.4), rounded
/// once. Of an empty matrix it is 1.
void determinants(const HostCall& call);

/// The operands and results of the following are float64. Of a matrix with elements that are not finite the
/// factors are NaN.

/// x [n,m,m] -> the sign [n] of each determinant, 0 where it is 0, and the logarithm [n] of its size.
void log_determinants(const HostCall& call);
/// a [n,m,m], b [n,m,k] -> the x [n,m,k] of ax = b, by the same elimination; not finite where a has no
/// inverse.
void solve_matrices(const HostCall& call);
/// The same by the triangle of a that attribute "lower" says; with attribute "unit" its diagonal is ones.
void solve_triangles(const HostCall& call);
/// x [n,m,m], of which the lower triangle counts -> the lower triangle l of x = l l^T, zeros above it; NaN
/// where x is not positive definite.
void cholesky_factors(const HostCall& call);
/// x [n,r,c] -> q [n,r,k] of orthonormal columns and the upper triangle r [n,k,c] of x = q r, by Householder
/// reflections (ibid. 5.2) with the signs that LAPACK's have; k is what the results hold: r, or the smaller
/// one of r and c.
void qr_factors(const HostCall& call);
/// x [n,m,m] symmetric, of which the lower triangle counts -> its eigenvalues [n,m] in rising order, and the
/// eigenvectors [n,m,m], columns of length one: a tridiagonal form, and implicit QR steps (ibid. 8.3).
void symmetric_eigenvectors(const HostCall& call);
/// Real parts [n,m,m], imaginary parts -> both parts of the eigenvalues [n,m], in rising order of their
/// sizes, and of the eigenvectors [n,m,m], columns of length one and of any phase: QR steps on a
/// Hessenberg form (ibid. 7.4, 7.5). NaN, too, where the steps come to no end.
void eigenvectors(const HostCall& call);
/// x [n,r,c] -> its singular values [n,k] in falling order, u [n,r,i] and v [n,c,j] of orthonormal columns
/// with x = u diag(values) v^T, by rotations of columns (one-sided Jacobi, ibid. 8.6); k is the smaller one
/// of r and c, and i and j are k or all of r and c. Columns have either sign.
void singular_values(const HostCall& call);

/// x [n,r,c] -> both triangles [n,r,c] of p x = l u, ones on the diagonal of l left out, and pivots [n,1,k]:
/// row i was exchanged for that one, counted from 1; k is the smaller one of r and c. By the same
/// elimination; a column without a pivot other than 0 stays as it is.
void pivoted_triangles(const HostCall& call);
/// pivots [n,1,k], x [n,r,c] -> the rows [n,r] of x, counted from 0, in the order in which these exchanges
/// leave them. A pivot that is no row is Error(kTensorData).
void pivoted_rows(const HostCall& call);
/// x [n,m,m] -> e^x: a Taylor polynomial of x by a power of two, squared as often (ibid. 9.3).
void matrix_exponentials(const HostCall& call);
/// x [n,r,c] -> its r above the diagonal, the vectors of the reflections of qr_factors below it, and their
/// factors [n,k,1].
void qr_reflections(const HostCall& call);
/// The first c columns of the product of such reflections x [n,r,c], factors [n,1,k].
void product_of_reflections_step(const HostCall& call);

/// Elements row after row.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<double> elements;

  Matrix(size_t rows_of, size_t columns_of)
      : rows(rows_of), columns(columns_of), elements(rows_of * columns_of) {}
  double* row(size_t index) { return elements.data() + index * columns; }
  const double* row(size_t index) const { return elements.data() + index * columns; }
  double& at(size_t row_of, size_t column) { return elements[row_of * columns + column]; }
  double at(size_t row_of, size_t column) const { return elements[row_of * columns + column]; }
};

/// Matrices in an operand, none where the call's results are empty, or the memory of those of a result, which
/// has `count` of this form.
class MatrixReader {
public:
  MatrixReader(const HostCall& call, size_t index);
  size_t count() const { return count_; }
  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  Matrix operator[](size_t index) const;

private:
  const double* data_;
  size_t count_, rows_, columns_;
};
class MatrixWriter {
public:
  MatrixWriter(const HostCall& call, size_t index, size_t count, size_t rows, size_t columns);
  void put(size_t index, const Matrix& matrix);

private:
  double* data_;
  size_t size_;
};
/// How many columns the matrices of a result have, of `count` that have as many rows; `none` where there are
/// none of them. Throws Error(kInvalidPackage) where they fill it not.
size_t columns_of_result(const HostCall& call, size_t index, size_t count, size_t rows, size_t none);

}  // namespace tensormill::host_ops
