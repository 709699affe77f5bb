/// Runs a loaded package: a flat list of steps over one arena. The package (code, weights) is shared, the
/// arena is the executor's own, so many executors serve one package at once. Thread-safety: an executor
/// belongs to one thread at a time; executors of one package are independent.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "runtime/exec/loop_runner.h"
#include "runtime/host_ops/growing_buffers.h"
#include "runtime/host_ops/registry.h"
#include "runtime/memory/arena.h"
#include "runtime/package/branches.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/refused_branches.h"
#include "runtime/package/trim.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::parallel {
class KernelParallel;
}

namespace tensormill::exec {

struct ExecutorOptions {
  int max_threads = 1;  ///< most workers that a run will use; sizes the workers' workspaces
  /// For arena and workspaces together, checked before anything is allocated: Error(kMemoryBudget). An arena
  /// is mapped without a reservation: past what the machine has the system would end the process instead.
  int64_t memory_budget = memory::machine_memory();
};

/// When a step ran, in nanoseconds since the start of the run: in a loop when it did so first, and how long
/// it took in all iterations.
struct StepTime {
  size_t step = 0;  ///< index into the plan's steps
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

struct RunOptions {
  int threads = 1;  ///< at most max_threads and the pool's cores are used
  parallel::Deadline deadline = std::nullopt;
  const parallel::CancelToken* cancel = nullptr;
  std::vector<StepTime>* profile = nullptr;  ///< filled when given
  /// Steps that decode pictures take JPEG, PNG, BMP and Netpbm's alone: for a process that outlives the run,
  /// since files are strangers' and the decoders of other forms are large.
  bool common_pictures = false;
};

/// What an executor of `package` allocates for `threads` workers: the most of its variants (a generic plan
/// allocates when shapes are bound). Throws Error(kMemoryBudget) past 2^62.
int64_t executor_bytes(const package::LoadedPackage& package, int threads);

class GraphExecutor {
public:
  /// Throws Error(kMemoryBudget), Error(kNotSupported) for a host step that does not exist here.
  explicit GraphExecutor(std::shared_ptr<const package::LoadedPackage> package,
                         const ExecutorOptions& options = {});
  GraphExecutor(GraphExecutor&&) = default;
  GraphExecutor& operator=(GraphExecutor&&) = default;

  /// Ports with the extents that are bound now.
  const std::vector<package::Port>& inputs() const { return plan().inputs; }
  const std::vector<package::Port>& outputs() const { return plan().outputs; }
  const package::LoadedPackage& package() const { return *package_; }
  const package::ExecPlan& plan() const { return bound_plan_->plan; }
  /// Values of the package's free dims, and what serves them.
  const std::vector<int64_t>& dims() const { return bound_plan_->dims; }
  bool is_generic() const { return bound_plan_->is_generic; }
  bool is_interpreted() const { return bound_plan_->is_interpreted; }

  /// Binds the free dims. Inputs that are set and keep their shape keep their values; the others are to be
  /// set again. Throws Error(kInvalidTensor) for what the model cannot take, Error(kMemoryBudget); then
  /// nothing has changed.
  void bind_dims(const std::vector<int64_t>& dims);

  /// Index of an input or output by name, or by alias: "input_0", "output_0" ... (a real name wins). Throws
  /// Error(kInvalidTensor) naming what exists.
  size_t input_index(std::string_view name) const;
  size_t output_index(std::string_view name) const;

  /// Copies. A shape that binds free dims to other values does so, as bind_dims; one that has to agree with
  /// those of other inputs, or that no plan takes beside what they were, waits for them, up to the run, which
  /// interprets the model where the package has an interpreter.
  /// Throws Error(kInvalidTensor) with both sides for an unknown name, another dtype or a shape that the
  /// model does not take, or a string that is longer than the input's or no UTF-8; strings may have another
  /// width than the input's.
  void set_input(std::string_view name, const TensorView& tensor);
  void set_input(size_t index, const TensorView& tensor);
  /// Throws Error(kInvalidTensor) for a dtype, a rank or a fixed extent that is not the input's: no value of
  /// the free dims mends these. Strings of any shape pass.
  void check_declared(size_t index, const TensorView& tensor) const;
  /// Where inputs wait: takes the interpreter's plan for their shapes, if there is one, with the free dims
  /// that no input has named so far as they are. Throws Error(kInvalidTensor) for what the model does not
  /// take, or no plan where there is no interpreter.
  void settle_shapes();
  /// The input's own storage, to decode into; counts as set.
  std::span<std::byte> input_bytes(size_t index);
  /// Runs read input `index`, which counts as set, at `data` instead of in the input's own storage: as many
  /// bytes, aligned and padded as a tensor's, that stay there and are not written. Null: its own storage
  /// again, with the values of before. Binding other dims also ends it.
  void lend_input(size_t index, void* data);
  /// As set_input, but runs read the tensor where it lies, as lend_input says, until the input is set again
  /// or other dims are bound. Copies, and returns false, where the tensor waits for other inputs or is one of
  /// strings.
  bool set_input_in_place(size_t index, const TensorView& tensor);
  /// Runs write output `index` at `data`, output_bytes(index) bytes, aligned and padded as a tensor's, and
  /// output() returns that place. Null: the executor's own storage again. Binding other dims also ends it.
  /// Returns false, and changes nothing, where the plan has no storage of the output's own: it is an input, a
  /// constant, a part of another value, or the plan has loops; or where it gets one in the run alone, since a
  /// run decides about extents of the plan.
  bool lend_output(size_t index, void* data);
  /// The storage that the output has with the dims that are bound: an extent that data decides counts with
  /// the most that it may be, one that a run binds with what the last run has bound, 0 before any.
  size_t output_bytes(size_t index) const;
  /// Inputs keep their values over runs; this forgets that they are set.
  void clear_inputs();

  /// Throws Error(kInvalidTensor) for inputs that are not set, Error(kTensorData) naming the model's nodes
  /// when a kernel finds an index out of range, Error(kDeadlineExceeded), Error(kCancelled). After an error
  /// the inputs are as they were and the outputs unspecified. Of a plan in segments the extents of one are
  /// bound when those before it have run; data that it does not take is interpreted where the
  /// package has an interpreter, else Error(kTensorData) naming the node.
  /// Throws Error(kMemoryBudget) naming the node where what its loops make is more than is allowed.
  void run(parallel::ThreadPool& pool, const RunOptions& options = {});

  /// Valid until the next run or the end of the executor.
  TensorView output(size_t index) const;
  TensorView output(std::string_view name) const { return output(output_index(name)); }
  /// A copy that outlives the executor.
  Tensor copy_output(size_t index) const;

private:
  /// A step with its addresses, fixed once the arena exists.
  struct Bound {
    const package::Step* step = nullptr;
    tm_kernel kernel = nullptr;
    const package::InterpretedStep* interpreted = nullptr;  ///< in place of the kernel, if any
    host_ops::HostFunction host = nullptr;
    std::shared_ptr<const host_ops::ReadAttributes> attributes = nullptr;  ///< of a host step; null: its text
    std::vector<void*> buffers = {};
    void* shared_workspace = nullptr;
    std::optional<package::Trim> trim = {};  ///< of a host step that says an output's extents
  };

  /// What is bound of a plan whose extents a run decides (package::Segments), of which each executor has its
  /// own copy.
  struct SegmentState {
    std::shared_ptr<package::BoundPlan> plan;
    std::vector<int64_t> dims;  ///< of formulas
    package::RefusedBranches refused;
    /// What the segments before have no memory for, of each behind the first. All arenas are one space
    /// of offsets: each begins at `bases`, the first at 0, behind a border that nothing lies across.
    std::vector<memory::Arena> arenas;
    std::vector<int64_t> bases;
    std::vector<std::vector<memory::PlacedBlock>> blocks;  ///< by segment
    std::vector<bool> is_of_first;                         ///< by buffer: placed when shapes bind
    std::vector<bool> is_bound;                            ///< by segment: to the numbers that `dims` have
    /// By segment: whether it lies anywhere, and what lies there. Other numbers for which the place is large
    /// enough change no address.
    std::vector<bool> is_placed;
    std::vector<std::vector<int32_t>> own;
    std::vector<int64_t> capacities;  ///< by buffer, bytes; -1: it has not been placed behind segment 0
    std::vector<int64_t> staged;      ///< by loop: bytes for what it copies aside
  };
  struct Stretch;
  /// Strings have the port's width.
  void set_fitted(size_t index, const TensorView& tensor);
  /// Binds the tensor's shape, and checks that the input takes it; false where it waits for other inputs.
  bool fit_shape(size_t index, const TensorView& tensor);
  /// Has the buffer of an input or output lie at `data`; null: in the executor's own storage.
  void lend(int32_t buffer, void* data);
  /// Gives the steps the addresses that `buffer` and its views have now.
  void rebind(int32_t buffer);

  void bind_plan(std::shared_ptr<const package::BoundPlan> plan);
  /// As bind_dims, to a plan for other dims.
  void change_plan(std::shared_ptr<const package::BoundPlan> plan);
  void bind(size_t step_index);
  /// Of the plan that has just been bound.
  void begin_segments();
  /// Before step `step_index` runs: where a segment begins there, binds it to the numbers that the steps
  /// before have left. Throws OtherGraph where the plan does not take them and the package has an
  /// interpreter.
  void enter_segment(size_t step_index);
  void bind_segment(size_t segment);
  /// Whether what the segment's steps make fits where it was placed before, and lies there still.
  bool has_place(size_t segment) const;
  void place_segment(size_t segment);
  /// From now on the segment and those behind it lie nowhere; the base that it may have.
  int64_t free_places(size_t segment);
  /// What its steps need in memory from `base` on, with spare bytes where the budget allows them.
  package::MemoryPlan plan_segment(size_t segment, int64_t base) const;
  void take_places(size_t segment, const package::MemoryPlan& memory);
  /// By buffer: bytes that it gets if it has no more; spare ones where it has outgrown its place.
  std::vector<int64_t> wanted_capacities() const;
  const memory::Arena& arena_of(size_t segment) const {
    return segment == 0 ? arena_ : segments_->arenas[segment - 1];
  }
  /// What lies in the arenas of the segments before while the segment or a later one runs, and the borders.
  std::vector<memory::PlacedBlock> taken_before(size_t segment) const;
  std::byte* place(int64_t offset) const;
  /// The end of the segment that the step is in.
  size_t end_of_segment(size_t step_index) const;
  /// The bytes of all arenas but for `segment`'s; 0: of all.
  int64_t bytes_without(size_t segment) const;
  void bind_loops();
  LoopRunner runner_of(package::Loop loop) const;        ///< with the addresses that there are now
  std::byte* shared_workspace(size_t step_index) const;  ///< null where the step has none
  /// `change` of the plan; lent inputs stay lent.
  void swap_plan(const std::function<void()>& change);
  /// As run, but for what this plan does not take: OtherGraph.
  void run_as_set(parallel::ThreadPool& pool, const RunOptions& options);
  void run_bound(parallel::ThreadPool& pool, const RunOptions& options);
  Tensor input_copy(size_t index) const;
  /// The free dims that the tensor as input `index` says.
  std::vector<std::optional<int64_t>> named_dims(size_t index, const TensorView& tensor) const;
  /// Whether the named dims are all that inputs have.
  bool names_all(const std::vector<std::optional<int64_t>>& named) const;
  /// The dims of a plan for what is wanted beside the other inputs: those that wait, or those that are set.
  std::vector<int64_t> dims_of(size_t index, const std::vector<std::optional<int64_t>>& wanted) const;
  /// Binds the dims of a plan for what is wanted, of which `named` is what input `index` says; `index` past
  /// all inputs for none.
  void bind_wanted(size_t index, const std::vector<std::optional<int64_t>>& named,
                   const std::vector<std::optional<int64_t>>& wanted);
  /// Whether the input has the tensor's shape now; else it waits for other inputs.
  bool bind_shape(size_t index, const TensorView& tensor);
  /// There may be memory now for what was refused because there was none.
  void retry_refused();
  /// The free dims that the inputs say which are set or wait; those of others as they are bound. Throws
  /// Error(kInvalidTensor) where two disagree.
  std::vector<int64_t> wanted_dims() const;
  void set_waiting();
  /// Where each run has a plan of its own: takes the one for the inputs' values.
  void bind_values();
  void check_set() const;
  /// Throws what check_set throws of inputs whose shapes no plan takes together.
  void check_agreed() const;
  /// Runs the step of a loop; returns the one that is next.
  size_t run_loop_step(size_t step_index, const RunOptions& options,
                       std::chrono::steady_clock::time_point start);
  /// The step that is next behind the one that begins a branch.
  size_t run_branch_step(const package::Branch& branch) const;
  /// Notes how long a step took, of one in a loop over all iterations.
  void note_time(const RunOptions& options, const StepTime& time) const;
  /// The end of the steps from `begin` on that are no steps of a loop and begin no branch.
  size_t end_before_jumps(size_t begin) const;
  /// The end of the steps from `begin` on through which all workers go side by side; `begin` for none.
  size_t end_of_stretch(size_t begin) const;
  /// Whether workers share anything in the steps: to wake them for nothing takes longer than a small net.
  bool has_parallel_loops(size_t begin, size_t end) const;
  /// A step without parallel loops, of which one worker's thread runs the whole.
  int32_t run_by_one(const Bound& bound, Stretch& stretch, parallel::Team& team, int32_t worker,
                     int64_t& error_index) const;
  /// `team`: null where one thread goes through the steps.
  void run_stretch(Stretch& stretch, const parallel::KernelParallel& parallel, parallel::Team* team,
                   int32_t worker) const;
  int32_t run_step(const Bound& bound, const RunOptions& options, const tm_parallel* parallel,
                   int64_t& error_index) const;
  [[noreturn]] void throw_step_error(size_t step_index, int32_t code, int64_t error_index) const;
  [[noreturn]] void throw_late(size_t step_index) const;
  void* address(int32_t buffer) const;
  size_t find_port(const std::vector<package::Port>& ports, std::string_view name,
                   std::string_view what) const;

  std::shared_ptr<const package::LoadedPackage> package_;
  int max_threads_;
  int64_t memory_budget_;
  std::shared_ptr<const package::BoundPlan> bound_plan_;
  memory::Arena arena_;
  memory::Arena worker_workspace_;
  std::optional<SegmentState> segments_;
  std::optional<std::vector<int64_t>>
      left_;                                ///< dims of the plan that the interpreter's stands for in one run
  std::map<size_t, std::string> unset_by_;  ///< by input: which other one it does not go with, for people
  std::vector<Bound> bound_;
  std::vector<LoopRunner> loops_;
  std::map<size_t, size_t> loop_steps_;  ///< the first and last step of each loop -> its place in loops_
  std::map<size_t, package::Branch> branches_;  ///< by the step that begins one
  /// Shapes of outputs that depend on data, by buffer, as of the last run; steps set them.
  std::unique_ptr<std::map<int32_t, Shape>> data_shapes_ = std::make_unique<std::map<int32_t, Shape>>();
  /// What the loops of a run make of any extents; steps write to them.
  std::unique_ptr<host_ops::GrowingBuffers> growing_ = std::make_unique<host_ops::GrowingBuffers>();
  std::vector<bool> input_set_;
  std::map<size_t, Tensor> waiting_;  ///< inputs whose shapes do not agree with those of others yet
  std::optional<Error> refused_;      ///< why no plan takes what was set last beside what the others are
  std::vector<std::optional<int64_t>> wanted_;  ///< the free dims that were set since there was one
  std::map<int32_t, std::byte*> lent_;          ///< by the buffer of the input or output
};

}  // namespace tensormill::exec
