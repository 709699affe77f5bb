/// The memory plans of compiled graphs: no two buffers that live at the same time share a byte, found by
/// playing the steps over a map of who owns each 64-byte block.
#include <gtest/gtest.h>

#include <map>

#include "compiler/passes/pass.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/package/plan_memory.h"
#include "tests/driver/support.h"
#include "tests/ops/cases/chain_graph.h"

namespace tensormill::driver_test {
namespace {

using package::BufferKind;
using package::ExecPlan;
using package::MemoryPlan;
using package::Step;

constexpr int64_t kBlock = 64;

/// Runs a plan on block owners instead of values: a write takes blocks over, a read must find its own.
class Player {
public:
  Player(const ExecPlan& plan, const MemoryPlan& memory) : plan_(plan), memory_(memory) {}

  void play() {
    for (const package::Port& port : plan_.inputs) claim(port.buffer);
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < plan_.steps.size(); ++i) step(i);
      for (const package::Port& port : plan_.outputs) expect_owned(port.buffer, "output " + port.name);
      for (const package::Port& port : plan_.inputs) expect_owned(port.buffer, "input " + port.name);
    }
  }

private:
  int32_t root(int32_t buffer) const { return package::root_buffer(plan_, buffer); }
  int64_t offset(int32_t buffer) const { return memory_.offsets[static_cast<size_t>(buffer)]; }
  int64_t bytes(int32_t buffer) const { return plan_.buffers[static_cast<size_t>(buffer)].bytes; }

  template <typename Visit>
  void for_each_block(int64_t begin, int64_t size, Visit&& visit) {
    ASSERT_GE(begin, 0);
    ASSERT_EQ(begin % kBlock, 0);
    // The 64 bytes after a buffer may be read by a vector load, so they lie inside the arena too.
    ASSERT_LE(begin + size + kBlock, memory_.arena_bytes);
    for (int64_t at = begin; at < begin + size; at += kBlock) visit(owner_[at / kBlock]);
  }

  void claim(int32_t buffer) {
    for_each_block(offset(buffer), bytes(buffer), [&](int64_t& owner) { owner = root(buffer); });
  }

  void expect_owned(int32_t buffer, const std::string& what) {
    if (plan_.buffers[static_cast<size_t>(root(buffer))].kind == BufferKind::kConstant) return;
    for_each_block(offset(buffer), bytes(buffer),
                   [&](int64_t owner) { ASSERT_EQ(owner, root(buffer)) << what << " was overwritten"; });
  }

  void step(size_t index) {
    const Step& step = plan_.steps[index];
    std::vector<bool> written(step.args.size(), false);
    for (const int32_t position : step.outputs) written[static_cast<size_t>(position)] = true;
    // All inputs must survive until the end of the step, except where the step says that it works in place.
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (!written[i]) expect_owned(step.args[i], step.name + " reads argument " + std::to_string(i));
    }
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (written[i]) claim(step.args[i]);
    }
    const int64_t shared = memory_.shared_workspace[index];
    if (step.shared_workspace_bytes > 0) {
      for_each_block(shared, step.shared_workspace_bytes, [&](int64_t& owner) { owner = -1; });
    }
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (!replaced_in_place(step, static_cast<int32_t>(i))) {
        expect_owned(step.args[i], step.name + " has argument " + std::to_string(i));
      }
    }
  }

  static bool replaced_in_place(const Step& step, int32_t position) {
    for (const package::InPlace& pair : step.in_place) {
      if (pair.input == position) return true;
    }
    return false;
  }

  const ExecPlan& plan_;
  const MemoryPlan& memory_;
  std::map<int64_t, int64_t> owner_;
};

/// The plan that the driver makes of `graph`; every third kernel asks for workspace.
ExecPlan plan_of(const ir::Graph& graph, int level) {
  std::vector<std::string> ran;
  const ir::Graph optimized = passes::run_pipeline(graph, {{target::host_target().facts, level}, {}}, ran);
  const plan::Kernels kernels = plan::extract_kernels(optimized);
  std::vector<plan::KernelWorkspace> workspaces(kernels.kernels.size());
  for (size_t i = 0; i < workspaces.size(); i += 3) workspaces[i] = {static_cast<int64_t>(100 + 7 * i), 40};
  std::vector<std::string> names;
  for (const ir::ValueId output : graph.outputs()) names.push_back(graph.value(output).name);
  return plan::build_plan(optimized, kernels, workspaces, names).plan;
}

TEST(MemoryPlan, NoLiveBufferIsOverwrittenInRandomGraphs) {
  size_t steps = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("chain " + std::to_string(seed));
    const auto random = ops_cases::make_chain_graph(seed, 40);
    const ExecPlan plan = plan_of(random.graph, static_cast<int>(seed % 5));
    ASSERT_NO_THROW(package::validate_plan(plan));
    const MemoryPlan memory = package::plan_memory(plan);
    Player(plan, memory).play();
    EXPECT_GE(memory.arena_bytes, memory.live_peak_bytes);
    steps += plan.steps.size();
    if (HasFailure()) return;
  }
  EXPECT_GT(steps, 2000u);
}

TEST(MemoryPlan, TemporariesShareTheArena) {
  // A chain of twelve values of 4 KB never needs more than two of them besides input and output.
  std::string text = "graph \"chain\" (%v0: f32[1024]) {\n";
  for (int i = 1; i <= 12; ++i) {
    const std::string number = std::to_string(i), before = std::to_string(i - 1);
    text += "  %v" + number + ": f32[1024] = " + (i % 2 == 0 ? "tanh" : "neg") + "(%v" + before + ")\n";
  }
  const driver::CompileResult result = driver::compile(parse(text + "  return %v12\n}\n"), host_options(0));
  const ExecPlan plan = package::plan_from_json(result.plan_json);
  ASSERT_EQ(plan.steps.size(), 12u);
  EXPECT_LE(package::plan_memory(plan).arena_bytes, 4 * (4096 + 2 * kBlock));
}

}  // namespace
}  // namespace tensormill::driver_test
