/// Square matrices x [...,n,n], computed in float64 and of x's type again. Errors: Error(kInvalidModel) for
/// other shapes. Thread-safety: as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// [...]
ir::ValueId determinants(OpBuilder& builder, ir::ValueId x);
/// The sign of each and the logarithm of its size, [...]: 0 and minus infinity where it is 0.
struct LogDeterminants {
  ir::ValueId sign, log;
};
LogDeterminants log_determinants(OpBuilder& builder, ir::ValueId x);

/// The following are of matrices that are small where models have them: UnsupportedForm for more than 32
/// rows, or for as many as a free dim says.

/// By the cofactors.
ir::ValueId inverses(OpBuilder& builder, ir::ValueId x);
/// The x of ax = b, b [...,n,m]; the dims in front broadcast.
ir::ValueId solutions(OpBuilder& builder, ir::ValueId a, ir::ValueId b);
/// The lower triangles l of x = l l^T, zeros above them, by the lower triangles of x; NaN where x is not
/// positive definite.
ir::ValueId cholesky(OpBuilder& builder, ir::ValueId x);
/// The x of ax = b, b [...,n,m], from one triangle of a; the dims in front broadcast. Where `is_unit` is set,
/// the diagonal counts as ones.
struct Triangle {
  bool is_lower = true, is_unit = false;
};
ir::ValueId triangular_solutions(OpBuilder& builder, ir::ValueId a, ir::ValueId b, Triangle form);
/// With its last two axes exchanged.
ir::ValueId matrix_transpose(OpBuilder& builder, ir::ValueId x);

}  // namespace tensormill::build
