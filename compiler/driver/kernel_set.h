/// The kernels of constant extents of a package, of whatever plan, each compiled once: by its tuning record
/// where it has one whose steps apply, else by the default schedule. Thread-safety: a set belongs to one
/// thread, which compiles with `options.threads` of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/driver/compile.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/schedule/schedule.h"

namespace tensormill::driver {

/// What compiling one kernel leaves.
struct CompiledKernel {
  codegen::Object object;
  plan::KernelWorkspace workspace;
  std::string schedule_text;
  std::string loop_text;
  std::string tuning_record;                  ///< of the schedule; "" for the analytic default
  std::string tuning_reason;                  ///< why there is no record
  std::optional<RefusedRecord> refused = {};  ///< a record whose steps made no kernel
};

class KernelSet {
public:
  /// `options` and `backend` outlive the set. `report`: called from any of the threads, with how many of how
  /// many kernels are done; what it throws ends the compilation.
  KernelSet(const CompileOptions& options, const codegen::Backend& backend,
            std::function<void(int64_t done, int64_t total)> report)
      : options_(options), backend_(backend), report_(std::move(report)) {}

  /// Where the kernel stands. `inputs`: of its first call, in the graph, whose constants it is verified with.
  size_t add(const plan::Kernel& kernel, const ir::Graph& graph, const std::vector<ir::ValueId>& inputs);
  /// Compiles and verifies those that were added since it was called last; the graphs that they came with are
  /// not looked at afterwards. Throws Error(kWrongAnswer) where a kernel fails its verification.
  void compile();
  /// Leaves the first `count`: no plan calls the others.
  void keep(size_t count);

  /// Of a kernel that was added.
  size_t place_of(const Digest& key) const { return by_key_.at(key); }
  size_t size() const { return kernels_.size(); }
  const plan::Kernel& kernel(size_t index) const { return kernels_[index]; }
  CompiledKernel& compiled(size_t index) { return compiled_[index]; }
  const CompiledKernel& compiled(size_t index) const { return compiled_[index]; }

  /// Whether the kernel is compared with its reference, and whether any is.
  bool verifies(const plan::Kernel& kernel) const;
  bool verifies() const;

private:
  bool dumps(const std::string& stage) const { return options_.dumps.count(stage) != 0; }
  bool compile_by_record(size_t index);
  void compile_kernel(size_t index);
  void compile_with(size_t index, const schedule::Schedule& steps);

  const CompileOptions& options_;
  const codegen::Backend& backend_;
  std::function<void(int64_t, int64_t)> report_;
  std::vector<plan::Kernel> kernels_;
  std::map<Digest, size_t> by_key_;
  std::vector<CompiledKernel> compiled_;  ///< of the first of `kernels_`
  /// Of those behind them, the constants that the model has for their inputs; null for other inputs.
  std::vector<std::vector<const Tensor*>> constants_;
};

}  // namespace tensormill::driver
