/// What is computed of a sum's elements one by one goes into the sum's loops: a bias, an activation, another
/// operand that is added. Thread-safety: pure functions.
#pragma once

#include <optional>

#include "compiler/plan/generic_nest.h"

namespace tensormill::plan {

/// The sum that nest `last` alone reads, among those before it; nothing where there is none. Of several the
/// last one of which with_epilogue() makes one nest, or of those that it does not take.
std::optional<size_t> sum_before(const Nests& nests, size_t last);

/// Both nests as one, `input` being where `last` reads the sum: its inputs are the sum's and then the others
/// of `last`. Nothing where elements of `last` are of other places of the sum, or of another shape.
std::optional<Nest> with_epilogue(const Nest& sum, const Nest& last, size_t input);

}  // namespace tensormill::plan
