// Runs: alone, and with their inputs and outputs as one call.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "runtime/base/error.h"
#include "runtime/capi/handles.h"

using tensormill::Error;
using tensormill::ErrorCode;
using tensormill::capi::check_aligned;
using tensormill::capi::fill;
using tensormill::capi::guarded;
using tensormill::capi::require;
using tensormill::capi::view_of;

namespace {

void run(tm_executor& executor, int32_t threads, int64_t time_limit_ms) {
  tensormill::exec::RunOptions options;
  options.threads = threads > 0 ? threads : executor.pool->cores();
  if (time_limit_ms > 0) {
    // A day is as good as no limit, and keeps the sum in range.
    const auto limit = std::chrono::milliseconds(std::min<int64_t>(time_limit_ms, 86'400'000));
    options.deadline = std::chrono::steady_clock::now() + limit;
  }
  executor.profile.clear();
  if (executor.is_profiled) options.profile = &executor.profile;
  executor.executor.run(*executor.pool, options);
}

void set(tm_executor& executor, size_t index, const tm_argument& input) {
  const tensormill::TensorView view = view_of(input.tensor);
  if (input.may_lend != 0) {
    check_aligned(view.data);
    executor.executor.set_input_in_place(index, view);
  } else {
    executor.executor.lend_input(index, nullptr);
    executor.executor.set_input(index, view);
  }
}

/// Before the run, with the shapes that the inputs have so far: those that it binds itself end it.
void lend(tm_executor& executor, size_t index, const tm_argument& output) {
  const bool lends =
      output.may_lend != 0 && output.place != nullptr && output.room >= executor.executor.output_bytes(index);
  if (lends) check_aligned(output.place);
  executor.executor.lend_output(index, lends ? output.place : nullptr);
}

void get(tm_executor& executor, size_t index, tm_argument& output) {
  tm_tensor& tensor = output.tensor;
  fill(tensor, executor.executor.output(index), executor.output_shapes[index]);
  if (output.place == nullptr || output.place == tensor.data || tensor.bytes > output.room) return;
  if (tensor.bytes != 0) std::memcpy(output.place, tensor.data, tensor.bytes);
  tensor.data = output.place;
}

}  // namespace

extern "C" {

int32_t tm_executor_run(tm_executor* executor, int32_t threads, int64_t time_limit_ms) {
  return guarded([&] {
    require(executor, "executor");
    run(*executor, threads, time_limit_ms);
  });
}

int32_t tm_executor_call(tm_executor* executor, const tm_argument* inputs, int32_t input_count,
                         tm_argument* outputs, int32_t output_count, int32_t threads, int64_t time_limit_ms) {
  return guarded([&] {
    require(executor, "executor");
    const auto known_inputs = static_cast<int32_t>(executor->input_names.size());
    const auto known_outputs = static_cast<int32_t>(executor->output_names.size());
    if (input_count != known_inputs || output_count < 0 || output_count > known_outputs) {
      throw Error(ErrorCode::kInvalidArgument,
                  std::to_string(input_count) + " inputs and " + std::to_string(output_count) +
                      " outputs are given, the model has " + std::to_string(known_inputs) + " and " +
                      std::to_string(known_outputs));
    }
    if (input_count != 0) require(inputs, "inputs");
    if (output_count != 0) require(outputs, "outputs");
    for (int32_t i = 0; i < input_count; ++i) set(*executor, static_cast<size_t>(i), inputs[i]);
    for (int32_t i = 0; i < output_count; ++i) lend(*executor, static_cast<size_t>(i), outputs[i]);
    run(*executor, threads, time_limit_ms);
    for (int32_t i = 0; i < output_count; ++i) get(*executor, static_cast<size_t>(i), outputs[i]);
  });
}

}  // extern "C"
