// Each operator of PyTorch in its forms, an output of its own in a file a family, against what eager torch
// makes of it (tests/fixtures/pytorch_ops); small networks and writes through views in the same way
// (tests/fixtures/pytorch_nets).
#include <functional>
#include <map>
#include <sstream>

#include "compiler/frontend/pytorch/promotion.h"
#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

/// "folder/name" of all programs there.
std::vector<std::string> programs_in(const std::string& folder) {
  std::vector<std::string> names = fixtures_in({folder}, ".pt2");
  // What is as long as a run decides is cut by runs alone (tests/e2e/pytorch_test.py).
  std::erase_if(names, [&](const std::string& name) {
    return name == folder + "/counted" || name.starts_with(folder + "/lengths");
  });
  return names;
}

/// The graph of a program, at the extents of given inputs.
ir::Graph graph_of(const std::string& name, const Tensors& inputs) {
  ir::Graph graph = importer_of(name + ".pt2")->import(at_shapes_of(inputs), ops::standard_ops());
  ir::verify(graph);
  return graph;
}

void expect_numbers(const std::string& name, double tolerance) {
  const Tensors inputs = arrays_of(name + ".npz", "in.");
  const ir::Graph graph = graph_of(name, inputs);
  SCOPED_TRACE(name);
  expect_outputs(evaluated(graph, inputs), arrays_of(name + ".npz", "out."), [&](const Tensor& want) {
    const bool is_half = want.dtype() == DType::kFloat16 && tolerance > 0;
    return is_half ? 2e-3 : tolerance;
  });
}

class PytorchOps : public testing::TestWithParam<std::string> {};
TEST_P(PytorchOps, GiveTheNumbersOfEagerTorch) { expect_numbers(GetParam(), 1e-5); }
INSTANTIATE_TEST_SUITE_P(Families, PytorchOps, testing::ValuesIn(programs_in("pytorch_ops")), label_of);

// Numbers keep their digits where torch keeps them, and steps are rounded where torch rounds them.
TEST(PytorchHalves, HaveAllBitsOfEagerTorch) { expect_numbers("pytorch_ops/halves", 0); }

class PytorchNets : public testing::TestWithParam<std::string> {};
TEST_P(PytorchNets, GiveTheNumbersOfEagerTorch) { expect_numbers(GetParam(), 2e-5); }
INSTANTIATE_TEST_SUITE_P(Networks, PytorchNets, testing::ValuesIn(programs_in("pytorch_nets")), label_of);

struct Function {
  const char* name;
  std::function<double(double)> exact;
  std::vector<double> x;  ///< twelve, whose results a formula of several steps would lose
};

/// Whether all elements are the function's of x, but for a rounding or two.
bool is_made(const Function& function, const Tensor& x, const Tensor& y) {
  if (y.dtype() != DType::kFloat32 || y.shape() != x.shape()) return false;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double want = function.exact(x.element_as_double(i));
    if (!(std::fabs(y.element_as_double(i) - want) <= 3e-6 * std::fabs(want))) return false;
  }
  return true;
}

std::vector<std::string> made_by(const Function& function, const Tensor& x, const Tensors& results) {
  std::vector<std::string> names;
  if (x.dtype() != DType::kFloat32) return names;
  for (const auto& [name, tensor] : results) {
    if (is_made(function, x, tensor)) names.push_back(name);
  }
  return names;
}

// Inputs and outputs have no names: those that torch made as the function are to be it elsewhere, too.
TEST(PytorchFunctions, KeepTheirDigits) {
  const double half_root = std::sqrt(0.5);
  const std::vector<Function> functions = {
      {"erfc", [](double x) { return std::erfc(x); }, {-9, -3, -0.5, -1e-6, 0, 0.4, 0.5, 1, 3, 5, 8, 9}},
      {"ndtr",
       [&](double x) { return std::erfc(-x * half_root) / 2; },
       {-6, -5, -3, -1, -0.5, 0, 0.5, 1, 2, 3, 5, 8}},
      {"expm1",
       [](double x) { return std::expm1(x); },
       {-80, -1.1, -0.9, -1e-3, -1e-7, 0, 1e-7, 1e-3, 0.9, 1.1, 5, 80}},
      {"log1p",
       [](double x) { return std::log1p(x); },
       {-0.99, -0.5, -1e-3, -1e-7, 0, 1e-7, 1e-3, 0.4, 3, 8000, 1e20, 1e37}},
  };
  std::map<std::string, int> found;
  for (const std::string name : {"pytorch_ops/unary1", "pytorch_ops/unary2"}) {
    const Tensors recorded = arrays_of(name + ".npz", "in."), results = arrays_of(name + ".npz", "out.");
    const ir::Graph graph = graph_of(name, recorded);
    for (const Function& function : functions) {
      for (const auto& [input, of] : recorded) {
        const std::vector<std::string> outputs = made_by(function, of, results);
        if (outputs.empty()) continue;
        Tensors inputs = recorded;
        Tensor x = of.clone();
        ASSERT_EQ(x.num_elements(), static_cast<int64_t>(function.x.size()));
        for (size_t i = 0; i < function.x.size(); ++i) x.set_element(static_cast<int64_t>(i), function.x[i]);
        inputs.insert_or_assign(input, x);
        const Tensors got = evaluated(graph, inputs);
        for (const std::string& output : outputs)
          EXPECT_TRUE(is_made(function, x, got.at(output)))
              << function.name << " of " << name << "/" << output;
        found[function.name] += static_cast<int>(outputs.size());
      }
    }
  }
  for (const Function& function : functions) EXPECT_GT(found[function.name], 0) << function.name;
}

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
