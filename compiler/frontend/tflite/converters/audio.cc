// Custom operators of sound, whose options are a map.
#include "compiler/build/audio.h"

#include <cmath>

#include "compiler/frontend/tflite/node_context.h"
#include "compiler/frontend/wire/flexbuffer.h"

namespace tensormill::frontend::tflite {

namespace {

double number_of(const NodeContext& node, const Json& options, const char* name) {
  const auto found = options.find(name);
  if (found == options.end() || !(found->is_number() || found->is_boolean()))
    node.invalid("option " + std::string(name) + " is no number");
  const double value = found->is_boolean() ? (found->get<bool>() ? 1 : 0) : found->get<double>();
  if (!std::isfinite(value) || std::abs(value) > 1e9)
    node.invalid("option " + std::string(name) + " is " + std::to_string(value));
  return value;
}

Json options_of(const NodeContext& node) {
  Json options = wire::flexbuffer_to_json(node.node().custom_options);
  if (!options.is_object()) node.invalid("its options are no map");
  return options;
}

}  // namespace

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
