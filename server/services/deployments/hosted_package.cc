#include "server/services/deployments/hosted_package.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/other_graph.h"
#include "server/services/deployments/batch_rows.h"
#include "server/services/forms.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

using batching::Clock;

namespace {

uint64_t ns_between(Clock::time_point from, Clock::time_point to) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

batching::Limits batcher_limits(const HostOptions& options) {
  const bool waits = options.max_batch > 1;
  return {options.instances, options.max_queue, options.max_batch,
          waits ? options.max_delay : std::chrono::microseconds(0)};
}

/// The first dim of each tensor, which is the batch's, is free.
void free_first_dims(std::vector<services::TensorSpec>& specs) {
  for (services::TensorSpec& spec : specs) {
    if (!spec.shape.empty()) spec.shape.front() = Dim(std::string());
  }
}

/// What may be printed, and coded, on a thread that reads requests.
constexpr uint64_t kSmallAnswer = uint64_t{16} << 10;

/// At its end the executor reads its own memory again.
struct LentInput {
  exec::GraphExecutor& executor;
  ~LentInput() { executor.lend_input(0, nullptr); }
};

}  // namespace

struct InProcessPackage::InferRequest final : batching::Request {
  services::NamedTensors inputs;  ///< as given, when requests do not share runs
  std::vector<Tensor> ordered;    ///< by input, when they do
  services::RunOptions options;
  services::RunResult result;
};

InProcessPackage::InProcessPackage(const std::shared_ptr<const package::LoadedPackage>& package,
                                   parallel::ThreadPool& pool, const InProcessOptions& host,
                                   const HostOptions& options)
    : pool_(pool),
      host_(host),
      options_(options),
      inputs_(specs_of(package->metadata().inputs)),
      outputs_(specs_of(package->metadata().outputs)),
      batcher_(batcher_limits(options), [this](int instance, std::span<const batching::RequestPtr> batch) {
        run_batch(instance, batch);
      }) {
  statistics_.memory_bytes = count_arenas(*package);
  for (int i = 0; i < options.instances; ++i) {
    instances_.push_back(make_instance(package));
  }
  const package::PlanSet& plans = package->package().plans();
  runs_are_alike_ = batched() ? options.max_delay.count() == 0 : !plans.is_dynamic() && !plans.model;
  answers_are_small_ = runs_are_alike_ && answer_bytes() <= kSmallAnswer;
  if (!batched()) return;
  free_first_dims(inputs_);
  free_first_dims(outputs_);
  make_slabs();
}

/// Of the largest run; of a package that does not say how much, more than any.
uint64_t InProcessPackage::answer_bytes() const {
  uint64_t bytes = 0;
  for (const package::Port& port : instances_.front().back().executor->outputs()) {
    const bool told = std::all_of(port.shape.begin(), port.shape.end(),
                                  [](const Dim& dim) { return std::holds_alternative<int64_t>(dim); });
    if (!told) return UINT64_MAX;
    bytes += static_cast<uint64_t>(num_bytes(concrete_shape(port.shape), port.dtype));
  }
  return bytes;
}

int64_t InProcessPackage::count_arenas(const package::LoadedPackage& package) {
  // Executors of one instance stay bound to their batches; each has at most the memory of the largest.
  const package::PlanSet& plans = package.package().plans();
  const bool has_many = batched() && plans.is_dynamic();
  const auto executors = static_cast<int64_t>(has_many ? std::max<size_t>(plans.variants.size(), 1) : 1);
  const int64_t bytes = options_.instances * executors * exec::executor_bytes(package, host_.threads);
  if (!host_.arenas) return bytes;
  arenas_.emplace(host_.arenas);
  take_arenas(*arenas_, *host_.arenas, options_.instances, bytes);
  return bytes;
}

void InProcessPackage::make_slabs() {
  // Copies of small rows cost less than what keeps account of them.
  constexpr size_t kLeastRow = size_t{32} << 10;
  const Variant& largest = instances_.front().back();
  const std::vector<package::Port>& ports = largest.executor->inputs();
  if (ports.size() != 1 || largest.rows < options_.max_batch) return;
  const auto bytes = static_cast<size_t>(num_bytes(concrete_shape(ports.front().shape), ports.front().dtype));
  row_bytes_ = bytes / static_cast<size_t>(largest.rows);
  if (row_bytes_ < kLeastRow || row_bytes_ % kTensorAlignment != 0) return;
  // For each instance one that runs and one that fills, and one more for those whose bodies come slowly.
  slabs_.emplace(row_bytes_, largest.rows, options_.max_batch, 2 * options_.instances + 1);
}

std::shared_ptr<void> InProcessPackage::input_room(size_t bytes) {
  return slabs_ && bytes == row_bytes_ ? slabs_->take() : nullptr;
}

InProcessPackage::Instance InProcessPackage::make_instance(
    const std::shared_ptr<const package::LoadedPackage>& package) const {
  const auto executor_of = [&] {
    return std::make_unique<exec::GraphExecutor>(package,
                                                 exec::ExecutorOptions{host_.threads, host_.memory_budget});
  };
  Instance instance;
  const package::PlanSet& plans = package->package().plans();
  if (!batched() || !plans.is_dynamic()) {
    instance.push_back({1, executor_of()});
    if (batched()) instance.back().rows = batch_dim(*instance.back().executor);
    return instance;
  }
  // One executor for each batch that the package has kernels for.
  std::vector<int64_t> batches;
  for (const package::PlanVariant& variant : plans.variants) batches.push_back(variant.dims.front());
  if (batches.empty()) batches.push_back(options_.max_batch);
  std::sort(batches.begin(), batches.end());
  for (const int64_t rows : batches) {
    instance.push_back({rows, executor_of()});
    const bool has_one = plans.free_dims.size() == 1;
    if (has_one) instance.back().executor->bind_dims({rows});
    const bool has_rows =
        has_one && batch_dim(*instance.back().executor) == rows &&
        std::all_of(plans.input_shapes.begin(), plans.input_shapes.end(), [](const DimShape& shape) {
          return !shape.empty() && std::holds_alternative<std::string>(shape.front());
        });
    if (!has_rows) {
      const std::string detail = "the package's one free dim must be the first of all inputs and outputs";
      throw Error(ErrorCode::kInvalidArgument, "max_batch: " + detail, {{"/max_batch", detail}});
    }
  }
  return instance;
}

exec::RunOptions InProcessPackage::run_options(Clock::time_point deadline,
                                               const parallel::CancelToken& cancel) const {
  exec::RunOptions options;
  // Runs side by side with a thread each get more done than runs that wait for each other's threads.
  options.threads = std::max(1, host_.threads / options_.instances);
  options.deadline = deadline;
  options.cancel = &cancel;
  options.common_pictures = true;
  return options;
}

void InProcessPackage::check_batching(const std::stop_token& stop) {
  const int64_t rows = instances_.front().back().rows;
  if (options_.max_batch > rows) {
    const std::string detail =
        "is " + std::to_string(options_.max_batch) + ", the package takes batches of " + std::to_string(rows);
    throw Error(ErrorCode::kInvalidArgument, "max_batch: " + detail, {{"/max_batch", detail}});
  }
  parallel::CancelToken cancel;
  const std::stop_callback on_stop(stop, [&cancel] { cancel.cancel(); });
  check_rows_are_independent(*instances_.front().back().executor, pool_,
                             run_options(Clock::now() + host_.run_timeout, cancel));
}

void InProcessPackage::warm_up(const std::stop_token& stop) {
  // Each run is its child's.
  if (package::is_model_step(instances_.front().front().executor->package().plan())) return;
  parallel::CancelToken cancel;
  const std::stop_callback on_stop(stop, [&cancel] { cancel.cancel(); });
  for (Instance& instance : instances_) {
    for (Variant& variant : instance) {
      try {
        // As the executor is bound: each variant of a batch stays with its rows.
        for (size_t i = 0; i < variant.executor->inputs().size(); ++i) {
          const std::span<std::byte> bytes = variant.executor->input_bytes(i);
          std::fill(bytes.begin(), bytes.end(), std::byte{0});
        }
        variant.executor->run(pool_, run_options(Clock::now() + host_.run_timeout, cancel));
      } catch (const OtherGraph&) {
        // Runs at these extents are their children's.
        continue;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kTensorData) throw;
      }
    }
  }
}

void InProcessPackage::run(services::NamedTensors inputs, const services::RunOptions& options,
                           const services::CallContext& context, services::Done<services::RunResult> done) {
  const auto request = std::make_shared<InferRequest>();
  const Clock::time_point arrived = Clock::now();
  try {
    request->options = options;
    request->priority = options.priority;
    request->cancelled = context.cancelled;
    request->later = context.later;
    request->owner = shared_from_this();
    const std::chrono::microseconds limit = host_.run_timeout;
    request->deadline = arrived + std::min(limit, options.timeout.value_or(limit));
    // A measurement is of its own rows.
    request->alone = options.repeat > 1 || options.number > 1 || options.profile;
    if (batched()) {
      request->ordered = ordered_rows(executor_for(0, 1), std::move(inputs), options, options_.max_batch);
      if (!request->ordered.empty()) request->rows = request->ordered.front().shape().front();
    } else {
      request->inputs = std::move(inputs);
    }
    // The batcher holds the request until this has returned.
    request->done = [this, request = request.get(),
                     done = std::move(done)](const std::optional<Error>& error) {
      if (error) count_failure(request->arrived);
      using Outcome = services::Outcome<services::RunResult>;
      done(error ? Outcome(std::make_exception_ptr(*error)) : Outcome(std::move(request->result)));
    };
    batcher_.submit(request);
  } catch (const Error&) {
    count_failure(arrived);
    throw;
  }
}

exec::GraphExecutor& InProcessPackage::executor_for(int instance, int64_t rows) {
  for (Variant& variant : instances_[static_cast<size_t>(instance)]) {
    if (variant.rows >= rows) return *variant.executor;
  }
  throw InternalError("a batch of " + std::to_string(rows) + " rows that no variant takes");
}

void InProcessPackage::run_batch(int instance, std::span<const batching::RequestPtr> batch) {
  std::vector<InferRequest*> requests;
  int64_t rows = 0;
  for (const batching::RequestPtr& one : batch) {
    requests.push_back(static_cast<InferRequest*>(one.get()));
    rows += one->rows;
  }
  exec::GraphExecutor& executor = executor_for(instance, rows);
  try {
    run_together(executor, requests);
  } catch (const Error& error) {
    if (requests.size() == 1 || error.code() != ErrorCode::kTensorData) throw;
    // One of them has data that the model refuses: each alone, so that the others are served.
    for (InferRequest* request : requests) {
      try {
        run_together(executor, {request});
      } catch (const Error& own) {
        request->failure = own;
      }
    }
  }
}

void InProcessPackage::run_together(exec::GraphExecutor& executor, const std::vector<InferRequest*>& batch) {
  parallel::CancelToken cancel;
  std::atomic<size_t> wanted{batch.size()};
  const auto gone = [&] {
    if (--wanted == 0) cancel.cancel();
  };
  std::vector<std::unique_ptr<std::stop_callback<decltype(gone)>>> watches;
  Clock::time_point deadline = Clock::time_point::min();
  for (const InferRequest* request : batch) {
    watches.push_back(std::make_unique<std::stop_callback<decltype(gone)>>(request->cancelled, gone));
    deadline = std::max(deadline, request->deadline);
  }
  const exec::RunOptions options = run_options(deadline, cancel);
  if (!batched()) return run_single(executor, *batch.front(), options);
  const std::vector<int64_t> rows = place_rows(executor, batch);
  const LentInput guard{executor};
  const Clock::time_point gathered = Clock::now();
  const services::Timing timing = measured_run(executor, batch.front()->options, pool_, options);
  const Clock::time_point computed = Clock::now();
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i]->result.outputs = scatter_rows(executor, rows[i], batch[i]->rows);
    batch[i]->result.timing = timing;
  }
  count(batch, gathered, computed);
}

std::vector<int64_t> InProcessPackage::place_rows(exec::GraphExecutor& executor,
                                                  const std::vector<InferRequest*>& batch) {
  std::vector<int64_t> rows;
  if (slabs_) {
    std::vector<const void*> inputs;
    for (const InferRequest* request : batch) inputs.push_back(request->ordered.front().data());
    if (std::byte* const slab = slabs_->close(inputs)) {
      for (const void* input : inputs) {
        const ptrdiff_t offset = static_cast<const std::byte*>(input) - slab;
        rows.push_back(offset / static_cast<ptrdiff_t>(row_bytes_));
      }
      const size_t filled = row_bytes_ * batch.size();
      const size_t whole = executor.input_bytes(0).size();
      if (filled < whole) std::memset(slab + filled, 0, whole - filled);
      executor.lend_input(0, slab);
      return rows;
    }
  }
  std::vector<const std::vector<Tensor>*> tensors;
  int64_t next = 0;
  for (const InferRequest* request : batch) {
    tensors.push_back(&request->ordered);
    rows.push_back(next);
    next += request->rows;
  }
  gather_rows(executor, tensors);
  return rows;
}

services::RunResult InProcessPackage::result_of(exec::GraphExecutor& executor, const InferRequest& request,
                                                const exec::RunOptions& options) {
  try {
    return run_executor(executor, request.inputs, request.options, pool_, options);
  } catch (const OtherGraph&) {
    if (!options_.run_apart) throw;
  } catch (const Error& error) {
    if (!options_.run_apart || error.code() != ErrorCode::kInvalidTensor) throw;
    // A child would refuse these as well, and later.
    if (!request.options.fill_mode && request.inputs.size() != executor.inputs().size()) throw;
    for (const auto& [name, tensor] : request.inputs)
      executor.check_declared(executor.input_index(name), {tensor.dtype(), tensor.shape(), tensor.data()});
  }
  services::RunOptions apart = request.options;
  apart.timeout = std::chrono::ceil<std::chrono::microseconds>(request.deadline - Clock::now());
  return options_.run_apart(request.inputs, apart, request.cancelled);
}

void InProcessPackage::run_single(exec::GraphExecutor& executor, InferRequest& request,
                                  const exec::RunOptions& options) {
  request.result = result_of(executor, request, options);
  const double ms = request.result.timing.compute_ms;
  const auto compute =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
  const Clock::time_point now = Clock::now();
  count({&request}, std::max(request.started, now - compute), now);
}

void InProcessPackage::count(const std::vector<InferRequest*>& batch, Clock::time_point gathered,
                             Clock::time_point computed) {
  const Clock::time_point now = Clock::now();
  int64_t rows = 0;
  for (const InferRequest* request : batch) rows += request->rows;
  const Clock::time_point started = batch.front()->started;
  remember_time(now - started);
  const std::lock_guard lock(statistics_mutex_);
  services::InferStatistics& total = statistics_;
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  total.last_inference.ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  ++total.execution_count;
  total.inference_count += static_cast<uint64_t>(rows);
  services::BatchTotal& size = total.batches[rows];
  size.input.add(ns_between(started, gathered));
  size.compute.add(ns_between(gathered, computed));
  size.output.add(ns_between(computed, now));
  for (InferRequest* request : batch) {
    request->result.batch_rows = rows;
    request->result.timing.queue_ms = ms_between(request->arrived, request->started);
    total.success.add(ns_between(request->arrived, now));
    total.queue.add(ns_between(request->arrived, request->started));
    total.input.add(ns_between(started, gathered));
    total.compute.add(ns_between(gathered, computed));
    total.output.add(ns_between(computed, now));
  }
}

void InProcessPackage::count_failure(Clock::time_point arrived) {
  const uint64_t spent = ns_between(arrived, Clock::now());
  const std::lock_guard lock(statistics_mutex_);
  statistics_.fail.add(spent);
}

/// An eighth of each new value: two slow ones in a row are enough. A lost update does no harm.
void InProcessPackage::remember_time(Clock::duration spent) {
  const int64_t usual = usual_ns_.load(std::memory_order_relaxed);
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  usual_ns_.store(usual == 0 ? ns : usual + (ns - usual) / 8, std::memory_order_relaxed);
}

bool InProcessPackage::is_quick() const {
  constexpr int64_t kQuickNs = 1'000'000;
  if (!answers_are_small_ || !pool_.has_free_core()) return false;
  const int64_t usual = usual_ns_.load(std::memory_order_relaxed);
  return usual > 0 && usual < kQuickNs;
}

services::InferStatistics InProcessPackage::statistics() const {
  const std::lock_guard lock(statistics_mutex_);
  return statistics_;
}

}  // namespace tensormill::server
