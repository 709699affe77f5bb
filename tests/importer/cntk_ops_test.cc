// Functions of CNTK in their forms, outputs of their own in a model a family, and small networks, against
// what CNTK makes of them (tests/fixtures/cntk_ops, cntk_nets).
#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

class CntkOps : public testing::TestWithParam<std::string> {};

TEST_P(CntkOps, GiveTheNumbers) {
  expect_numbers_of(
      GetParam(), "cntk", [](const Tensor&) { return 1e-5; }, ".model");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CntkOps, testing::ValuesIn(fixtures_in({"cntk_ops", "cntk_nets"})),
                         label_of);

}  // namespace
}  // namespace tensormill::frontend
