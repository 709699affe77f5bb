#include "compiler/build/signal/audio.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compiler/build/compose.h"

namespace tensormill::build {

namespace {

constexpr double kPi = std::numbers::pi;

double mel_of(double hz) { return 1127.0 * std::log1p(hz / 700.0); }

/// [bins,bands]: the part of each bin's magnitude that is in each band: triangles, half of each over the next
/// one's.
Tensor band_weights(int64_t bins, double rate, const CepstrumSpec& spec) {
  const double low = mel_of(spec.low), step = (mel_of(spec.high) - low) / static_cast<double>(spec.bands + 1);
  const double hz_per_bin = 0.5 * rate / static_cast<double>(bins - 1);
  // The constant part of the sound is in no band.
  const auto first = static_cast<int64_t>(1.5 + spec.low / hz_per_bin);
  const auto last = std::min(static_cast<int64_t>(spec.high / hz_per_bin), bins - 1);
  std::vector<float> weights(static_cast<size_t>(bins * spec.bands), 0);
  const auto add = [&](int64_t bin, int64_t band, double weight) {
    if (band >= 0 && band < spec.bands)
      weights[static_cast<size_t>(bin * spec.bands + band)] += static_cast<float>(weight);
  };
  int64_t next = 0;
  const auto center = [&](int64_t band) { return low + step * static_cast<double>(band + 1); };
  for (int64_t bin = first; bin <= last; ++bin) {
    const double mel = mel_of(static_cast<double>(bin) * hz_per_bin);
    while (next < spec.bands && center(next) < mel) ++next;
    const double part = (center(next) - mel) / step;
    add(bin, next - 1, part);
    add(bin, next, 1 - part);
  }
  return Tensor::from<float>({bins, spec.bands}, weights);
}

Tensor cosines(const CepstrumSpec& spec) {
  std::vector<float> values;
  const auto bands = static_cast<double>(spec.bands);
  for (int64_t band = 0; band < spec.bands; ++band)
    for (int64_t i = 0; i < spec.coefficients; ++i)
      values.push_back(
          static_cast<float>(std::sqrt(2.0 / bands) * std::cos(static_cast<double>(i) * kPi / bands *
                                                               (static_cast<double>(band) + 0.5))));
  return Tensor::from<float>({spec.bands, spec.coefficients}, values);
}

/// [window,bins] of the windowed waves: cosines, or sines.
Tensor waves(int64_t window, int64_t length, bool is_sine) {
  const int64_t bins = length / 2 + 1;
  std::vector<float> values(static_cast<size_t>(window * bins));
  for (int64_t i = 0; i < window; ++i) {
    const double hann = 0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(i) / static_cast<double>(window));
    for (int64_t bin = 0; bin < bins; ++bin) {
      // Whole turns are taken away as integers.
      const double angle = 2 * kPi * static_cast<double>(i * bin % length) / static_cast<double>(length);
      values[static_cast<size_t>(i * bins + bin)] =
          static_cast<float>(hann * (is_sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return Tensor::from<float>({window, bins}, values);
}

}  // namespace

ir::ValueId spectrogram(OpBuilder& builder, ir::ValueId sound, const SpectrogramSpec& spec) {
  constexpr int64_t kMostWindow = 8192, kMostFrames = 1 << 20;
  Compose c(builder);
  const ir::SymShape shape = c.shape(sound);
  if (shape.size() != 2)
    builder.invalid("sound of shape " + to_string(shape) + ", expected [samples,channels]");
  if (spec.window < 2 || spec.stride < 1)
    builder.invalid("a window of " + std::to_string(spec.window) + ", a stride of " +
                    std::to_string(spec.stride));
  if (spec.window > kMostWindow)
    builder.unsupported("window_size", "windows of more than " + std::to_string(kMostWindow) + " samples");
  if (!shape[0].is_constant()) builder.unsupported("operand 0", "its number of samples is a free dim");
  const int64_t samples = shape[0].hint();
  const int64_t frames = samples < spec.window ? 0 : (samples - spec.window) / spec.stride + 1;
  if (frames * spec.window > kMostFrames * 16)
    builder.unsupported("operand 0", "more than 16 million samples in all of its windows");
  int64_t length = 1;
  while (length < spec.window) length *= 2;
  std::vector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < spec.window; ++i) places.push_back(frame * spec.stride + i);
  const ir::ValueId rows = c.gather(c.transpose(sound, {1, 0}), c.ints(places, {frames, spec.window}), 1);
  const ir::ValueId real = c.matmul(rows, builder.constant(waves(spec.window, length, false)));
  const ir::ValueId imaginary = c.matmul(rows, builder.constant(waves(spec.window, length, true)));
  const ir::ValueId power = c.add(c.mul(real, real), c.mul(imaginary, imaginary));
  return spec.is_squared ? power : c.unary("sqrt", power);
}

ir::ValueId mel_cepstrum(OpBuilder& builder, ir::ValueId powers, double rate, const CepstrumSpec& spec) {
  constexpr int64_t kMostBands = 4096;
  Compose c(builder);
  const ir::SymShape shape = c.shape(powers);
  if (shape.size() != 3) builder.invalid("spectra of shape " + to_string(shape) + ", expected rank 3");
  if (!shape[2].is_constant()) builder.unsupported("operand 0", "its number of bins is a free dim");
  const int64_t bins = shape[2].hint();
  const bool is_good = spec.bands >= 1 && spec.bands <= kMostBands && spec.coefficients >= 1 &&
                       spec.coefficients <= spec.bands && bins >= 2 && rate > 0 && spec.low >= 0 &&
                       spec.high > spec.low && std::isfinite(spec.high);
  if (!is_good)
    builder.invalid(std::to_string(spec.bands) + " bands, " + std::to_string(spec.coefficients) +
                    " coefficients from " + std::to_string(spec.low) + " to " + std::to_string(spec.high) +
                    " Hz of " + std::to_string(bins) + " bins");
  const ir::ValueId bands =
      c.matmul(c.unary("sqrt", powers), builder.constant(band_weights(bins, rate, spec)));
  const ir::ValueId floored = c.binary("max", bands, c.number(bands, 1e-12));
  return c.matmul(c.unary("log", floored), builder.constant(cosines(spec)));
}

}  // namespace tensormill::build
