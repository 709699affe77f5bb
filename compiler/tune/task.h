/// Tasks: the distinct kernels of a model, as what is tuned. Thread-safety: values and pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/build_kernel.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/plan/kernel.h"
#include "compiler/target/target.h"
#include "compiler/tune/symbolic_task.h"
#include "compiler/tune/workload.h"

namespace tensormill::tune {

struct Task {
  plan::Kernel kernel;
  std::vector<Tensor> constants;  ///< the model's, of the first call; empty ones where it passes a value
  std::vector<char> is_constant;  ///< by input
  std::string name;               ///< the kernel's operators: its symbol without the key
  std::string args;               ///< "f32[1,64,56,56] f32[64] -> f32[1,64,56,56]"
  /// The same with the model's names of free extents, "f32[N,40] -> f32[N,48]"; "" where there are none.
  std::string free_args;
  int64_t calls = 0;  ///< how often the model runs it untuned: its weight
  /// Of a convolution that has several algorithms: the layer's key (driver/layers.h) and which one this is.
  /// Tasks of one layer stand in for each other; without calls are those that the analytic rule leaves out.
  std::string layer;
  std::string algorithm;
  int64_t bytes = 0;  ///< of all parameters; where extents are free, at those that are measured first
  /// Of a kernel of free extents, whose `kernel` is the node's where it is measured first, by the symbol and
  /// the key of the kernel that all extents have; null for others.
  std::shared_ptr<SymbolicKernel> symbolic = {};
  const std::string key() const { return kernel.key.hex(); }
};

/// The graph's kernels of constant extents after the passes of `opt_level`, in the order of their first use;
/// of maps in a layout that is requested.
std::vector<Task> extract_tasks(const ir::Graph& graph, const target::Target& target, int opt_level,
                                const std::optional<passes::DesiredLayout>& layout = {});
/// These, and behind them the kernels of each layer's other algorithms, where they are accurate.
std::vector<Task> extract_all_tasks(const ir::Graph& graph, const target::Target& target, int opt_level,
                                    const std::optional<passes::DesiredLayout>& layout = {});

/// Where the task's candidates are measured; inputs are seeded, or its own constants.
std::vector<Workload> make_workloads(const Task& task);

/// A candidate's loops, as its steps make them. Throws Error(kInvalidRecords) where they do not apply.
te::Function loops_of(const Task& task, const schedule::Schedule& steps);
/// The same at the extents at which the task is measured first: what tells how long they run.
te::Function with_extents(const Task& task, te::Function loops);
/// A candidate, and where it has to be right beside the extents at which it is measured.
struct BuiltCandidate {
  driver::BuiltKernel kernel;
  std::vector<plan::Tail> tails;
};
/// Throws as loops_of, and InternalError for bugs of later phases.
BuiltCandidate build_candidate(const Task& task, const schedule::Schedule& steps,
                               const target::Target& target, const codegen::Backend& backend);

/// "all", "0,2" or "3-5,7" -> places among `count` tasks, ascending. Throws Error(kUsage).
std::vector<size_t> parse_selection(const std::string& text, size_t count);

}  // namespace tensormill::tune
