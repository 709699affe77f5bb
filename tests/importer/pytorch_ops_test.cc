// Each operator of PyTorch in its forms, an output of its own in a file a family, against what eager torch
// makes of it (tests/fixtures/pytorch_ops); small networks and writes through views in the same way
// (tests/fixtures/pytorch_nets).
#include <filesystem>
#include <sstream>

#include "compiler/frontend/pytorch/promotion.h"
#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

/// "folder/name" of all programs there.
std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixture_path(folder)))
    // What is as long as a run decides is cut by runs alone (tests/e2e/pytorch_test.py).
    if (entry.path().extension() == ".pt2" && entry.path().stem() != "counted" &&
        !entry.path().stem().string().starts_with("lengths"))
      names.push_back(folder + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string label_of(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}

void expect_numbers(const std::string& name, double tolerance) {
  const auto model = importer_of(name + ".pt2");
  const Tensors inputs = arrays_of(name + ".npz", "in.");
  ImportOptions options;
  for (const auto& [input, tensor] : inputs) {
    DimShape shape;
    for (const int64_t extent : tensor.shape()) shape.emplace_back(extent);
    options.input_shapes[input] = shape;
  }
  const ir::Graph graph = model->import(options, ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, inputs);
  const Tensors want = arrays_of(name + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [output, tensor] : want) {
    SCOPED_TRACE(name + "/" + output);
    ASSERT_EQ(got.count(output), 1u);
    const bool is_half = tensor.dtype() == DType::kFloat16 && tolerance > 0;
    expect_same(got.at(output), tensor, is_half ? 2e-3 : tolerance);
  }
}

class PytorchOps : public testing::TestWithParam<std::string> {};
TEST_P(PytorchOps, GiveTheNumbersOfEagerTorch) { expect_numbers(GetParam(), 1e-5); }
INSTANTIATE_TEST_SUITE_P(Families, PytorchOps, testing::ValuesIn(programs_in("pytorch_ops")), label_of);

// Numbers keep their digits where torch keeps them, and steps are rounded where torch rounds them.
TEST(PytorchHalves, HaveAllBitsOfEagerTorch) { expect_numbers("pytorch_ops/halves", 0); }

class PytorchNets : public testing::TestWithParam<std::string> {};
TEST_P(PytorchNets, GiveTheNumbersOfEagerTorch) { expect_numbers(GetParam(), 2e-5); }
INSTANTIATE_TEST_SUITE_P(Networks, PytorchNets, testing::ValuesIn(programs_in("pytorch_nets")), label_of);

// Of all pairs of operands, as torch.result_type has it.
TEST(PytorchTypes, AreThoseOfTorch) {
  std::istringstream lines(read_file(fixture_path("pytorch_ops/common_types.txt")));
  const std::map<std::string, pytorch::OperandKind> kinds = {{"tensor", pytorch::OperandKind::kTensor},
                                                             {"scalar", pytorch::OperandKind::kScalar},
                                                             {"number", pytorch::OperandKind::kNumber}};
  std::string kind, dtype, other_kind, other_dtype, want;
  size_t pairs = 0;
  while (lines >> kind >> dtype >> other_kind >> other_dtype >> want) {
    const auto got = pytorch::result_type({{*dtype_from_long_name(dtype), kinds.at(kind)},
                                           {*dtype_from_long_name(other_dtype), kinds.at(other_kind)}});
    EXPECT_EQ(got ? std::string(dtype_long_name(*got)) : "none", want)
        << kind << " " << dtype << ", " << other_kind << " " << other_dtype;
    ++pairs;
  }
  EXPECT_GT(pairs, 800u);
}

}  // namespace
}  // namespace tensormill::frontend
