// Caffe2's operators in their forms, outputs of their own in a net a family, and small networks, against what
// Caffe2's own operators make of them (tests/fixtures/caffe2_ops, caffe2_nets).
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "tests/importer/fixtures.h"

namespace tensormill::frontend {
namespace {

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

std::vector<std::string> caffe2_families() {
  std::vector<std::string> names = fixtures_in({"caffe2_ops", "caffe2_nets"});
  // Results as long as a run decides have their length in a run alone (tests/e2e/caffe2_test.py).
  for (const char* family : {"boxes", "proposals"}) std::erase(names, std::string("caffe2_ops/") + family);
  return names;
}

class Caffe2Ops : public testing::TestWithParam<std::string> {};

TEST_P(Caffe2Ops, GiveTheNumbers) {
  // Integers that stand for real numbers may differ by one.
  const bool is_int8 = GetParam().ends_with("/int8");
  expect_numbers_of(GetParam(), "caffe2",
                    [&](const Tensor& want) { return is_int8 ? quantum_of(want) : 1e-5; });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Caffe2Ops, testing::ValuesIn(caffe2_families()), label_of);

}  // namespace
}  // namespace tensormill::frontend
