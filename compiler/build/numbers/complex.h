/// Complex numbers by their parts, which have one shape and one float type. Functions are those of the
/// principal values; what is infinite or no number is so in the part that it makes so. Thread-safety: as the
/// builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

struct Complex {
  ir::ValueId real = ir::kAbsent, imaginary = ir::kAbsent;
};

/// The parts along a last axis of 2, and the parts that stand there.
ir::ValueId paired(OpBuilder& builder, const Complex& x);
Complex parts_of(OpBuilder& builder, ir::ValueId pairs);

Complex complex_quotient(OpBuilder& builder, const Complex& x, const Complex& y);
Complex complex_square(OpBuilder& builder, const Complex& x);
Complex complex_root(OpBuilder& builder, const Complex& x);
Complex complex_exponential(OpBuilder& builder, const Complex& x);
Complex complex_logarithm(OpBuilder& builder, const Complex& x);
/// The number of that length and angle.
Complex complex_of_polar(OpBuilder& builder, ir::ValueId length, ir::ValueId angle);
Complex conjugate(OpBuilder& builder, const Complex& x);

}  // namespace tensormill::build
