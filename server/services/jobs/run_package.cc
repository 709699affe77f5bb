#include "server/services/jobs/run_package.h"

#include <array>
#include <chrono>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::server {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// splitmix64 (Steele, Lea, Flood 2014).
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void set_inputs(exec::GraphExecutor& executor, const services::NamedTensors& inputs,
                const services::RunOptions& options, const std::vector<int64_t>& dims) {
  executor.clear_inputs();
  // What is filled has the extents that the given inputs bind, never those of the run before.
  if (options.fill_mode) executor.bind_dims(dims.empty() ? executor.package().first_dims() : dims);
  std::vector<bool> given(executor.inputs().size());
  for (const auto& [name, tensor] : inputs) {
    const size_t index = executor.input_index(name);
    if (given[index]) {
      throw Error(ErrorCode::kInvalidTensor,
                  "input \"" + executor.inputs()[index].name + "\" is given twice, once as \"" + name + "\"");
    }
    executor.set_input(index, {tensor.dtype(), tensor.shape(), tensor.data()});
    given[index] = true;
  }
  if (!options.fill_mode) return;
  executor.settle_shapes();
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) continue;
    const package::Port& port = executor.inputs()[i];
    const Tensor tensor =
        filled_tensor(port.dtype, concrete_shape(port.shape), *options.fill_mode, options.seed + i);
    executor.set_input(i, {tensor.dtype(), tensor.shape(), tensor.data()});
  }
}

std::string profile_json(const exec::GraphExecutor& executor, const std::vector<exec::StepTime>& profile) {
  Json steps = Json::array();
  for (const exec::StepTime& time : profile) {
    const package::Step& step = executor.plan().steps[time.step];
    steps.push_back({{"step", step.name},
                     {"function", step.function},
                     {"origins", step.origins},
                     {"start_us", static_cast<double>(time.start_ns) / 1e3},
                     {"duration_us", static_cast<double>(time.duration_ns) / 1e3},
                     {"flops", step.flops},
                     {"bytes", step.bytes}});
  }
  return steps.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<exec::StepTime> mean_profile(exec::GraphExecutor& executor, parallel::ThreadPool& pool,
                                         const exec::RunOptions& options, int runs) {
  std::vector<exec::StepTime> profile;
  std::map<size_t, int64_t> durations;
  exec::RunOptions profiled = options;
  profiled.profile = &profile;
  for (int i = 0; i < runs; ++i) {
    executor.run(pool, profiled);
    for (const exec::StepTime& time : profile) durations[time.step] += time.duration_ns;
  }
  for (exec::StepTime& time : profile) time.duration_ns = durations.at(time.step) / runs;
  return profile;
}

}  // namespace

const char* fill_mode_name(services::FillMode mode) {
  constexpr std::array<const char*, 3> kNames = {"zeros", "ones", "random"};
  return kNames[static_cast<size_t>(mode)];
}

services::FillMode parse_fill_mode(const std::string& text) {
  if (text == "zeros") return services::FillMode::kZeros;
  if (text == "ones") return services::FillMode::kOnes;
  if (text == "random") return services::FillMode::kRandom;
  throw Error(ErrorCode::kInvalidArgument, "fill mode is \"" + text + "\", expected zeros, ones or random");
}

Tensor filled_tensor(DType dtype, const Shape& shape, services::FillMode mode, uint64_t seed) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  if (mode == services::FillMode::kZeros) return tensor;
  uint64_t state = seed;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (mode == services::FillMode::kOnes) {
      tensor.set_element(i, 1.0);
      continue;
    }
    const uint64_t bits = next_random(state) >> 40;
    if (is_float(dtype)) {
      tensor.set_element(i, static_cast<double>(bits) * 0x1p-23 - 1.0);
    } else {
      tensor.set_element_int(i, static_cast<int64_t>(dtype == DType::kBool ? bits & 1 : bits & 127));
    }
  }
  return tensor;
}

services::Timing measured_run(exec::GraphExecutor& executor, const services::RunOptions& options,
                              parallel::ThreadPool& pool, const exec::RunOptions& run_options) {
  const bool measured = options.repeat > 1 || options.number > 1;
  exec::RunOptions plain = run_options;
  plain.profile = nullptr;
  // The first run pays for page faults; a measurement does not count it.
  if (measured) executor.run(pool, plain);
  services::Timing timing;
  for (int i = 0; i < options.repeat; ++i) {
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < options.number; ++k) executor.run(pool, plain);
    const double each = milliseconds_since(start) / options.number;
    if (measured) timing.runs_ms.push_back(each);
    timing.compute_ms = each;
  }
  if (options.profile) {
    timing.profile_json = profile_json(executor, mean_profile(executor, pool, run_options, options.repeat));
  }
  return timing;
}

services::RunResult run_executor(exec::GraphExecutor& executor, const services::NamedTensors& inputs,
                                 const services::RunOptions& options, parallel::ThreadPool& pool,
                                 const exec::RunOptions& run_options, const std::vector<int64_t>& dims) {
  set_inputs(executor, inputs, options, dims);
  services::RunResult result;
  result.timing = measured_run(executor, options, pool, run_options);
  for (size_t i = 0; i < executor.outputs().size(); ++i) {
    result.outputs.emplace_back(executor.outputs()[i].name, executor.copy_output(i));
  }
  return result;
}

}  // namespace tensormill::server
