// Each operator of MXNet in its forms, outputs of its own in a model a family, and small networks, against
// what MXNet makes of them (tests/fixtures/mxnet_ops, mxnet_nets).
#include <filesystem>

#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

/// The fixtures of a folder that have arrays of their own.
std::vector<std::string> mxnet_fixtures() {
  std::vector<std::string> names;
  for (const char* folder : {"mxnet_ops", "mxnet_nets"}) {
    if (!std::filesystem::is_directory(fixture_path(folder))) continue;
    for (const auto& each : std::filesystem::directory_iterator(fixture_path(folder)))
      if (each.path().extension() == ".npz")
        names.push_back(std::string(folder) + "/" + each.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class MxnetOps : public testing::TestWithParam<std::string> {};

TEST_P(MxnetOps, GiveTheNumbers) {
  const auto model = importer_of(GetParam() + ".zip");
  EXPECT_EQ(model->format(), "mxnet");
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
    expect_same(got.at(output), tensor, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MxnetOps, testing::ValuesIn(mxnet_fixtures()),
                         [](const auto& info) { return info.param.substr(info.param.find('/') + 1); });
// Until fixtures lie beside it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MxnetOps);

}  // namespace
}  // namespace tensormill::frontend
