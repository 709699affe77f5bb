#include "runtime/host_ops/fourier.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <kissfft.hh>
#include <numbers>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

using Complex = FourierPlan::Complex;

/// Of a larger prime factor p the mixed radix takes p times as long as of small ones, the chirp four to eight
/// times.
constexpr size_t kLargestFactor = 13;

bool has_small_factors(size_t length) {
  for (size_t factor = 2; factor <= kLargestFactor; ++factor) {
    while (length % factor == 0) length /= factor;
  }
  return length == 1;
}

}  // namespace

class FourierPlan::Radix {
public:
  Radix(size_t length, bool inverse) : length_(length), plan_(length, inverse) {}
  void run(const Complex* x, Complex* y) const {
    // The mixed radix takes a length of 1 for one with a factor.
    if (length_ == 1) {
      *y = *x;
    } else {
      plan_.transform(x, y);
    }
  }
  /// Twice the length of numbers; y gets as many elements, those behind the middle are conjugates. Of plans
  /// that are not inverse: the library's own inverse of real numbers has a wrong sign in the middle.
  void run_real(const double* x, Complex* y) const {
    plan_.transform_real(x, y);
    y[length_] = y[0].imag();
    y[0] = y[0].real();
    for (size_t k = 1; k < length_; ++k) y[2 * length_ - k] = std::conj(y[k]);
  }

private:
  size_t length_;
  kissfft<double> plan_;
};

/// k n = (k^2 + n^2 - (k - n)^2) / 2: the transform is a convolution with w[n] = e^(+-pi i n^2 / length).
class FourierPlan::Chirp {
public:
  Chirp(size_t length, bool inverse)
      : length_(length),
        padded_(std::bit_ceil(2 * length - 1)),
        forward_(padded_, false),
        backward_(padded_, true),
        weights_(length),
        kernel_(padded_),
        line_(padded_),
        spectrum_(padded_) {
    const double turn = (inverse ? 1 : -1) * std::numbers::pi / static_cast<double>(length);
    for (size_t n = 0; n < length; ++n)
      weights_[n] = std::polar(1.0, turn * static_cast<double>(n * n % (2 * length)));
    line_[0] = std::conj(weights_[0]);
    for (size_t n = 1; n < length; ++n) line_[n] = line_[padded_ - n] = std::conj(weights_[n]);
    forward_.run(line_.data(), kernel_.data());
  }

  void run(const Complex* x, Complex* y) {
    std::fill(line_.begin(), line_.end(), Complex());
    for (size_t n = 0; n < length_; ++n) line_[n] = x[n] * weights_[n];
    forward_.run(line_.data(), spectrum_.data());
    for (size_t k = 0; k < padded_; ++k) spectrum_[k] *= kernel_[k];
    backward_.run(spectrum_.data(), line_.data());
    for (size_t k = 0; k < length_; ++k) y[k] = line_[k] * weights_[k] / static_cast<double>(padded_);
  }

private:
  size_t length_, padded_;
  Radix forward_, backward_;
  std::vector<Complex> weights_, kernel_, line_, spectrum_;
};

FourierPlan::FourierPlan(size_t length, bool inverse) : is_inverse_(inverse) {
  if (has_small_factors(length)) {
    radix_ = std::make_unique<Radix>(length, inverse);
    if (length % 2 == 0 && length > 2) half_ = std::make_unique<Radix>(length / 2, false);
  } else {
    chirp_ = std::make_unique<Chirp>(length, inverse);
  }
}

FourierPlan::~FourierPlan() = default;

void FourierPlan::run(std::span<const Complex> x, std::span<Complex> y) {
  if (radix_) {
    radix_->run(x.data(), y.data());
  } else {
    chirp_->run(x.data(), y.data());
  }
}

void FourierPlan::run_real(std::span<const double> x, std::span<Complex> y) {
  if (!half_) {
    line_.assign(x.begin(), x.end());
    return run(line_, y);
  }
  half_->run_real(x.data(), y.data());
  if (is_inverse_)
    std::transform(y.begin(), y.end(), y.begin(), [](const Complex& z) { return std::conj(z); });
}

namespace {

/// Signals one behind the other, of `parts` numbers an element.
struct Signals {
  size_t count = 1, extent = 0, parts = 0;
};

struct Form {
  bool inverse, hermitian;
};

/// A line of complex numbers, times the window: behind its last are zeros, or the conjugates of those before.
template <typename T>
void read_line(const T* x, const Signals& signals, const T* window, const Form& form,
               std::span<Complex> line) {
  const size_t length = line.size();
  const size_t given = std::min(signals.extent, form.hermitian ? length / 2 + 1 : length);
  for (size_t n = 0; n < length; ++n) {
    const T* element = x + 2 * n;
    line[n] =
        n >= given ? Complex() : Complex(static_cast<double>(element[0]), static_cast<double>(element[1]));
  }
  for (size_t n = length / 2 + 1; form.hermitian && n < length; ++n) line[n] = std::conj(line[length - n]);
  for (size_t n = 0; n < length; ++n) line[n] *= static_cast<double>(window[n]);
}

/// Of transforms of `length`; there is room for the window's.
template <typename T>
void run_signals(const Tensor& x, const Signals& signals, const Tensor& window, size_t length,
                 const Form& form, T* y) {
  const size_t behind = (static_cast<size_t>(window.num_elements()) - length) * (form.hermitian ? 1 : 2);
  FourierPlan plan(length, form.inverse);
  const bool is_real = signals.parts == 1;
  std::vector<Complex> line(is_real ? 0 : length), result(length);
  std::vector<double> numbers(is_real ? length : 0);
  const T *in = static_cast<const T*>(x.data()), *weights = static_cast<const T*>(window.data());
  const double scale = form.inverse ? 1.0 / static_cast<double>(length) : 1.0;
  for (size_t i = 0; i < signals.count; ++i, in += signals.extent * signals.parts) {
    if (is_real) {
      for (size_t n = 0; n < std::min(length, signals.extent); ++n)
        numbers[n] = static_cast<double>(in[n]) * static_cast<double>(weights[n]);
      plan.run_real(numbers, result);
    } else {
      read_line(in, signals, weights, form, line);
      plan.run(line, result);
    }
    for (const Complex& each : result) {
      *y++ = static_cast<T>(each.real() * scale);
      if (!form.hermitian) *y++ = static_cast<T>(each.imag() * scale);
    }
    y = std::fill_n(y, behind, T{0});
  }
}

}  // namespace

void fourier(const HostCall& call) {
  const bool is_counted = call.inputs.size() == 3;
  expect(call, is_counted ? 3 : 2, 1);
  const Tensor x = copied(call.inputs[0]), window = copied(call.inputs[1]);
  const Attributes attributes(call);
  const Form form{attributes.flag("inverse"), attributes.flag("hermitian")};
  const Shape& shape = x.shape();
  const bool fits =
      (x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64) && window.dtype() == x.dtype() &&
      window.shape().size() == 1 && shape.size() >= 2 &&
      (shape.back() == 2 || (shape.back() == 1 && !form.hermitian)) &&
      (!is_counted || (call.inputs[2].dtype == DType::kInt64 && call.inputs[2].shape == Shape{1}));
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step transforms what are no lines of numbers");
  Signals signals;
  for (size_t d = 0; d + 2 < shape.size(); ++d) signals.count *= static_cast<size_t>(shape[d]);
  signals.extent = static_cast<size_t>(shape[shape.size() - 2]);
  signals.parts = static_cast<size_t>(shape.back());
  const int64_t most = window.num_elements();
  const size_t elements = signals.count * static_cast<size_t>(most) * (form.hermitian ? 1 : 2);
  void* target = storage(call, 0, elements, dtype_bytes(x.dtype()));
  if (elements == 0) return;
  const int64_t wanted = is_counted ? copied(call.inputs[2]).element_as_int(0) : most;
  const auto length = static_cast<size_t>(std::clamp<int64_t>(wanted, 0, most));
  if (length == 0) {
    std::memset(target, 0, elements * dtype_bytes(x.dtype()));
  } else if (x.dtype() == DType::kFloat32) {
    run_signals(x, signals, window, length, form, static_cast<float*>(target));
  } else {
    run_signals(x, signals, window, length, form, static_cast<double*>(target));
  }
}

}  // namespace tensormill::host_ops
