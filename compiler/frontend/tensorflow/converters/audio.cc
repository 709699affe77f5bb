// Operators of sound.
#include "compiler/build/signal/audio.h"

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

void convert_audio_spectrogram(NodeContext& node) {
  const build::SpectrogramSpec spec{node.integer("window_size"), node.integer("stride"),
                                    node.flag("magnitude_squared", false)};
  node.set_output(0, build::spectrogram(node, node.input(0), spec));
}

void convert_mfcc(NodeContext& node) {
  build::CepstrumSpec spec;
  spec.low = node.real("lower_frequency_limit", 20);
  spec.high = node.real("upper_frequency_limit", 4000);
  spec.bands = node.integer("filterbank_channel_count", 40);
  spec.coefficients = node.integer("dct_coefficient_count", 13);
  node.set_output(0, build::mel_cepstrum(node, node.input(0), node.known_real(1, "sample_rate"), spec));
}

}  // namespace tensormill::frontend::tensorflow
