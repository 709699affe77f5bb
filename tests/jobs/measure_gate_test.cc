#include "server/jobs/measure_gate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

using std::chrono::milliseconds;

void ignore(const std::string&, const std::string&) {}

class MeasureGateTest : public testing::Test {
protected:
  ChildSpec spinning() const {
    ChildSpec spec;
    spec.command = "child-spin";
    spec.folder = folder_.path();
    return spec;
  }
  /// "T" for a process that stands still.
  static char state_of(const ChildProcess& child) {
    std::ifstream stat("/proc/" + std::to_string(child.pid()) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), std::istreambuf_iterator<char>());
    return text.at(text.rfind(')') + 2);
  }
  static void await(const ChildProcess& child, bool stopped) {
    while ((state_of(child) == 'T') != stopped) std::this_thread::yield();
  }

  storage::TemporaryFolder folder_;
  MeasureGate gate_;
};

TEST_F(MeasureGateTest, BuildersStandStillWhileAnyoneMeasures) {
  ChildProcess first(spinning());
  const MeasureGate::Builder builder(gate_, &first);
  std::optional<MeasureGate::Quiet> outer(std::in_place, gate_);
  await(first, true);
  std::optional<MeasureGate::Quiet> inner(std::in_place, gate_);
  ChildProcess late(spinning());
  const MeasureGate::Builder later(gate_, &late);
  await(late, true);
  inner.reset();
  EXPECT_EQ(state_of(first), 'T') << "the outer one still measures";
  outer.reset();
  await(first, false);
  await(late, false);
}

TEST_F(MeasureGateTest, OthersGoOn) {
  ChildProcess child(spinning());
  { const MeasureGate::Builder gone(gate_, &child); }
  const MeasureGate::Builder none(gate_, nullptr);
  const MeasureGate::Quiet quiet(gate_);
  EXPECT_NE(state_of(child), 'T');
}

TEST_F(MeasureGateTest, AStoppedChildIsCancelled) {
  ChildProcess child(spinning());
  const MeasureGate::Builder builder(gate_, &child);
  const MeasureGate::Quiet quiet(gate_);
  await(child, true);
  child.cancel();
  std::optional<ChildOutcome> outcome;
  while (!outcome) outcome = child.poll(milliseconds(1000), ignore);
  EXPECT_EQ(outcome->end, ChildEnd::kCancelled);
}

}  // namespace
}  // namespace tensormill::jobs
