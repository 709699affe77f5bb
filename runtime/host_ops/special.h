/// Functions of real numbers that are sums of as many terms as the numbers ask for. Thread-safety: pure
/// functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// As many operands, float64 of one shape, as the function of attribute "name" takes -> its values:
/// "gamma_lower" and "gamma_upper" (a, x): the regularized incomplete gamma functions; NaN for a <= 0 or x <
/// 0; "beta" (a, b, x): the regularized incomplete beta function; NaN for a <= 0, b <= 0 or x outside of
/// [0,1]; "zeta" (x, q): Hurwitz's, the sum over k of (k + q)^-x; NaN for x < 1; "polygamma" (n, x): the
/// derivative n of digamma, n = 0, 1 ...; NaN for other n; Bessel's "bessel_j0", "bessel_j1", "bessel_y0",
/// "bessel_y1", and the modified "bessel_i0", "bessel_i1", "bessel_k0", "bessel_k1" (x), with an "e" behind
/// them times e^-|x| and e^x; NaN for x < 0 but for j and i.
/// By series and continued fractions (Press et al., Numerical Recipes, 6.2 and 6.4), Temme's uniform
/// expansion (DLMF 8.12) and Euler and Maclaurin's sum (DLMF 25.11.5), within some units of the last place of
/// the terms' sizes; NaN for what some thousand terms do not settle.
void special_function(const HostCall& call);

/// How many operands the function has; 0: there is none of the name.
size_t special_operands(std::string_view name);

}  // namespace tensormill::host_ops
