/// Forms of matrices, and reflections, that decompositions share. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "runtime/host_ops/matrix_steps.h"

namespace tensormill::host_ops {

Matrix identity(size_t rows, size_t columns);
Matrix filled(size_t rows, size_t columns, double value);
bool is_finite(const Matrix& x);
/// Divides by the size of the largest element, which is returned; 1 for a matrix of zeros.
double scaled(Matrix& x);

/// The reflection 1 - tau v v^T that leaves of the elements `first` ... of a column the first one, with the
/// other sign: that one is stored, and v, whose first element is one, below it. Returns tau.
double reflect(Matrix& x, size_t first, size_t column);
/// v of the reflection that stands in the column.
std::vector<double> reflector(const Matrix& x, size_t first, size_t column);
/// Rows `first` ... of y, from a column on, reflected.
void apply_reflection(const std::vector<double>& v, double tau, Matrix& y, size_t first, size_t column);
/// Leaves an upper triangle by reflections, whose vectors stand below it; their factors.
std::vector<double> reflect_columns(Matrix& x);
/// The first columns of the product of the reflections that stand in x, the one of a column `below` the
/// diagonal.
Matrix product_of_reflections(const Matrix& x, const std::vector<double>& taus, size_t below, size_t columns);

}  // namespace tensormill::host_ops
