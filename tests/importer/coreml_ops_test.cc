// Each operation of Core ML's ML Programs in its forms, outputs of its own in a program a family, and small
// networks, against what coremltools and torch make of them (tests/fixtures/coreml_ops, coreml_nets).
#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

std::vector<std::string> coreml_fixtures() {
  std::vector<std::string> names = fixtures_in({"coreml_ops", "coreml_nets"});
  // Results as long as a run decides have their length in a run alone (tests/e2e/coreml_test.py).
  std::erase_if(names, [](const std::string& name) { return name.ends_with("/found"); });
  return names;
}

class CoremlOps : public testing::TestWithParam<std::string> {};

TEST_P(CoremlOps, GiveTheNumbers) {
  const bool has_halves = GetParam().find("hal") != std::string::npos;
  expect_numbers_of(GetParam(), "mlpackage", [&](const Tensor& want) {
    return has_halves || want.dtype() == DType::kFloat16 ? 4e-3 : 1e-5;
  });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CoremlOps, testing::ValuesIn(coreml_fixtures()), label_of);

}  // namespace
}  // namespace tensormill::frontend
