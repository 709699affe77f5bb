/// Outputs of a run beside those of a reference. Thread-safety: pure function.
#pragma once

#include <vector>

#include "runtime/base/json_fwd.h"
#include "runtime/npz/npz.h"

namespace tensormill::server {

/// How far an element of floats may be from the reference's: absolute + relative × the largest magnitude in
/// the reference's tensor, since sums of other order are as wrong as their terms are large. Of other types
/// only `absolute` counts.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-6;
};

/// [{"name","elements","max_abs_error","largest"}] for each output of the reference, in its order: the
/// largest difference, and the largest magnitude in the reference's tensor. Infinities and NaN are right
/// where the reference has them. Throws Error(kWrongAnswer) that names the worst element of each output that
/// is wrong, or an output that is missing or has another shape or type.
Json check_outputs(const std::vector<npz::NamedTensor>& expected, const std::vector<npz::NamedTensor>& got,
                   const Tolerance& tolerance);

}  // namespace tensormill::server
