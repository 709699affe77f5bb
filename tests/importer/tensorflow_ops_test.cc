// Each operator of TensorFlow in its forms, outputs of its own in a graph a family, against what TensorFlow
// makes of them (tests/fixtures/tensorflow_ops).
#include <filesystem>

#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture_path("tensorflow_ops")))
    // Results as long as a run decides have their length in a run alone (tests/e2e/tensorflow_test.py).
    if (entry.path().extension() == ".pb" && entry.path().stem() != "counted" &&
        entry.path().stem() != "of_run" && entry.path().stem() != "rows")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class TensorflowOps : public testing::TestWithParam<std::string> {};

TEST_P(TensorflowOps, GiveTheNumbersOfTensorflow) {
  const std::string name = "tensorflow_ops/" + GetParam();
  const auto model = importer_of(name + ".pb");
  EXPECT_EQ(model->format(), "frozen-graph");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, arrays_of(name + ".npz", "in."));
  const Tensors want = arrays_of(name + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [output, tensor] : want) {
    SCOPED_TRACE(output);
    ASSERT_EQ(got.count(output), 1u);
    expect_same(got.at(output), tensor, tensor.dtype() == DType::kFloat16 ? 2e-3 : 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TensorflowOps, testing::ValuesIn(families()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tensormill::frontend
