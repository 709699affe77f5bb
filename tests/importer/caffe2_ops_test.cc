// Caffe2's operators in their forms, outputs of their own in a net a family, and small networks, against what
// Caffe2's own operators make of them (tests/fixtures/caffe2_ops, caffe2_nets).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

std::vector<std::string> caffe2_fixtures() {
  std::vector<std::string> names;
  for (const char* folder : {"caffe2_ops", "caffe2_nets"}) {
    if (!std::filesystem::is_directory(fixture_path(folder))) continue;
    for (const auto& each : std::filesystem::directory_iterator(fixture_path(folder)))
      if (each.path().extension() == ".npz")
        names.push_back(std::string(folder) + "/" + each.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The least distance of two elements that differ, of the largest one: of real numbers that stand for
/// integers of one scale, a little more than the scale.
double quantum_of(const Tensor& reals) {
  std::set<double> values;
  double most = 1e-6, least = INFINITY;
  for (int64_t i = 0; i < reals.num_elements(); ++i) {
    values.insert(reals.element_as_double(i));
    most = std::max(most, std::fabs(reals.element_as_double(i)));
  }
  for (auto next = values.begin(); next != values.end(); ++next)
    if (next != values.begin()) least = std::min(least, *next - *std::prev(next));
  return least == INFINITY ? 0 : 1.001 * least / most;
}

class Caffe2Ops : public testing::TestWithParam<std::string> {};

TEST_P(Caffe2Ops, GiveTheNumbers) {
  const auto model = importer_of(GetParam() + ".zip");
  EXPECT_EQ(model->format(), "caffe2");
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
    // Integers that stand for real numbers may differ by one.
    const bool is_int8 = GetParam().ends_with("/int8");
    expect_same(got.at(output), tensor, is_int8 ? quantum_of(tensor) : 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Caffe2Ops, testing::ValuesIn(caffe2_fixtures()),
                         [](const auto& info) { return info.param.substr(info.param.find('/') + 1); });
// Until fixtures lie beside it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Caffe2Ops);

}  // namespace
}  // namespace tensormill::frontend
