/// Tasks: the distinct kernels of a model, as what is tuned. Thread-safety: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/verify_kernel.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/desired_layout.h"
#include "compiler/plan/kernel.h"
#include "compiler/target/target.h"

namespace tensormill::tune {

struct Task {
  plan::Kernel kernel;
  std::vector<Tensor> constants;  ///< the model's, of the first call; empty ones where it passes a value
  std::vector<char> is_constant;  ///< by input
  std::string name;               ///< the kernel's operators: its symbol without the key
  std::string args;               ///< "f32[1,64,56,56] f32[64] -> f32[1,64,56,56]"
  int64_t calls = 0;              ///< how often the model runs it untuned: its weight
  /// Of a convolution that has several algorithms: the layer's key (driver/layers.h) and which one this is.
  /// Tasks of one layer stand in for each other; without calls are those that the analytic rule leaves out.
  std::string layer;
  std::string algorithm;
  int64_t bytes = 0;  ///< of all parameters
  const std::string key() const { return kernel.key.hex(); }
};

/// The graph's kernels of constant extents after the passes of `opt_level`, in the order of their first use.
std::vector<Task> extract_tasks(const ir::Graph& graph, const target::Target& target, int opt_level);
/// These, and behind them the kernels of each layer's other algorithms, where they are accurate; of maps in a
/// layout that is requested.
std::vector<Task> extract_all_tasks(const ir::Graph& graph, const target::Target& target, int opt_level,
                                    const std::optional<passes::DesiredLayout>& layout = {});

/// Inputs and expected outputs of the task's trials, its own constants among them.
driver::KernelReference make_reference(const Task& task);

/// "all", "0,2" or "3-5,7" -> places among `count` tasks, ascending. Throws Error(kUsage).
std::vector<size_t> parse_selection(const std::string& text, size_t count);

}  // namespace tensormill::tune
