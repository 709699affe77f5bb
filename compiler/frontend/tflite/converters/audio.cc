// Custom operators of sound, whose options are a map.
#include "compiler/build/signal/audio.h"

#include "compiler/frontend/tflite/converters/custom_options.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::tflite {

void convert_audio_spectrogram(NodeContext& node) {
  const Json options = options_of(node);
  build::SpectrogramSpec spec;
  spec.window = static_cast<int64_t>(number_of(node, options, "window_size"));
  spec.stride = static_cast<int64_t>(number_of(node, options, "stride"));
  spec.is_squared = number_of(node, options, "magnitude_squared") != 0;
  node.set_real(0, build::spectrogram(node, node.real(0), spec));
}

void convert_mfcc(NodeContext& node) {
  const Json options = options_of(node);
  build::CepstrumSpec spec;
  spec.low = number_of(node, options, "lower_frequency_limit");
  spec.high = number_of(node, options, "upper_frequency_limit");
  spec.bands = static_cast<int64_t>(number_of(node, options, "filterbank_channel_count"));
  spec.coefficients = static_cast<int64_t>(number_of(node, options, "dct_coefficient_count"));
  const ir::SymInt rate = node.known_int(1, "rate");
  if (!rate.is_constant()) node.unsupported("rate", "it is a free dim");
  node.set_real(0, build::mel_cepstrum(node, node.real(0), static_cast<double>(rate.hint()), spec));
}

}  // namespace tensormill::frontend::tflite
