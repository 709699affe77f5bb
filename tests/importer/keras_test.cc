// Keras' layers in their forms, an output of its own in a model a family, against what Keras makes of them
// (tests/fixtures/keras_layers).
#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

/// The options that bind free dims to the extents of given inputs.
ImportOptions at_inputs(const Tensors& inputs) {
  ImportOptions options;
  for (const auto& [name, tensor] : inputs)
    options.input_shapes[name] = DimShape(tensor.shape().begin(), tensor.shape().end());
  return options;
}

class KerasLayers : public testing::TestWithParam<const char*> {};

TEST_P(KerasLayers, GiveTheNumbersOfKeras) {
  constexpr double kTolerance = 2e-5;
  const std::string file = GetParam(), family = file.substr(0, file.rfind('.'));
  const auto model = importer_of("keras_layers/" + file);
  const Tensors inputs = arrays_of("keras_layers/" + family + ".npz", "in.");
  const ir::Graph graph = model->import(at_inputs(inputs), ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, inputs), want = arrays_of("keras_layers/" + family + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    SCOPED_TRACE(file + "/" + name);
    ASSERT_EQ(got.count(name), 1u);
    expect_close(got.at(name), tensor, kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KerasLayers,
                         testing::Values("elementwise.keras", "convolutions.keras", "pools.keras",
                                         "moves.keras", "merges.keras", "normalizations.keras",
                                         "nested.keras", "nested.h5"));

}  // namespace
}  // namespace tensormill::frontend
