/// Discrete Fourier transforms of any length, in O(n log n). Thread-safety: a plan may serve one thread at a
/// time; the step is a pure function.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x [..., m, 1 or 2] (float32 or float64; real, or real and imaginary parts), window [n] of its type ->
/// [..., n, 2]: the transform of the first n elements of each line, zeros behind the last, times the window.
/// Attribute "inverse": 1 for the inverse, divided by n. "hermitian" (of complex x, inverse): x is the
/// beginning of a line whose rest are conjugates, and the result is real, [..., n, 1]. Sums are in double,
/// rounded once. A length m (i64 [1], optional) within [0, n] is that of the transform in place of n: what is
/// behind its m elements is 0.
void fourier(const HostCall& call);

/// The transform of one length, not divided: y[k] = sum over n of x[n] e^(-+2 pi i k n / length). Lengths
/// with small prime factors by a mixed radix (KISS FFT), others by a convolution with a chirp (Bluestein, "A
/// linear filtering approach to the computation of discrete Fourier transform", 1970).
class FourierPlan {
public:
  using Complex = std::complex<double>;
  /// `length`: 1 at least.
  FourierPlan(size_t length, bool inverse);
  ~FourierPlan();
  FourierPlan(const FourierPlan&) = delete;
  FourierPlan& operator=(const FourierPlan&) = delete;
  /// Both have the length; they may not overlap.
  void run(std::span<const Complex> x, std::span<Complex> y);
  /// Of numbers without imaginary parts; in half the time where the length is even.
  void run_real(std::span<const double> x, std::span<Complex> y);

private:
  class Radix;
  class Chirp;
  std::unique_ptr<Radix> radix_;
  bool is_inverse_;
  std::unique_ptr<Radix> half_;   ///< of half the length, where that is for real numbers; never inverse
  std::unique_ptr<Chirp> chirp_;  ///< where the length needs it
  std::vector<Complex> line_;
};

}  // namespace tensormill::host_ops
