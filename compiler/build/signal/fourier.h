/// Fourier transforms of lines: x is [..., n, 1 or 2], of real numbers or of complex ones, whose parts stand
/// along the last axis. A short transform is a product with the constant matrix of its roots, others are a
/// step of the host. Errors: Error(kInvalidModel) for a last axis of another extent. Thread-safety: as the
/// builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Throws where a last axis of that extent has neither real nor complex numbers.
void check_parts(const OpBuilder& builder, const ir::SymInt& parts);

/// How many numbers of a real line's transform the others are conjugates of.
ir::SymInt half_of(const ir::SymInt& length);

/// The transform of the first `length` numbers of each line, zeros behind those that there are, times the
/// window if there is one: [..., length, 2], or the first half of it.
ir::ValueId fourier(OpBuilder& builder, ir::ValueId x, ir::ValueId window, const ir::SymInt& length,
                    bool is_half, bool is_inverse);

/// The same of x [..., 1 or 2] along any of its axes but the last.
ir::ValueId fourier_along(OpBuilder& builder, ir::ValueId x, int64_t axis, const ir::SymInt& length,
                          bool is_half, bool is_inverse);

/// The real lines [..., length, 1] whose transforms begin with x [..., n, 2]; the rest are conjugates.
ir::ValueId fourier_real(OpBuilder& builder, ir::ValueId x, const ir::SymInt& length);
/// The same along any axis of x [..., 2] but the last: [..., 1].
ir::ValueId fourier_real_along(OpBuilder& builder, ir::ValueId x, int64_t axis, const ir::SymInt& length);

}  // namespace tensormill::build
