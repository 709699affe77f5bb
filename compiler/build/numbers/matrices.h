/// Matrices x [...,n,m] of any extents, in float64 by host steps and of x's type again. Errors:
/// Error(kInvalidModel) for other shapes. Thread-safety: as the builder.
#pragma once

#include "compiler/build/numbers/complex.h"

namespace tensormill::build {

/// Of square matrices, [...].
ir::ValueId determinants(OpBuilder& builder, ir::ValueId x);
/// The sign of each and the logarithm of its size, [...]: 0 and minus infinity where it is 0.
struct LogDeterminants {
  ir::ValueId sign, log;
};
LogDeterminants log_determinants(OpBuilder& builder, ir::ValueId x);

/// Of square matrices; not finite where there is none.
ir::ValueId inverses(OpBuilder& builder, ir::ValueId x);
/// The x of ax = b, b [...,n,m]; the dims in front broadcast.
ir::ValueId solutions(OpBuilder& builder, ir::ValueId a, ir::ValueId b);
/// Both triangles of p x = l u, x [...,n,n], l without its ones, and i64 [...,n]: which row of x each row of
/// p x is.
struct LuFactors {
  ir::ValueId both, order;
};
LuFactors lu_factors(OpBuilder& builder, ir::ValueId x);
/// The lower triangles l of x = l l^T, zeros above them, by the lower triangles of x; NaN where x is not
/// positive definite.
ir::ValueId cholesky(OpBuilder& builder, ir::ValueId x);
/// The x of ax = b, b [...,n,m], from one triangle of a; the dims in front broadcast. Where `is_unit` is set,
/// the diagonal counts as ones.
struct Triangle {
  bool is_lower = true, is_unit = false;
};
ir::ValueId triangular_solutions(OpBuilder& builder, ir::ValueId a, ir::ValueId b, Triangle form);
/// q [...,n,k] of orthonormal columns and upper triangles r [...,k,m] of x = q r; k is n where `is_full` is
/// set, else the smaller one of n and m.
struct QrFactors {
  ir::ValueId q, r;
};
QrFactors qr_factors(OpBuilder& builder, ir::ValueId x, bool is_full);
/// Of symmetric matrices, by their lower triangles: values [...,n] in rising order, vectors [...,n,n] as
/// columns of length one, each of either sign.
struct Eigenvectors {
  ir::ValueId values, vectors;
};
Eigenvectors symmetric_eigenvectors(OpBuilder& builder, ir::ValueId x);
/// Of any square matrices: values [...,n] in rising order of their sizes, vectors [...,n,n] as columns of
/// length one and of any phase; NaN where there are none.
struct ComplexEigenvectors {
  Complex values, vectors;
};
ComplexEigenvectors eigenvectors(OpBuilder& builder, const Complex& x);
/// x = left diag(values) right^T, values [...,k] in falling order, left [...,n,k] and right [...,m,k] of
/// orthonormal columns, of which there are n and m where `is_full` is set; each pair of either sign.
struct SingularValues {
  ir::ValueId values, left, right;
};
SingularValues singular_values(OpBuilder& builder, ir::ValueId x, bool is_full);
/// Triangles [...,n,m] of x with exchanged rows: u, and below it l without the ones of its diagonal; pivots
/// i32 [...,k], the rows, counted from 1, with which rows 0, 1 ... were exchanged, k the smaller one of n and
/// m.
struct PivotedTriangles {
  ir::ValueId triangles, pivots;
};
PivotedTriangles pivoted_triangles(OpBuilder& builder, ir::ValueId x);
/// Of such pivots the matrices [...,n,n] p of x = p l u, of the triangles' type.
ir::ValueId permutations(OpBuilder& builder, const PivotedTriangles& of);
/// e^x of square matrices.
ir::ValueId matrix_exponentials(OpBuilder& builder, ir::ValueId x);
/// What qr_factors is made of: r [...,n,m] and below it the vectors of reflections, whose factors are
/// [...,k].
struct Reflections {
  ir::ValueId vectors, factors;
};
Reflections qr_reflections(OpBuilder& builder, ir::ValueId x);
/// The first m columns of the product of such reflections, of which there may be fewer.
ir::ValueId product_of_reflections(OpBuilder& builder, const Reflections& of);
/// With its last two axes exchanged.
ir::ValueId matrix_transpose(OpBuilder& builder, ir::ValueId x);

}  // namespace tensormill::build
