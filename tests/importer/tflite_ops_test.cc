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
    if (tensor.dtype() == kString) {
      expect_same(got.at(name), tensor, 0);
      continue;
    }
    // Numbers that are rounded to 8 bits may lie at the middle of two.
    expect_close(got.at(name), tensor, kTolerance, family == "quantized" || family == "small_cells" ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TfliteOps,
                         testing::Values("elementwise", "integers", "windows", "products", "moves", "places",
                                         "steps", "quantized", "updates", "boxes", "bits", "gathers", "rows",
                                         "cells", "state", "spectra", "sound", "mediapipe", "landmarks",
                                         "flex", "small_cells", "exact_cells", "text"));

class ExactTfliteOps : public testing::TestWithParam<const char*> {};

ImportOptions exact_options(const Importer& model) {
  ImportOptions options;
  set_quantized(model, "exact", options);
  return options;
}

TEST_P(ExactTfliteOps, GiveTheBitsOfTheReferenceKernels) {
  const std::string family = GetParam();
  const auto model = importer_of("tflite_ops/" + family + ".tflite");
  const ir::Graph graph = model->import(exact_options(*model), ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, arrays_of("tflite_ops/" + family + ".npz", "in."));
  const Tensors want = arrays_of("tflite_ops/" + family + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    SCOPED_TRACE(family + "/" + name);
    ASSERT_EQ(got.count(name), 1u);
    expect_close(got.at(name), tensor, 0, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ExactTfliteOps,
                         testing::Values("exact_products", "exact_elements", "exact_rows", "exact_cells"));

/// What an import that is exact says of the model.
std::string exact_refusal_of(const std::string& fixture) {
  const auto model = importer_of(fixture);
  try {
    model->import(exact_options(*model), ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented) << error.message();
    std::string all = error.message();
    for (const ErrorDetail& detail : error.details()) all += "\n" + detail.detail;
    return all;
  }
  ADD_FAILURE() << fixture << " is imported";
  return "";
}

// Of the memory of an SVDF layer, for one; a network of int16 is refused in tests/e2e.
TEST(ExactTflite, NamesWhatHasNoExactForm) {
  const std::string cells = exact_refusal_of("tflite_ops/small_cells.tflite");
  EXPECT_NE(cells.find("quantized exact"), std::string::npos) << cells;
}

TEST(ExactTflite, IsOfTfliteFilesAlone) {
  ImportOptions options;
  const auto onnx = importer_of("keras/net.keras");
  try {
    set_quantized(*onnx, "exact", options);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_NE(error.message().find("have no reference kernels"), std::string::npos) << error.message();
  }
  const auto tflite = importer_of("tflite/net_int8.tflite");
  try {
    set_quantized(*tflite, "nearly", options);
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
  }
}

}  // namespace
}  // namespace tensormill::frontend
