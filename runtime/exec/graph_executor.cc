#include "runtime/exec/graph_executor.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/other_graph.h"
#include "runtime/base/text.h"
#include "runtime/exec/host_step.h"
#include "runtime/memory/planner.h"
#include "runtime/parallel/kernel_parallel.h"

namespace tensormill::exec {

namespace {

using package::Buffer;
using package::BufferKind;
using package::ExecPlan;
using package::Port;
using package::Step;
using package::StepKind;

std::string quoted_list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i == 0 ? "\"" : ", \"") + names[i] + "\"";
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

/// The model's nodes that a step came from.
std::string origins_text(const Step& step) {
  if (step.origins.empty()) return "step \"" + step.name + "\"";
  return (step.origins.size() == 1 ? "node " : "nodes ") + quoted_list(step.origins);
}

int64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
      .count();
}

/// "input_12" -> 12 for the prefix "input_".
std::optional<size_t> alias_index(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return index;
}

int64_t plan_bytes(const package::MemoryPlan& memory, int threads) {
  return memory::checked_add(memory.arena_bytes, memory::checked_mul(memory.worker_workspace_bytes, threads));
}

}  // namespace

int64_t executor_bytes(const package::LoadedPackage& package, int threads) {
  int64_t bytes = plan_bytes(package.bind(package.first_dims())->memory, threads);
  for (const package::PlanVariant& variant : package.package().plans().variants)
    bytes = std::max(bytes, plan_bytes(package::plan_memory(variant.plan), threads));
  return bytes;
}

GraphExecutor::GraphExecutor(std::shared_ptr<const package::LoadedPackage> package,
                             const ExecutorOptions& options)
    : package_(std::move(package)),
      max_threads_(std::max(options.max_threads, 1)),
      memory_budget_(options.memory_budget) {
  bind_plan(package_->bind(package_->first_dims()));
  input_set_.assign(inputs().size(), false);
}

void GraphExecutor::bind_plan(std::shared_ptr<const package::BoundPlan> plan) {
  const package::MemoryPlan& memory = plan->memory;
  const int64_t bytes = plan_bytes(memory, max_threads_);
  if (bytes > memory_budget_) {
    throw Error(ErrorCode::kMemoryBudget, "the package needs " + std::to_string(bytes) + " bytes for " +
                                              std::to_string(max_threads_) + " threads, " +
                                              std::to_string(memory_budget_) + " are allowed");
  }
  // A smaller shape runs in the memory of a larger one.
  const int64_t workspace_bytes = memory.worker_workspace_bytes * max_threads_;
  std::optional<memory::Arena> arena, workspace;
  if (memory.arena_bytes > arena_.size()) arena.emplace(memory.arena_bytes);
  if (workspace_bytes > worker_workspace_.size()) workspace.emplace(workspace_bytes);
  if (arena) arena_ = std::move(*arena);
  if (workspace) worker_workspace_ = std::move(*workspace);
  bound_plan_ = std::move(plan);
  lent_.clear();
  bound_.clear();
  data_shapes_->clear();
  growing_->clear();
  begin_segments();
  bound_.resize(this->plan().steps.size());
  for (size_t i = 0; i < bound_.size(); ++i) bound_[i].step = &this->plan().steps[i];
  for (size_t i = 0; i < end_of_segment(0); ++i) bind(i);
  bind_loops();
}

void GraphExecutor::bind_loops() {
  loops_.clear();
  loop_steps_.clear();
  branches_.clear();
  for (package::Branch& branch : package::branches_of(plan())) {
    const size_t step = branch.step;
    branches_.emplace(step, std::move(branch));
  }
  for (package::Loop& loop : package::loops_of(plan())) {
    for (const size_t step : {loop.begin, loop.end}) loop_steps_.emplace(step, loops_.size());
    loops_.push_back(runner_of(std::move(loop)));
  }
}

LoopRunner GraphExecutor::runner_of(package::Loop loop) const {
  std::byte* const staged = shared_workspace(loop.end);
  return {plan(), std::move(loop), [this](int32_t buffer) { return address(buffer); }, staged};
}

void* GraphExecutor::address(int32_t buffer) const {
  const ExecPlan& plan = this->plan();
  const Buffer& root = plan.buffers[static_cast<size_t>(root_buffer(plan, buffer))];
  const Buffer& value = plan.buffers[static_cast<size_t>(buffer)];
  if (root.kind == BufferKind::kConstant) {
    const int64_t inside = value.kind == BufferKind::kView ? value.view_offset : 0;
    const std::byte* constant = package_->package().constant(root.params_offset);
    if (is_interpreted())
      constant = static_cast<const std::byte*>(bound_plan_->constants.at(root_buffer(plan, buffer)).data());
    // Kernels never write constants: the plan's validator has checked it, and the mapping is read-only.
    return const_cast<std::byte*>(constant) + inside;
  }
  const int64_t offset = bound_plan_->memory.offsets[static_cast<size_t>(buffer)];
  // Of a segment that no run has bound.
  if (offset < 0 && segments_) return nullptr;
  TM_CHECK(offset >= 0, "buffer " + std::to_string(buffer) + " has no place");
  const int32_t root_id = root_buffer(plan, buffer);
  if (const auto lent = lent_.find(root_id); lent != lent_.end()) {
    return lent->second + (offset - bound_plan_->memory.offsets[static_cast<size_t>(root_id)]);
  }
  return place(offset);
}

std::byte* GraphExecutor::shared_workspace(size_t step_index) const {
  const int64_t shared = bound_plan_->memory.shared_workspace[step_index];
  return shared < 0 ? nullptr : place(shared);
}

void GraphExecutor::bind(size_t step_index) {
  const Step& step = plan().steps[step_index];
  const bool is_kernel = step.kind == StepKind::kKernel;
  Bound bound{.step = &step,
              .kernel = is_interpreted() ? nullptr : bound_plan_->kernels[step_index],
              .interpreted = is_interpreted() && is_kernel ? &bound_plan_->interpreted[step_index] : nullptr,
              .host = nullptr,
              .attributes = nullptr,
              .buffers = {},
              .shared_workspace = nullptr,
              .trim = package::trim_of(plan(), step)};
  for (int32_t buffer : step.args) bound.buffers.push_back(address(buffer));
  bound.shared_workspace = shared_workspace(step_index);
  const bool jumps = package::begins_loop(step) || package::ends_loop(step) || package::begins_branch(step);
  if (step.kind == StepKind::kHost && !jumps) {
    bound.host = host_ops::find_host_op(step.function);
    if (bound.host == nullptr) {
      throw Error(ErrorCode::kNotSupported, "the package needs the host step \"" + step.function +
                                                "\", which this program does not have");
    }
    const Bound& before = bound_[step_index];
    bound.attributes =
        before.host != nullptr ? before.attributes : host_ops::read_attributes(step.attributes);
  }
  bound_[step_index] = std::move(bound);
}

size_t GraphExecutor::find_port(const std::vector<Port>& ports, std::string_view name,
                                std::string_view what) const {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return i;
  }
  if (const auto index = alias_index(name, std::string(what) + "_"); index && *index < ports.size())
    return *index;
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  throw Error(ErrorCode::kInvalidTensor, "the model has no " + std::string(what) + " \"" + std::string(name) +
                                             "\"; it has " + quoted_list(names));
}

size_t GraphExecutor::input_index(std::string_view name) const { return find_port(inputs(), name, "input"); }
size_t GraphExecutor::output_index(std::string_view name) const {
  return find_port(outputs(), name, "output");
}

void GraphExecutor::set_input(std::string_view name, const TensorView& tensor) {
  set_input(input_index(name), tensor);
}

void GraphExecutor::set_input(size_t index, const TensorView& tensor) {
  TM_CHECK(index < inputs().size(), "input " + std::to_string(index));
  const Port& port = inputs()[index];
  if (port.dtype != kString || tensor.dtype != kString || tensor.shape.empty()) {
    if (dtype_fits(port.dtype, tensor.dtype))
      check_elements(port.dtype, tensor.data, num_elements(tensor.shape), "input \"" + port.name + "\"");
    return set_fitted(index, tensor);
  }
  try {
    const Tensor fitted = fitted_text(tensor, std::get<int64_t>(port.shape.back()));
    set_fitted(index, {fitted.dtype(), fitted.shape(), fitted.data()});
  } catch (Error& error) {
    error.add_context("input \"" + port.name + "\"");
    throw;
  }
}

std::span<std::byte> GraphExecutor::input_bytes(size_t index) {
  TM_CHECK(index < inputs().size(), "input " + std::to_string(index));
  input_set_[index] = true;
  unset_by_.erase(index);
  const int32_t buffer = inputs()[index].buffer;
  const int64_t bytes = plan().buffers[static_cast<size_t>(buffer)].bytes;
  return {static_cast<std::byte*>(address(buffer)), static_cast<size_t>(bytes)};
}

void GraphExecutor::clear_inputs() {
  input_set_.assign(inputs().size(), false);
  waiting_.clear();
  refused_.reset();
}

int32_t GraphExecutor::run_step(const Bound& bound, const RunOptions& options, const tm_parallel* parallel,
                                int64_t& error_index) const {
  const Step& step = *bound.step;
  if (step.kind == StepKind::kCopy) {
    const int64_t bytes = plan().buffers[static_cast<size_t>(step.args[0])].bytes;
    if (bytes != 0) std::memmove(bound.buffers[1], bound.buffers[0], static_cast<size_t>(bytes));
    return TM_OK;
  }
  if (step.kind == StepKind::kHost) {
    try {
      run_host_step(plan(), step, bound.host, bound.buffers, bound.attributes.get(), options.common_pictures,
                    *growing_);
    } catch (Error& error) {
      error.add_context(origins_text(step));
      throw;
    }
    if (bound.trim) {
      Shape shape = plan().buffers[static_cast<size_t>(bound.trim->buffer)].shape;
      for (size_t i = 0; i < bound.trim->axes.size(); ++i)
        shape[bound.trim->axes[i]] = *static_cast<const int64_t*>(bound.buffers[i + 1]);
      (*data_shapes_)[bound.trim->buffer] = std::move(shape);
    }
    return TM_OK;
  }
  if (bound.interpreted != nullptr) {
    (*bound.interpreted)(bound.buffers);
    return TM_OK;
  }
  const tm_call call{.abi_version = TM_ABI_VERSION,
                     .num_buffers = static_cast<uint32_t>(bound.buffers.size()),
                     .buffers = bound.buffers.data(),
                     .dims = step.dims.data(),
                     .num_dims = static_cast<uint32_t>(step.dims.size()),
                     .reserved = 0,
                     .shared_workspace = bound.shared_workspace,
                     .worker_workspace = worker_workspace_.data(),
                     .worker_workspace_stride = bound_plan_->memory.worker_workspace_bytes,
                     .parallel = parallel,
                     .error_index = &error_index};
  return bound.kernel(&call);
}

void GraphExecutor::throw_step_error(size_t step_index, int32_t code, int64_t error_index) const {
  const Step& step = plan().steps[step_index];
  if (code == TM_CANCELLED) throw Error(ErrorCode::kCancelled, "the run was cancelled in step " + step.name);
  if (code != TM_INDEX_OUT_OF_RANGE) {
    throw InternalError("kernel " + step.function + " returned " + std::to_string(code));
  }
  throw Error(ErrorCode::kTensorData, origins_text(step) + ": index " + std::to_string(error_index) +
                                          ", from the front, is outside its axis");
}

void GraphExecutor::throw_late(size_t step_index) const {
  std::string where;
  for (const LoopRunner& runner : loops_) {
    // The innermost loop around the step is the last one.
    if (step_index > runner.loop().begin && step_index <= runner.loop().end)
      where = ", in iteration " + std::to_string(runner.trip()) + " of the loop of " +
              origins_text(plan().steps[runner.loop().begin]);
  }
  throw Error(ErrorCode::kDeadlineExceeded,
              "the deadline passed before step " + bound_[step_index].step->name + where + ", " +
                  std::to_string(step_index) + " of " + std::to_string(bound_.size()) + " steps done");
}

/// What the workers of a run know of the steps that they go through side by side. Worker 0 alone writes where
/// it stopped; the others read whether it has.
struct GraphExecutor::Stretch {
  const GraphExecutor& executor;
  const RunOptions& options;
  std::chrono::steady_clock::time_point start;
  size_t begin, end;
  parallel::KernelErrors errors;
  std::atomic<bool> stopped{false};
  size_t step = 0;  ///< at which worker 0 stopped
  int32_t code = TM_OK;
  int64_t error_index = -1;
  bool late = false;  ///< the deadline passed
};

size_t GraphExecutor::end_before_jumps(size_t begin) const {
  const auto loop = loop_steps_.lower_bound(begin);
  const auto branch = branches_.lower_bound(begin);
  return std::min({end_of_segment(begin), loop == loop_steps_.end() ? bound_.size() : loop->first,
                   branch == branches_.end() ? bound_.size() : branch->first});
}

void GraphExecutor::note_time(const RunOptions& options, const StepTime& time) const {
  std::vector<StepTime>& profile = *options.profile;
  const auto same = [&](const StepTime& other) { return other.step == time.step; };
  const auto known = loops_.empty() ? profile.end() : std::find_if(profile.begin(), profile.end(), same);
  if (known == profile.end()) {
    profile.push_back(time);
  } else {
    known->duration_ns += time.duration_ns;
  }
}

size_t GraphExecutor::run_loop_step(size_t step_index, const RunOptions& options,
                                    std::chrono::steady_clock::time_point start) {
  const Step& step = *bound_[step_index].step;
  if (options.cancel != nullptr && options.cancel->cancelled())
    throw_step_error(step_index, TM_CANCELLED, -1);
  if (options.deadline && std::chrono::steady_clock::now() >= *options.deadline) throw_late(step_index);
  const int64_t step_start = options.profile != nullptr ? nanoseconds_since(start) : 0;
  LoopRunner& loop = loops_[loop_steps_.at(step_index)];
  const bool begins = step_index == loop.loop().begin;
  size_t next = 0;
  try {
    next = begins ? loop.begin() : loop.end();
  } catch (Error& error) {
    error.add_context(origins_text(step));
    throw;
  }
  if (options.profile != nullptr)
    note_time(options, {step_index, step_start, nanoseconds_since(start) - step_start});
  return next;
}

size_t GraphExecutor::run_branch_step(const package::Branch& branch) const {
  const bool holds = *static_cast<const uint8_t*>(address(branch.condition)) != 0;
  if (holds != branch.when) return branch.step + branch.steps + 1;
  if (branch.refused.empty()) return branch.step + 1;
  if (branch.is_other_graph) throw OtherGraph(branch.refused);
  throw Error(ErrorCode::kInvalidTensor, branch.refused);
}

size_t GraphExecutor::end_of_stretch(size_t begin) const {
  size_t end = begin;
  const size_t last = end_of_segment(begin);
  while (end < last && bound_[end].step->kind == StepKind::kKernel &&
         bound_[end].step->sharing != package::Sharing::kLaunches) {
    ++end;
  }
  return end;
}

bool GraphExecutor::has_parallel_loops(size_t begin, size_t end) const {
  return std::any_of(bound_.begin() + static_cast<std::ptrdiff_t>(begin),
                     bound_.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Bound& bound) { return bound.step->sharing != package::Sharing::kOne; });
}

int32_t GraphExecutor::run_by_one(const Bound& bound, Stretch& stretch, parallel::Team& team, int32_t worker,
                                  int64_t& error_index) const {
  struct Alone {
    const GraphExecutor& executor;
    const Bound& bound;
    const RunOptions& options;
    parallel::KernelErrors& errors;
    int32_t workers;
  };
  Alone alone{*this, bound, stretch.options, stretch.errors, team.workers()};
  const auto run = [](void* context, int64_t task, int32_t runner) {
    const Alone& self = *static_cast<Alone*>(context);
    const tm_parallel table = parallel::inline_parallel(runner, self.workers);
    int64_t index = -1;
    const int32_t code = self.executor.run_step(self.bound, self.options, &table, index);
    if (code != TM_OK) self.errors.add(task, index);
    return code;
  };
  const int32_t code = team.loop(worker, {1, run, &alone, stretch.options.cancel, TM_CANCELLED});
  if (code != TM_OK) error_index = stretch.errors.lowest();
  return code;
}

void GraphExecutor::run_stretch(Stretch& stretch, const parallel::KernelParallel& parallel,
                                parallel::Team* team, int32_t worker) const {
  const RunOptions& options = stretch.options;
  const bool first = worker == 0;
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    const int64_t step_start = first && options.profile != nullptr ? nanoseconds_since(stretch.start) : 0;
    if (first) {
      stretch.step = i;
      stretch.late = options.deadline && std::chrono::steady_clock::now() >= *options.deadline;
      if (options.cancel != nullptr && options.cancel->cancelled()) stretch.code = TM_CANCELLED;
      if (stretch.late || stretch.code != TM_OK) stretch.stopped.store(true, std::memory_order_relaxed);
    }
    if (stretch.stopped.load(std::memory_order_relaxed)) return;
    const Bound& bound = bound_[i];
    int64_t error_index = -1;
    const bool alone = team != nullptr && bound.step->sharing == package::Sharing::kOne;
    const int32_t code = alone ? run_by_one(bound, stretch, *team, worker, error_index)
                               : run_step(bound, options, parallel.get(), error_index);
    if (first) {
      stretch.code = code;
      stretch.error_index = error_index;
    }
    if (code != TM_OK) return;
    if (first && options.profile != nullptr)
      note_time(options, {i, step_start, nanoseconds_since(stretch.start) - step_start});
  }
}

void GraphExecutor::run_bound(parallel::ThreadPool& pool, const RunOptions& options) {
  growing_->set_limit(memory_budget_ - bytes_without(0));
  parallel::Lease lease =
      pool.lease(std::min(options.threads, max_threads_), options.deadline, options.cancel);
  if (options.profile != nullptr) options.profile->clear();
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < bound_.size();) {
    enter_segment(i);
    if (loop_steps_.count(i) != 0) {
      i = run_loop_step(i, options, start);
      continue;
    }
    if (const auto branch = branches_.find(i); branch != branches_.end()) {
      i = run_branch_step(branch->second);
      continue;
    }
    const size_t together = lease.workers() > 1 ? end_of_stretch(i) : i;
    const size_t end = together > i ? together : lease.workers() > 1 ? i + 1 : end_before_jumps(i);
    Stretch stretch{
        .executor = *this, .options = options, .start = start, .begin = i, .end = end, .errors = {}};
    if (has_parallel_loops(i, together)) {
      const auto run = [](void* context, parallel::Team& team, int32_t worker) {
        Stretch& self = *static_cast<Stretch*>(context);
        const parallel::KernelParallel parallel(team, worker, self.errors, self.options.cancel);
        self.executor.run_stretch(self, parallel, &team, worker);
      };
      lease.session(run, &stretch);
    } else {
      run_stretch(stretch, parallel::KernelParallel(lease, stretch.errors, options.cancel), nullptr, 0);
    }
    if (stretch.late) throw_late(stretch.step);
    if (stretch.code != TM_OK) throw_step_error(stretch.step, stretch.code, stretch.error_index);
    i = end;
  }
  // Results may have extents that the last step has bound.
  enter_segment(bound_.size());
}

TensorView GraphExecutor::output(size_t index) const {
  TM_CHECK(index < outputs().size(), "output " + std::to_string(index));
  const Port& port = outputs()[index];
  const auto found = data_shapes_->find(port.buffer);
  if (found != data_shapes_->end()) return {port.dtype, found->second, address(port.buffer)};
  return {port.dtype, plan().buffers[static_cast<size_t>(port.buffer)].shape, address(port.buffer)};
}

Tensor GraphExecutor::copy_output(size_t index) const {
  const TensorView view = output(index);
  Tensor tensor(view.dtype, view.shape);
  if (tensor.num_bytes() != 0) std::memcpy(tensor.data(), view.data, tensor.num_bytes());
  return tensor;
}

}  // namespace tensormill::exec
