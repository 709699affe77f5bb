// Each operator of MXNet in its forms, outputs of its own in a model a family, and small networks, against
// what MXNet makes of them (tests/fixtures/mxnet_ops, mxnet_nets).
#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

class MxnetOps : public testing::TestWithParam<std::string> {};

TEST_P(MxnetOps, GiveTheNumbers) {
  expect_numbers_of(GetParam(), "mxnet", [](const Tensor&) { return 1e-5; });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MxnetOps, testing::ValuesIn(fixtures_in({"mxnet_ops", "mxnet_nets"})),
                         label_of);

}  // namespace
}  // namespace tensormill::frontend
