/// Spectra of sound as TensorFlow and TensorFlow Lite compute them: products with constants. Thread-safety:
/// as the builder.
#pragma once

#include "compiler/build/op_builder.h"

namespace tensormill::build {

struct SpectrogramSpec {
  int64_t window = 0, stride = 0;  ///< in samples
  bool is_squared = false;         ///< powers, else magnitudes
};
/// Sound f32 [samples,channels] as spectra [channels,frames,bins]: of each window under a periodic Hann
/// window, filled with zeros to a power of 2. Throws Error(kInvalidModel) for numbers that are none,
/// UnsupportedForm for windows of more than 8192 samples and for a free number of samples.
ir::ValueId spectrogram(OpBuilder& builder, ir::ValueId sound, const SpectrogramSpec& spec);

struct CepstrumSpec {
  double low = 20, high = 4000;  ///< Hz
  int64_t bands = 40, coefficients = 13;
};
/// Of powers [channels,frames,bins] of sound of `rate` samples a second the first coefficients of the cosine
/// transform of the logarithms of what is in the bands of a mel scale: [channels,frames,coefficients].
ir::ValueId mel_cepstrum(OpBuilder& builder, ir::ValueId powers, double rate, const CepstrumSpec& spec);

}  // namespace tensormill::build
