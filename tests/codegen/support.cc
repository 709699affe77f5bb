#include "tests/codegen/support.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

#include "runtime/base/error.h"

namespace tensormill::codegen_test {
namespace {

int32_t launch(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  std::atomic<int64_t> next = 0;
  std::vector<int32_t> codes(static_cast<size_t>(tasks));
  const auto work = [&](int32_t worker) {
    for (int64_t i = next++; i < tasks; i = next++)
      codes[static_cast<size_t>(i)] = task(call, closure, i, worker);
  };
  std::vector<std::thread> threads;
  for (int32_t worker = 1; worker < call->parallel->workers; ++worker) threads.emplace_back(work, worker);
  work(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::find_if(codes.begin(), codes.end(), [](int32_t code) { return code != 0; });
  return failed == codes.end() ? 0 : *failed;
}

}  // namespace

target::Target host() { return target::host_target(); }

target::Target parse(const std::string& text) { return target::parse_target(text, host()); }

std::vector<target::Target> runnable_targets() {
  std::vector<target::Target> targets = {host()};
  const std::vector<std::string> own = targets[0].required_features();
  if (!targets[0].is_x86()) return targets;
  for (const char* cpu : {"x86-64", "x86-64-v2", "x86-64-v3", "skylake-avx512"}) {
    const target::Target target = parse(std::string("llvm -mcpu=") + cpu);
    const std::vector<std::string> needed = target.required_features();
    if (std::includes(own.begin(), own.end(), needed.begin(), needed.end())) targets.push_back(target);
  }
  return targets;
}

Kernel::Kernel(const te::Function& function, const target::Target& target)
    : name_(function.name),
      shared_bytes_(function.shared_workspace_bytes),
      worker_bytes_((function.worker_workspace_bytes + 63) / 64 * 64) {
  library_ = codegen::JitLibrary::load(codegen::make_llvm_backend()->emit(function, target, {}));
}

RunResult Kernel::run(std::vector<Tensor>& arguments, const std::vector<int64_t>& dims, int workers) const {
  std::vector<void*> buffers;
  for (Tensor& tensor : arguments) buffers.push_back(tensor.data());
  const std::shared_ptr<void> shared = allocate_aligned(static_cast<size_t>(shared_bytes_));
  const std::shared_ptr<void> worker = allocate_aligned(static_cast<size_t>(worker_bytes_ * workers));
  const tm_parallel parallel = {nullptr, workers, 0, &launch};
  RunResult result;
  const tm_call call = {TM_ABI_VERSION,
                        static_cast<uint32_t>(buffers.size()),
                        buffers.data(),
                        dims.data(),
                        static_cast<uint32_t>(dims.size()),
                        0,
                        shared.get(),
                        worker.get(),
                        worker_bytes_,
                        &parallel,
                        &result.error_index};
  result.code = library_->kernel(name_)(&call);
  return result;
}

RunResult Kernel::run_raw(const tm_call& call) const {
  RunResult result;
  result.code = library_->kernel(name_)(&call);
  return result;
}

te::Function make_function(std::string name, const std::vector<te::Buffer>& parameters, size_t outputs,
                           te::Stmt body) {
  te::Function function;
  function.name = std::move(name);
  for (size_t i = 0; i < parameters.size(); ++i) {
    function.parameters.push_back({parameters[i], i + outputs >= parameters.size()});
  }
  function.aliases.assign(parameters.size(), -1);
  function.body = std::move(body);
  return function;
}

te::Buffer flat(std::string name, DType dtype, int64_t extent, te::Scope scope) {
  return te::make_buffer(std::move(name), dtype, {te::Expr(extent)}, scope);
}

std::string difference(const Tensor& actual, const Tensor& expected) {
  TM_CHECK(actual.dtype() == expected.dtype() && actual.shape() == expected.shape(),
           "tensors of different types");
  const size_t size = dtype_bytes(actual.dtype());
  const auto* a = static_cast<const char*>(actual.data());
  const auto* b = static_cast<const char*>(expected.data());
  for (int64_t i = 0; i < actual.num_elements(); ++i) {
    const size_t offset = static_cast<size_t>(i) * size;
    if (std::memcmp(a + offset, b + offset, size) == 0) continue;
    const double x = actual.element_as_double(i);
    const double y = expected.element_as_double(i);
    if (is_float(actual.dtype()) && std::isnan(x) && std::isnan(y)) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(x) + ", expected " + std::to_string(y);
  }
  return "";
}

}  // namespace tensormill::codegen_test
