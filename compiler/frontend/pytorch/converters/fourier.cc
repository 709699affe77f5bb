// Fourier transforms, of tensors and of frames of signals, and the windows of frames.
#include <algorithm>

#include "compiler/build/signal/fourier.h"
#include "compiler/build/signal/frames.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// What a transform is divided by: nothing, the root of the number of its elements, or that number.
enum class Norm : uint8_t { kNone, kRoot, kWhole };

/// Axes of the tensor, and how long the lines along each are.
struct Lines {
  std::vector<int64_t> axes;
  ir::SymShape lengths;
};

/// x, of which inverse transforms are divided by the number of elements already.
V scaled(NodeContext& node, V x, const Lines& lines, Norm norm, bool is_inverse) {
  Compose c(node);
  if (norm == (is_inverse ? Norm::kWhole : Norm::kNone)) return x;
  ir::SymInt count = 1;
  for (const ir::SymInt& length : lines.lengths) count = node.product(count, length);
  const V number = c.extent(x, count), root = norm == Norm::kRoot ? c.unary("sqrt", number) : number;
  return is_inverse ? c.mul(x, root) : c.div(x, root);
}

void check_lines(NodeContext& node, const Lines& lines) {
  for (const ir::SymInt& length : lines.lengths)
    if (!ir::demand(ir::Relation::kLessEqual, 1, length)) node.invalid("lines of " + to_string(length));
}

/// x [..., 1 or 2] along all the axes, the last one first, of which half is there where `is_half` is set.
V transformed(NodeContext& node, V x, const Lines& lines, Norm norm, bool is_inverse, bool is_half) {
  check_lines(node, lines);
  for (size_t i = lines.axes.size(); i-- > 0;)
    x = build::fourier_along(node, x, lines.axes[i], lines.lengths[i], is_half && i + 1 == lines.axes.size(),
                             is_inverse);
  return scaled(node, x, lines, norm, is_inverse);
}

/// Halves [..., 2] back to the real lines that they are of: along the last one of the axes at the end.
V back_to_real(NodeContext& node, V x, const Lines& lines, Norm norm) {
  Compose c(node);
  check_lines(node, lines);
  if (lines.axes.empty()) node.invalid("it has no axes");
  for (size_t i = 0; i + 1 < lines.axes.size(); ++i)
    x = build::fourier_along(node, x, lines.axes[i], lines.lengths[i], false, true);
  x = build::fourier_real_along(node, x, lines.axes.back(), lines.lengths.back());
  return scaled(node, c.squeeze(x, node.rank(x) - 1), lines, norm, true);
}

/// The tensor as the transforms take it: [..., 2], or [..., 1] of real numbers.
V numbers_of(NodeContext& node) {
  if (node.is_complex("self")) return node.pairs("self");
  const V x = floated(node, node.tensor("self"));
  return Compose(node).unsqueeze(x, node.rank(x));
}

/// With parts that are there even where all imaginary ones are 0.
V with_pairs(NodeContext& node, V x) {
  Compose c(node);
  if (same(node.shape(x).back(), 2)) return x;
  return c.concat({x, c.filled(node.dtype(x), node.shape(x), 0)}, node.rank(x) - 1);
}

V conjugated(NodeContext& node, V pairs) {
  return build::paired(node, build::conjugate(node, build::parts_of(node, pairs)));
}

Norm norm_of(NodeContext& node, bool is_forward) {
  const std::string name = node.has("norm") ? node.text("norm") : "backward";
  if (name == "ortho") return Norm::kRoot;
  if (name != "backward" && name != "forward") node.invalid("norm is \"" + name + "\"");
  return (name == "forward") == is_forward ? Norm::kWhole : Norm::kNone;
}

/// Of the functions of torch.fft: the axes that they name, or all, or as many of the last as there are
/// lengths.
Lines lines_of(NodeContext& node, const ir::SymShape& shape, bool is_to_real) {
  Lines lines;
  const auto rank = static_cast<int64_t>(shape.size());
  ir::SymShape given;
  if (takes(node, "n")) {
    lines.axes = {node.axis("dim", rank)};
    if (node.has("n")) given = {node.sym("n")};
    if (!given.empty() && same(given[0], -1)) node.invalid("lines of -1");
  } else {
    if (node.has("s")) given = node.syms("s");
    const auto count = node.has("s") ? static_cast<int64_t>(given.size()) : rank;
    if (count > rank) node.invalid("more lengths than axes");
    if (node.has("dim")) {
      lines.axes = node.axes("dim", rank);
    } else {
      for (int64_t axis = rank - count; axis < rank; ++axis) lines.axes.push_back(axis);
    }
  }
  if (!given.empty() && given.size() != lines.axes.size()) node.invalid("lengths of other axes");
  for (size_t i = 0; i < lines.axes.size(); ++i) {
    const ir::SymInt& extent = shape[static_cast<size_t>(lines.axes[i])];
    const bool is_half = is_to_real && i + 1 == lines.axes.size();
    const bool is_open = given.empty() || (given[i].is_constant() && given[i].hint() == -1);
    lines.lengths.push_back(!is_open ? given[i] : is_half ? 2 * (extent - 1) : extent);
  }
  return lines;
}

}  // namespace

// fft_fft, fft_irfft2 and so on.
void convert_fft(NodeContext& node) {
  const std::string name = node.op().substr(4);
  const bool is_hermitian = name.find("hfft") != std::string::npos;
  const bool is_real = is_hermitian || name.find("rfft") != std::string::npos;
  // hfft goes to real lines, and counts as a forward transform.
  const bool is_inverse = name.starts_with("i"), is_to_real = is_real && is_inverse != is_hermitian;
  V x = numbers_of(node);
  ir::SymShape shape = node.shape(x);
  shape.pop_back();
  const Lines lines = lines_of(node, shape, is_to_real);
  if (is_to_real) {
    x = with_pairs(node, x);
    if (is_hermitian) x = conjugated(node, x);
    return node.set_output(0, back_to_real(node, x, lines, norm_of(node, is_hermitian)));
  }
  if (is_real && node.is_complex("self")) node.invalid("of complex numbers");
  if (!is_hermitian) {
    const Norm norm = norm_of(node, !is_inverse);
    return node.set_pairs(0, with_pairs(node, transformed(node, x, lines, norm, is_inverse, is_real)));
  }
  const V y = transformed(node, x, lines, norm_of(node, false), false, true);
  node.set_pairs(0, conjugated(node, y));
}

// What those are made of: normalization is a number.
void convert_fft_kernel(NodeContext& node) {
  const std::string& op = node.op();
  V x = numbers_of(node);
  ir::SymShape shape = node.shape(x);
  shape.pop_back();
  const int64_t number = node.integer("normalization");
  if (number < 0 || number > 2) node.invalid("normalization is " + std::to_string(number));
  const auto norm = static_cast<Norm>(number);
  Lines lines;
  lines.axes = node.axes("dim", static_cast<int64_t>(shape.size()));
  for (const int64_t axis : lines.axes) lines.lengths.push_back(shape[static_cast<size_t>(axis)]);
  if (op == "_fft_c2r") {
    if (lines.axes.empty()) node.invalid("it has no axes");
    lines.lengths.back() = node.sym("last_dim_size");
    return node.set_output(0, back_to_real(node, with_pairs(node, x), lines, norm));
  }
  const bool is_half = op == "_fft_r2c" && node.flag("onesided");
  const bool is_inverse = op == "_fft_c2c" && !node.flag("forward");
  node.set_pairs(0, with_pairs(node, transformed(node, x, lines, norm, is_inverse, is_half)));
}

namespace {

struct FrameForm {
  int64_t length, step;  ///< of frames, and from one to the next
  int64_t window_length;
};

FrameForm frame_form(NodeContext& node) {
  const int64_t length = node.integer("n_fft");
  const int64_t step = node.has("hop_length") ? node.integer("hop_length") : length / 4;
  const int64_t window = node.has("win_length") ? node.integer("win_length") : length;
  if (length < 1 || step < 1 || window < 1 || window > length)
    node.invalid("frames of " + std::to_string(length) + " by steps of " + std::to_string(step) +
                 " with a window of " + std::to_string(window));
  return {length, step, window};
}

/// The window in the middle of a frame; kAbsent where it changes nothing.
V window_of(NodeContext& node, const FrameForm& form, DType dtype) {
  Compose c(node);
  V window = node.optional_tensor("window");
  if (window == ir::kAbsent && form.window_length == form.length) return window;
  window = window == ir::kAbsent ? c.filled(dtype, {form.window_length}, 1) : c.cast(window, dtype);
  if (!same(node.shape(window), ir::SymShape{form.window_length}))
    node.invalid("a window of shape " + to_string(node.shape(window)));
  const int64_t left = (form.length - form.window_length) / 2;
  if (form.window_length == form.length) return window;
  return padded(node, window, {left, form.length - form.window_length - left}, "constant", 0);
}

/// A signal or a batch of them as a batch: [batch, n, parts].
V signals_of(NodeContext& node, V x) {
  const int64_t rank = node.rank(x) - 1;
  if (rank == 1) return Compose(node).unsqueeze(x, 0);
  if (rank != 2) node.invalid("signals of rank " + std::to_string(rank));
  return x;
}

}  // namespace

// Frames of the signals [batch, n] under the window, transformed: [batch, bins, frames].
void convert_stft(NodeContext& node) {
  Compose c(node);
  const FrameForm form = frame_form(node);
  const bool is_complex = node.is_complex("self");
  V x = numbers_of(node);
  const bool is_single = node.rank(x) == 2;
  x = signals_of(node, x);
  if (node.has("align_to_window") && node.flag("align_to_window"))
    node.unsupported("align_to_window", "frames that are as long as the window are not implemented");
  if (takes(node, "center") && node.flag("center")) {
    const int64_t by = form.length / 2;
    std::string mode = node.text("pad_mode");
    if (mode == "replicate") mode = "edge";
    if (mode == "circular") mode = "wrap";
    x = padded(node, x, {0, by, 0, 0, by, 0}, mode, 0);
  }
  const bool is_half = node.has("onesided") ? node.flag("onesided") : !is_complex;
  if (is_half && is_complex) node.invalid("half of the transforms of complex signals");
  if (!ir::demand(ir::Relation::kLessEqual, form.length, node.shape(x)[1]))
    node.invalid("frames of " + std::to_string(form.length) + " in signals of " +
                 to_string(node.shape(x)[1]));
  const V window = window_of(node, form, node.dtype(x));
  const V frames = build::frames_of(node, x, 1, form.length, form.step);
  V y = build::fourier(node, frames, window, form.length, is_half, false);
  const Lines lines{{2}, {form.length}};
  y = scaled(node, y, lines, node.flag("normalized") ? Norm::kRoot : Norm::kNone, false);
  y = c.transpose(y, {0, 2, 1, 3});
  if (is_single) y = c.squeeze(y, 0);
  if (!node.has("return_complex") || node.flag("return_complex")) return node.set_pairs(0, y);
  node.set_output(0, y);
}

namespace {

/// y, of signals that frames were added up to, by the squares of the windows that lie on each place. Where
/// none does, torch refuses the window.
V without_windows(NodeContext& node, V y, V window, const ir::SymInt& frames, const FrameForm& form) {
  Compose c(node);
  if (window == ir::kAbsent) window = c.filled(node.dtype(y), {form.length}, 1);
  const V squares = c.expand(c.reshape(c.mul(window, window), {1, 1, form.length}), {1, frames, form.length});
  return c.div(y, build::added_frames(node, squares, form.step));
}

}  // namespace

// The signals of whose frames the transforms [batch, bins, frames] are: frames under the window, added up
// where they lie on each other.
void convert_istft(NodeContext& node) {
  Compose c(node);
  const FrameForm form = frame_form(node);
  V x = node.pairs("self");
  const bool is_single = node.rank(x) == 3;
  if (is_single) x = c.unsqueeze(x, 0);
  if (node.rank(x) != 4) node.invalid("transforms of rank " + std::to_string(node.rank(x) - 1));
  const ir::SymInt bins = node.shape(x)[1], frames = node.shape(x)[2];
  const bool is_half = node.has("onesided") ? node.flag("onesided") : !(bins == form.length);
  const ir::SymInt there = is_half ? ir::SymInt(form.length / 2 + 1) : ir::SymInt(form.length);
  if (!ir::demand(ir::Relation::kEqual, bins, there))
    node.invalid(to_string(bins) + " bins of frames of " + std::to_string(form.length));
  if (!ir::demand(ir::Relation::kLessEqual, 1, frames)) node.invalid("no frames");
  if (node.flag("return_complex")) node.unsupported("return_complex", "complex signals are not implemented");
  const Norm norm = node.flag("normalized") ? Norm::kRoot : Norm::kWhole;
  const V lines = c.transpose(x, {0, 2, 1, 3});
  V y = back_to_real(node, lines, {{2}, {form.length}}, norm);
  const V window = window_of(node, form, node.dtype(y));
  if (window != ir::kAbsent) y = c.mul(y, window);
  y = without_windows(node, build::added_frames(node, y, form.step), window, frames, form);
  const ir::SymInt all = node.shape(y)[1];
  const bool is_centered = node.flag("center");
  const ir::SymInt start = is_centered ? form.length / 2 : 0;
  const ir::SymInt end = node.has("length") ? start + node.sym("length")
                         : is_centered      ? all - form.length / 2
                                            : all;
  if (!ir::demand(ir::Relation::kLess, start, end)) node.invalid("frames of which no signal is left");
  const ir::SymInt more = max(end - all, 0);
  if (!is_proven(ir::Relation::kEqual, more, 0)) y = padded(node, y, {0, 0, 0, more}, "constant", 0);
  y = c.slice(y, 1, start, end - start);
  node.set_output(0, is_single ? c.squeeze(y, 0) : y);
}

// 0, 1 ... -2, -1 of n, over n * d: the frequencies of a transform.
void convert_fftfreq(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const int64_t count = node.integer("n");
  if (count < 1 || count > build::kMaxListed) node.invalid("a transform of " + std::to_string(count));
  const double by = 1.0 / (static_cast<double>(count) * node.real("d"));
  const bool is_half = node.op() == "fft_rfftfreq";
  std::vector<double> values;
  for (int64_t i = 0; i < (is_half ? count / 2 + 1 : count); ++i)
    values.push_back(by * static_cast<double>(is_half || i < (count + 1) / 2 ? i : i - count));
  const auto length = static_cast<int64_t>(values.size());
  node.set_output(0, c.doubles(node.output_dtype(), values, {length}));
}

namespace {

/// The value of a window at `place` of 0 to 1.
double window_at(NodeContext& node, double place, double alpha, double beta) {
  const double turn = 2 * std::numbers::pi * place;
  const std::string& op = node.op();
  if (op == "bartlett_window") return 1 - std::fabs(2 * place - 1);
  if (op == "blackman_window") return 0.42 - 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn);
  if (op == "kaiser_window")
    return std::cyl_bessel_i(
               0, std::fabs(beta) * std::sqrt(std::max(1 - (2 * place - 1) * (2 * place - 1), 0.0))) /
           std::cyl_bessel_i(0, std::fabs(beta));
  return alpha - beta * std::cos(turn);
}

}  // namespace

// hann_window, hamming_window and so on: of a periodic one the last element is left out.
void convert_window(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const int64_t count = node.integer("window_length");
  if (count < 0 || count > build::kMaxListed) node.invalid("a window of " + std::to_string(count));
  const bool is_periodic = !takes(node, "periodic") || node.flag("periodic");
  const bool is_hamming = node.op() == "hamming_window", is_kaiser = node.op() == "kaiser_window";
  const double alpha = takes(node, "alpha") ? node.real("alpha") : is_hamming ? 0.54 : 0.5;
  const double beta = takes(node, "beta") ? node.real("beta") : is_kaiser ? 12 : is_hamming ? 0.46 : 0.5;
  // Its Bessel functions are numbers up to there.
  if (is_kaiser && !(std::fabs(beta) <= 700))
    node.unsupported("beta", std::to_string(beta) + " is not implemented");
  const double last = static_cast<double>(count) - (is_periodic ? 0 : 1);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(count == 1 ? 1 : window_at(node, static_cast<double>(i) / last, alpha, beta));
  node.set_output(0, c.doubles(node.output_dtype(), values, {count}));
}

}  // namespace tensormill::frontend::pytorch
