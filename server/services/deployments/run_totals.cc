#include "server/services/deployments/run_totals.h"

#include <algorithm>
#include <cmath>

namespace tensormill::server {

namespace {

uint64_t whole(double value) { return static_cast<uint64_t>(std::llround(value)); }

}  // namespace

void RunTotals::set_memory(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  totals_.memory_bytes = bytes;
}

void RunTotals::answered(const services::RunResult& result, int64_t rows, std::chrono::nanoseconds spent) {
  const auto all = static_cast<double>(spent.count());
  const double queue = result.timing.queue_ms * 1e6;
  const double compute = result.timing.compute_ms * 1e6;
  // What is left is copying and the way there and back, in equal parts.
  const double way = std::max(0.0, all - queue - compute) / 2;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  totals_.last_inference.ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  totals_.inference_count += static_cast<uint64_t>(rows);
  totals_.success.add(static_cast<uint64_t>(spent.count()));
  totals_.queue.add(whole(queue));
  totals_.input.add(whole(way));
  totals_.compute.add(whole(compute));
  totals_.output.add(whole(way));
  const double part =
      static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(result.batch_rows, rows));
  Runs& runs = runs_[std::max<int64_t>(result.batch_rows, rows)];
  runs.count += part;
  runs.compute_ns += part * compute;
  runs.other_ns += part * way;
}

void RunTotals::failed(std::chrono::nanoseconds spent) {
  const std::lock_guard lock(mutex_);
  totals_.fail.add(static_cast<uint64_t>(spent.count()));
}

services::InferStatistics RunTotals::statistics() const {
  const std::lock_guard lock(mutex_);
  services::InferStatistics result = totals_;
  for (const auto& [rows, runs] : runs_) {
    const uint64_t count = whole(runs.count);
    result.execution_count += count;
    services::BatchTotal& batch = result.batches[rows];
    batch.input = {count, whole(runs.other_ns)};
    batch.compute = {count, whole(runs.compute_ns)};
    batch.output = {count, whole(runs.other_ns)};
  }
  return result;
}

}  // namespace tensormill::server
