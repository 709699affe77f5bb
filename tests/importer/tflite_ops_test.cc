// Each operator of TFLite in its forms, an output of its own in a file a family, against what TensorFlow
// Lite's kernels make of it (tests/fixtures/tflite_ops).
#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

class TfliteOps : public testing::TestWithParam<const char*> {};

TEST_P(TfliteOps, GiveTheNumbersOfTheirOwnRuntime) {
  constexpr double kTolerance = 1e-5;
  const std::string family = GetParam();
  const auto model = importer_of("tflite_ops/" + family + ".tflite");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, arrays_of("tflite_ops/" + family + ".npz", "in."));
  const Tensors want = arrays_of("tflite_ops/" + family + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    SCOPED_TRACE(family + "/" + name);
    ASSERT_EQ(got.count(name), 1u);
    // Numbers that are rounded to 8 bits may lie at the middle of two.
    expect_close(got.at(name), tensor, kTolerance, family == "quantized" || family == "small_cells" ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TfliteOps,
                         testing::Values("elementwise", "integers", "windows", "products", "moves", "places",
                                         "steps", "quantized", "updates", "boxes", "bits", "gathers", "rows",
                                         "cells", "state", "spectra", "sound", "mediapipe", "small_cells"));

}  // namespace
}  // namespace tensormill::frontend
