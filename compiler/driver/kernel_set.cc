#include "compiler/driver/kernel_set.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "compiler/codegen/jit.h"
#include "compiler/driver/build_kernel.h"
#include "compiler/driver/for_each_index.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

size_t KernelSet::add(const plan::Kernel& kernel, const ir::Graph& graph,
                      const std::vector<ir::ValueId>& inputs) {
  const auto [found, is_new] = by_key_.emplace(kernel.key, kernels_.size());
  if (!is_new) return found->second;
  kernels_.push_back(kernel);
  constants_.push_back(constants_of(graph, inputs));
  return found->second;
}

void KernelSet::compile() {
  const size_t before = compiled_.size();
  compiled_.resize(kernels_.size());
  std::atomic<int64_t> done{static_cast<int64_t>(before)};
  for_each_index(kernels_.size() - before, options_.threads, [&](size_t index) {
    compile_kernel(before + index);
    report_(++done, static_cast<int64_t>(kernels_.size()));
  });
  constants_.clear();
}

void KernelSet::keep(size_t count) {
  std::erase_if(by_key_, [&](const auto& each) { return each.second >= count; });
  kernels_.erase(kernels_.begin() + static_cast<std::ptrdiff_t>(count), kernels_.end());
  compiled_.erase(compiled_.begin() + static_cast<std::ptrdiff_t>(std::min(count, compiled_.size())),
                  compiled_.end());
  constants_.clear();
}

/// Compiles the kernel by the steps of its record. False where it has none or where they make no kernel,
/// which is no error: records come from strangers, and their damage may show in any phase, so that a bug of a
/// later phase is a reason, too.
bool KernelSet::compile_by_record(size_t index) {
  CompiledKernel& compiled = compiled_[index];
  const auto found = options_.schedules.find(kernels_[index].key.hex());
  compiled.tuning_reason =
      found == options_.schedules.end() ? options_.schedules_reason : found->second.reason;
  if (found == options_.schedules.end() || !found->second.reason.empty()) return false;
  const auto refuse = [&](const std::string& why, bool is_damaged) {
    compiled = CompiledKernel();
    compiled.tuning_reason = (is_damaged ? "its steps make no kernel: " : "its steps do not apply: ") + why;
    compiled.refused = {"record " + found->second.record.substr(0, 12) + " of kernel " +
                            kernels_[index].symbol + ": " + compiled.tuning_reason,
                        is_damaged};
    return false;
  };
  try {
    compile_with(index, schedule::parse_schedule(found->second.steps));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    return refuse(error.message(), error.code() != ErrorCode::kInvalidRecords);
  } catch (const InternalError& error) {
    return refuse(error.what(), true);
  }
  compiled.tuning_record = found->second.record;
  return true;
}

void KernelSet::compile_kernel(size_t index) {
  const plan::Kernel& kernel = kernels_[index];
  if (compile_by_record(index)) return;
  try {
    compile_with(index, schedule::default_schedule(kernel.program, options_.target));
  } catch (const Error& error) {
    // No record was read: a template took a program that its steps do not apply to.
    if (error.code() == ErrorCode::kInvalidRecords)
      throw InternalError("kernel " + kernel.symbol + " has no schedule: " + error.message());
    throw;
  }
}

void KernelSet::compile_with(size_t index, const schedule::Schedule& steps) {
  const plan::Kernel& kernel = kernels_[index];
  CompiledKernel& compiled = compiled_[index];
  compiled.schedule_text = schedule::print(steps);
  BuiltKernel built = build_kernel(kernel, steps, options_.target, backend_, {dumps("ll"), dumps("asm")});
  compiled.workspace = built.workspace;
  if (dumps("tir")) compiled.loop_text = te::print(built.function);
  compiled.object = std::move(built.object);
  if (!verifies(kernel)) return;
  const std::unique_ptr<codegen::JitLibrary> library = codegen::JitLibrary::load(compiled.object);
  verify_kernel(kernel, library->kernel(kernel.symbol), compiled.workspace,
                constants_[index + constants_.size() - kernels_.size()], compares_of(options_.verify));
}

bool KernelSet::verifies(const plan::Kernel& kernel) const {
  return verifies() && (options_.verify == VerifyMode::kFull || is_quick_to_verify(kernel));
}

bool KernelSet::verifies() const { return options_.verify != VerifyMode::kNone && options_.host_runs_target; }

}  // namespace tensormill::driver
