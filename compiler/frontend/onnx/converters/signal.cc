// Windows and Fourier transforms: a transform is a product with the constant matrix of its complex roots.
#include <algorithm>
#include <cmath>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMaxLength = int64_t{1} << 20;
constexpr int64_t kMaxMatrix = int64_t{1} << 24;
constexpr int64_t kMaxFrames = int64_t{1} << 28;  ///< elements of all frames

int64_t known_length(NodeContext& context, size_t index, const char* what) {
  const int64_t length = context.known_scalar(index, what).element_as_int(0);
  if (length < 0 || length > kMaxLength) context.invalid(std::string(what) + " is " + std::to_string(length));
  return length;
}

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, or one less when the window is symmetric: of
/// one element that is 0, and the element NaN, as the functions that define the operators have it.
void add_window(NodeContext& context, double a0, double a1, double a2) {
  const int64_t size = known_length(context, 0, "size");
  const int64_t period = context.int_attr("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle = 2 * kPi * static_cast<double>(n) / static_cast<double>(period);
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  const DType dtype =
      context.has_attr("output_datatype") ? context.dtype_attr("output_datatype") : DType::kFloat32;
  context.set_output(0, Compose(context).doubles(dtype, values, {size}));
}

/// [in, out] matrices of the real and imaginary parts of e^(-+2 pi i k n / length), over `scale`.
struct Roots {
  std::vector<double> real, imaginary;
};

Roots make_roots(int64_t in, int64_t out, int64_t length, bool inverse) {
  Roots roots;
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1;
  for (int64_t n = 0; n < in; ++n) {
    for (int64_t k = 0; k < out; ++k) {
      const double angle = 2 * kPi * static_cast<double>(n * k % length) / static_cast<double>(length);
      roots.real.push_back(scale * std::cos(angle));
      roots.imaginary.push_back(scale * std::sin(angle) * (inverse ? 1 : -1));
    }
  }
  return roots;
}

using V = ir::ValueId;

/// Lengths up to which a transform is a product with a matrix: of 100 lines of 1,024 both take as long.
constexpr int64_t kMostByMatrix = 1024;

/// Whether a transform is a host step: where its length is free, or too much for a matrix.
bool is_step(const NodeContext& context, int64_t length) {
  return context.is_sample() || length > kMostByMatrix;
}

/// The host step for lines x [..., in, 1 or 2] and a window [length], or kAbsent.
V fourier(NodeContext& context, V x, V window, int64_t length, bool inverse, bool hermitian) {
  Compose c(context);
  const DType dtype = c.dtype(x), wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const V weights = window == ir::kAbsent ? c.filled(wide, {length}, 1) : c.cast(window, wide);
  const V result = context.add(
      "fourier", {c.cast(x, wide), weights},
      {{"axis", context.rank(x) - 2}, {"inverse", int64_t{inverse}}, {"hermitian", int64_t{hermitian}}});
  return c.cast(result, dtype);
}

/// The transform of the second to last axis of x [..., in, 1 or 2], times the window if there is one, to
/// [..., out, 2].
ir::ValueId transform(NodeContext& context, ir::ValueId x, V window, int64_t length, int64_t out,
                      bool inverse) {
  Compose c(context);
  const DType dtype = c.dtype(x);
  const int64_t last = static_cast<int64_t>(c.shape(x).size()) - 1;
  const int64_t parts = c.shape(x)[static_cast<size_t>(last)];
  const bool is_complex = parts == 2;
  if (!is_complex && parts != 1)
    context.invalid("the last axis has " + std::to_string(parts) +
                    " elements, expected 1 (real) or 2 (complex)");
  if (is_step(context, length))
    return c.slice(fourier(context, x, window, length, inverse, false), last - 1, 0, out);
  const int64_t in = std::min(c.shape(x)[static_cast<size_t>(last - 1)], length);
  x = c.slice(x, last - 1, 0, in);
  if (window != ir::kAbsent) x = c.mul(x, c.reshape(window, {length, 1}));
  const Roots roots = make_roots(in, out, length, inverse);
  const V cosine = c.doubles(dtype, roots.real, {in, out}),
          sine = c.doubles(dtype, roots.imaginary, {in, out});
  const ir::ValueId re = c.squeeze(c.slice(x, last, 0, 1), last);
  ir::ValueId real = c.matmul(re, cosine), imaginary = c.matmul(re, sine);
  if (is_complex) {
    const ir::ValueId im = c.squeeze(c.slice(x, last, 1, 1), last);
    real = c.sub(real, c.matmul(im, sine));
    imaginary = c.add(imaginary, c.matmul(im, cosine));
  }
  return c.concat({c.unsqueeze(real, last), c.unsqueeze(imaginary, last)}, last);
}

/// The real signal [..., length, 1] whose transform begins with x [..., in, 2]; the rest are conjugates.
ir::ValueId inverse_of_real(NodeContext& context, ir::ValueId x, int64_t length) {
  Compose c(context);
  if (is_step(context, length)) return fourier(context, x, ir::kAbsent, length, true, true);
  const int64_t last = static_cast<int64_t>(c.shape(x).size()) - 1;
  const int64_t in = std::min(c.shape(x)[static_cast<size_t>(last - 1)], length / 2 + 1);
  x = c.slice(x, last - 1, 0, in);
  const auto product = [&](int64_t index, V matrix) {
    return c.matmul(c.squeeze(c.slice(x, last, index, 1), last), matrix);
  };
  Roots roots = make_roots(in, length, length, true);
  for (int64_t k = 0; k < in; ++k) {
    // Every element but the first and, of an even length, the middle one has a conjugate.
    if (k == 0 || 2 * k == length) continue;
    for (int64_t n = 0; n < length; ++n) {
      roots.real[static_cast<size_t>(k * length + n)] *= 2;
      roots.imaginary[static_cast<size_t>(k * length + n)] *= 2;
    }
  }
  const auto part = [&](int64_t index, const std::vector<double>& matrix) {
    return product(index, c.doubles(c.dtype(x), matrix, {in, length}));
  };
  return c.unsqueeze(c.sub(part(0, roots.real), part(1, roots.imaginary)), last);
}

}  // namespace

void convert_hann_window(NodeContext& context) { add_window(context, 0.5, 0.5, 0); }
void convert_hamming_window(NodeContext& context) { add_window(context, 25.0 / 46, 21.0 / 46, 0); }
void convert_blackman_window(NodeContext& context) { add_window(context, 0.42, 0.5, 0.08); }

// The signal is [..., n, 1 or 2]; the axis is an attribute, from opset 20 on an operand.
void convert_dft(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const int64_t rank = context.rank(x);
  int64_t axis = context.int_attr("axis", 1);
  if (context.opset() >= 20)
    axis = context.has_input(2) ? context.known_scalar(2, "axis").element_as_int(0) : -2;
  axis = context.normalize_axis(axis, rank);
  if (rank < 2 || axis == rank - 1)
    context.invalid("axis " + std::to_string(axis) + " of rank " + std::to_string(rank));
  const bool onesided = context.int_attr("onesided", 0) != 0, inverse = context.int_attr("inverse", 0) != 0;
  const int64_t extent = c.shape(x)[static_cast<size_t>(axis)];
  const int64_t length = context.has_input(1)  ? known_length(context, 1, "dft_length")
                         : inverse && onesided ? 2 * (extent - 1)
                                               : extent;
  if (length < 1) context.invalid("dft_length is " + std::to_string(length));
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 2)]);
  x = c.transpose(x, perm);
  if (inverse && onesided) {
    if (c.shape(x).back() != 2)
      context.invalid("the inverse transform to a real signal is of complex elements");
    context.set_output(0, c.transpose(inverse_of_real(context, x, length), perm));
    return;
  }
  const int64_t out = onesided ? length / 2 + 1 : length;
  context.set_output(0, c.transpose(transform(context, x, ir::kAbsent, length, out, inverse), perm));
}

// Frames of the signal [batch, n, 1 or 2], weighed by the window and transformed.
void convert_stft(NodeContext& context) {
  Compose c(context);
  ir::ValueId x = context.input(0);
  const int64_t step = known_length(context, 1, "frame_step");
  const Shape shape = c.shape(x);
  int64_t length = 0;
  if (context.has_input(3)) {
    length = known_length(context, 3, "frame_length");
  } else if (context.has_input(2)) {
    length = c.shape(context.input(2))[0];
  } else {
    context.invalid("neither window nor frame_length is given");
  }
  if (shape.size() == 2) x = c.unsqueeze(x, 2);
  if (shape.size() < 2 || step < 1 || length < 1 || length > shape[1])
    context.invalid("frames of " + std::to_string(length) + " do not fit a signal of shape " +
                    to_string(shape));
  const int64_t frames = (shape[1] - length) / step + 1;
  if (context.product(frames, length) > kMaxFrames)
    context.unsupported("frame_length", std::to_string(frames) + " frames are not implemented");
  // How many frames there are may depend on a free extent: where each begins, and its elements' places.
  const V starts = c.times(c.ints(c.count_to(frames), {frames, 1}), static_cast<double>(step));
  const V parts = c.gather(x, c.add(starts, c.ints(c.count_to(length), {1, length})), 1);
  const int64_t out = context.int_attr("onesided", 1) != 0 ? length / 2 + 1 : length;
  context.set_output(0, transform(context, parts, context.optional_input(2), length, out, false));
}

// Triangular filters that are equally spaced on the mel scale 2595 log10(1 + f / 700).
void convert_mel_weight_matrix(NodeContext& context) {
  const int64_t bins = known_length(context, 0, "num_mel_bins");
  const int64_t length = known_length(context, 1, "dft_length");
  const double rate = context.known_scalar(2, "sample_rate").element_as_double(0);
  const double low = context.known_scalar(3, "lower_edge_hertz").element_as_double(0);
  const double high = context.known_scalar(4, "upper_edge_hertz").element_as_double(0);
  const int64_t rows = length / 2 + 1;
  if (context.product(rows, bins) > kMaxMatrix || !(rate > 0)) context.invalid("the matrix is too large");
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double mel =
        to_mel(low) + static_cast<double>(i) * (to_mel(high) - to_mel(low)) / static_cast<double>(bins + 2);
    const double hertz = 700 * (std::pow(10.0, mel / 2595) - 1);
    edges.push_back(std::clamp<int64_t>(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)), 0, rows - 1));
  }
  std::vector<double> weights(static_cast<size_t>(rows * bins), 0);
  const auto at = [&](int64_t row, int64_t bin) -> double& {
    return weights[static_cast<size_t>(row * bins + bin)];
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = edges[static_cast<size_t>(bin)], middle = edges[static_cast<size_t>(bin) + 1];
    const int64_t right = edges[static_cast<size_t>(bin) + 2];
    if (left == middle) at(middle, bin) = 1;
    for (int64_t row = left; row <= middle && left != middle; ++row)
      at(row, bin) = static_cast<double>(row - left) / static_cast<double>(middle - left);
    for (int64_t row = middle; row < right; ++row)
      at(row, bin) = static_cast<double>(right - row) / static_cast<double>(right - middle);
  }
  const DType dtype =
      context.has_attr("output_datatype") ? context.dtype_attr("output_datatype") : DType::kFloat32;
  context.set_output(0, Compose(context).doubles(dtype, weights, {rows, bins}));
}

}  // namespace tensormill::frontend::onnx
