// Each operation of Core ML's ML Programs in its forms, outputs of its own in a program a family, and small
// networks, against what coremltools and torch make of them (tests/fixtures/coreml_ops, coreml_nets).
#include <filesystem>

#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

/// The fixtures of a folder that have arrays of their own.
std::vector<std::string> coreml_fixtures() {
  std::vector<std::string> names;
  for (const char* folder : {"coreml_ops", "coreml_nets"}) {
    if (!std::filesystem::is_directory(fixture_path(folder))) continue;
    for (const auto& each : std::filesystem::directory_iterator(fixture_path(folder))) {
      const std::string name = each.path().stem().string();
      // Results as long as a run decides have their length in a run alone (tests/e2e/coreml_test.py).
      if (each.path().extension() == ".npz" && name != "found")
        names.push_back(std::string(folder) + "/" + name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class CoremlOps : public testing::TestWithParam<std::string> {};

TEST_P(CoremlOps, GiveTheNumbers) {
  const auto model = importer_of(GetParam() + ".zip");
  EXPECT_EQ(model->format(), "mlpackage");
  const Tensors inputs = arrays_of(GetParam() + ".npz", "in."), want = arrays_of(GetParam() + ".npz", "out.");
  ImportOptions options;
  for (const SignatureValue& input : model->facts().inputs) {
    DimShape& shape = options.input_shapes[input.name];
    ASSERT_EQ(inputs.count(input.name), 1u) << input.name;
    for (const int64_t extent : inputs.at(input.name).shape()) shape.emplace_back(extent);
  }
  const ir::Graph graph = model->import(options, ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [output, tensor] : want) {
    SCOPED_TRACE(output);
    ASSERT_EQ(got.count(output), 1u);
    const bool is_half = tensor.dtype() == DType::kFloat16 || GetParam().find("hal") != std::string::npos;
    expect_same(got.at(output), tensor, is_half ? 4e-3 : 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CoremlOps, testing::ValuesIn(coreml_fixtures()),
                         [](const auto& info) { return info.param.substr(info.param.find('/') + 1); });
// Until fixtures lie beside it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CoremlOps);

}  // namespace
}  // namespace tensormill::frontend
