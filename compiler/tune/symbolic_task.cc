#include "compiler/tune/symbolic_task.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "compiler/codegen/jit.h"
#include "compiler/driver/build_kernel.h"
#include "compiler/driver/generic_group.h"
#include "compiler/driver/generic_planner.h"
#include "compiler/driver/generic_tails.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/te/dim.h"
#include "compiler/tune/task.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::tune {

namespace {

/// `dim`: the one that is wrong; "": all of them.
[[noreturn]] void refuse_extents(const std::string& dim, const std::string& why) {
  Json::json_pointer at("/extents");
  if (!dim.empty()) at /= dim;
  throw Error(ErrorCode::kInvalidArgument, "extents: " + why, {{at.to_string(), why}});
}

}  // namespace

class SymbolicPlan {
public:
  /// `free_dims`: the names of the model's.
  SymbolicPlan(const ir::SymbolicModel& model, const std::vector<std::string>& free_dims,
               const target::Target& target, const SymbolicOptions& options)
      : target_(target),
        backend_(codegen::make_llvm_backend()),
        planned_(plan_of(model, free_dims, target, options)),
        kernels_(planned_.model.kernels.size()),
        libraries_(kernels_.size()) {
    bool takes_all = true;
    zeros_ = driver::take_zeros(model, planned_.symbols, planned_.model.plan, takes_all);
  }

  /// Measures there, where the plan takes these extents of the free dims.
  bool measure_at(const std::vector<int64_t>& free) {
    std::optional<std::vector<int64_t>> taken = named_point(free);
    const bool is_taken = taken.has_value();
    if (is_taken) timed_.push_back(*std::move(taken));
    return is_taken;
  }
  /// Where the model was imported.
  void measure_at_hints() {
    timed_ = driver::points_of(planned_.symbols.all, table(), {}, 0);
    if (timed_.empty()) timed_.push_back(base());
  }

  /// The model at some extents.
  struct Point {
    package::ExecPlan plan;
    ir::Graph graph;
  };
  const Point& at(const std::vector<int64_t>& dims) {
    auto found = points_.find(dims);
    if (found == points_.end()) {
      found = points_
                  .emplace(dims, Point{driver::plan_at(planned_.model.plan, dims),
                                       driver::graph_at(planned_.graph, planned_.symbols.all, dims)})
                  .first;
    }
    return found->second;
  }

  const plan::GenericModel& model() const { return planned_.model; }
  const ir::SymbolTable& table() const { return *planned_.graph.symbols(); }
  const std::vector<std::vector<int64_t>>& timed() const { return timed_; }

  /// Of a buffer of the plan, its extents by the names of the free dims.
  DimShape named_shape(int32_t buffer) const {
    const package::GenericPlan& plan = planned_.model.plan;
    const Shape& sample = plan.plan.buffers[static_cast<size_t>(buffer)].shape;
    DimShape shape(sample.begin(), sample.end());
    for (const package::PlanHole& hole : plan.buffer_holes) {
      if (hole.owner == buffer)
        shape[static_cast<size_t>(hole.position)] = named_extent(hole.value).to_string();
    }
    return shape;
  }

  /// Extents of 0, the least ones, and those around the tails of a kernel.
  std::vector<std::vector<int64_t>> checked(size_t kernel, const std::vector<plan::Tail>& tails) const {
    std::vector<std::vector<int64_t>> points = zeros_;
    const std::vector<std::string>& symbols = planned_.symbols.all;
    for (std::vector<int64_t>& dims : driver::points_of(symbols, table(), {1, 2, 3, 5, 7, 8, 16}, 1))
      points.push_back(std::move(dims));
    std::vector<std::vector<plan::Tail>> all(planned_.model.kernels.size());
    all[kernel] = tails;
    for (const auto& [dims, kernels] : driver::tail_points(planned_.model, all, symbols, table(), base()))
      points.push_back(dims);
    return points;
  }

  /// The kernel as the rule has it.
  tm_kernel entry(size_t kernel) {
    if (!libraries_[kernel]) {
      const driver::BuiltKernel built =
          driver::build_from_loops(planned_.model.kernels[kernel].loops, target_, *backend_);
      libraries_[kernel] = codegen::JitLibrary::load(built.object);
      kernels_[kernel] = libraries_[kernel]->kernel(planned_.model.kernels[kernel].symbol);
    }
    return kernels_[kernel];
  }

private:
  static driver::PlannedModel plan_of(const ir::SymbolicModel& model,
                                      const std::vector<std::string>& free_dims, const target::Target& target,
                                      const SymbolicOptions& options) {
    driver::CompileOptions compile;
    compile.target = target;
    compile.opt_level = options.opt_level;
    compile.layout = options.layout;
    return driver::GenericPlanner(target).plan(model, free_dims, compile, nullptr);
  }

  std::vector<int64_t> base() const {
    return driver::base_point(planned_.symbols.all, table(), {2, 3, 1, 5, 7, 8, 16, 17, 32, 64});
  }

  te::Dim named_extent(const DimFormula& formula) const {
    te::Dim sum(formula.offset);
    for (const DimProduct& product : formula.products) {
      te::Dim all(product.scale);
      for (const DimTerm& term : product.factors)
        all *= te::floordiv(te::Dim(term.mul) * named_dim(static_cast<size_t>(term.dim)) + te::Dim(term.add),
                            te::Dim(term.div));
      sum += all;
    }
    return sum;
  }

  /// A free dim, what a run binds, or, behind them, what is derived from these.
  te::Dim named_dim(size_t place) const {
    const package::GenericPlan& plan = planned_.model.plan;
    const std::vector<std::string>& names = planned_.symbols.names;
    if (place < names.size()) return te::Dim::symbol(names[place]);
    if (place < plan.num_dims()) return te::Dim::symbol(plan.run_dims[place - names.size()].name);
    return te::to_dim(plan.derived[place - plan.num_dims()].formula.value());
  }

  std::optional<std::vector<int64_t>> named_point(const std::vector<int64_t>& free) const {
    std::vector<int64_t> dims = free;
    for (const size_t around : planned_.symbols.dims.around) dims.push_back(free.at(around));
    std::optional<std::vector<int64_t>> taken = driver::taken_point(planned_.symbols.all, table(), dims);
    if (taken && !std::equal(free.begin(), free.end(), taken->begin())) taken.reset();
    return taken;
  }

  const target::Target target_;
  const std::unique_ptr<codegen::Backend> backend_;
  driver::PlannedModel planned_;
  std::vector<tm_kernel> kernels_;
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<std::vector<int64_t>> zeros_, timed_;
  std::map<std::vector<int64_t>, Point> points_;
};

SymbolicKernel::SymbolicKernel(std::shared_ptr<SymbolicPlan> plan, const plan::GenericGroup& group,
                               size_t step)
    : plan_(std::move(plan)),
      group_(group),
      step_(step),
      kernel_(plan_->model().kernels[plan_->model().step_kernels[step].value()]),
      first_dims_(plan_->at(plan_->timed().front()).plan.steps[step].dims) {}

const Workload* SymbolicKernel::at(const std::vector<int64_t>& dims) {
  const auto [found, is_new] = workloads_.try_emplace(dims);
  if (!is_new) return found->second ? &*found->second : nullptr;
  const SymbolicPlan::Point& point = plan_->at(dims);
  std::vector<ir::ValueId> read;
  const auto kernel =
      std::make_shared<const plan::Kernel>(plan::kernel_of(point.graph, point.graph.node(group_.node), read));
  const auto reference = std::make_shared<const driver::KernelReference>(driver::make_accepted_reference(
      *kernel, driver::constants_of(point.graph, read), driver::Compares::kParts));
  if (!reference->refusal.empty()) return nullptr;
  const auto entry_of = [this](size_t step) {
    return plan_->entry(plan_->model().step_kernels[step].value());
  };
  driver::GroupRun before(group_, point.plan, reference->inputs);
  for (size_t step = group_.first_step; step < step_; ++step) {
    if (before.run(step, entry_of(step)) != TM_OK) return nullptr;
  }
  const package::Step& own = point.plan.steps[step_];
  Workload workload;
  workload.inputs = before.arguments(step_);
  workload.inputs.resize(workload.inputs.size() - own.outputs.size());
  for (const int32_t output : own.outputs) {
    const package::Buffer& buffer =
        point.plan.buffers[static_cast<size_t>(own.args[static_cast<size_t>(output)])];
    workload.outputs.push_back({buffer.dtype, ir::SymShape(buffer.shape)});
  }
  workload.dims = own.dims;
  workload.check = [this, before, kernel, reference, entry_of](int32_t code,
                                                               const std::vector<Tensor>& outputs) {
    driver::GroupRun run = before;
    run.set_outputs(step_, outputs);
    for (size_t step = step_ + 1; step < group_.end_step && code == TM_OK; ++step)
      code = run.run(step, entry_of(step));
    driver::check_outputs(*kernel, *reference, code, run.outputs());
  };
  return &found->second.emplace(std::move(workload));
}

const std::vector<Workload>& SymbolicKernel::timed() {
  if (timed_.empty()) {
    for (const std::vector<int64_t>& dims : plan_->timed()) {
      if (const Workload* workload = at(dims)) timed_.push_back(*workload);
    }
  }
  return timed_;
}

std::vector<const Workload*> SymbolicKernel::checked(const std::vector<plan::Tail>& tails) {
  std::vector<const Workload*> all;
  const size_t kernel = plan_->model().step_kernels[step_].value();
  const std::vector<std::vector<int64_t>>& timed = plan_->timed();
  for (const std::vector<int64_t>& dims : plan_->checked(kernel, tails)) {
    if (std::find(timed.begin(), timed.end(), dims) != timed.end()) continue;
    const Workload* workload = at(dims);
    if (workload != nullptr && std::find(all.begin(), all.end(), workload) == all.end())
      all.push_back(workload);
  }
  return all;
}

namespace {

/// "f32[24,40] f32[40,48] -> f32[24,48]". `shape_of`: of a buffer, as text.
std::string args_text(const package::ExecPlan& plan, size_t step,
                      const std::function<std::string(int32_t buffer)>& shape_of) {
  const package::Step& own = plan.steps[step];
  std::string text;
  for (size_t i = 0; i < own.args.size(); ++i) {
    const package::Buffer& buffer = plan.buffers[static_cast<size_t>(own.args[i])];
    if (static_cast<int32_t>(i) == own.outputs.at(0)) text += "-> ";
    text += std::string(dtype_info(buffer.dtype).name) + shape_of(own.args[i]) + " ";
  }
  text.pop_back();
  return text;
}

/// What people read of the kernel: its parameters where it is measured, and at all extents.
void describe(Task& task, SymbolicPlan& plan, size_t step) {
  for (const std::vector<int64_t>& dims : plan.timed()) {
    const package::ExecPlan& at = plan.at(dims).plan;
    const auto shape_of = [&](int32_t buffer) {
      return to_string(at.buffers[static_cast<size_t>(buffer)].shape);
    };
    for (const int32_t arg : at.steps[step].args) {
      if (task.args.empty()) task.bytes += at.buffers[static_cast<size_t>(arg)].bytes;
    }
    task.args += (task.args.empty() ? "" : ", ") + args_text(at, step, shape_of);
  }
  task.free_args = args_text(plan.model().plan.plan, step,
                             [&](int32_t buffer) { return to_string(plan.named_shape(buffer)); });
  task.name = task.kernel.symbol.substr(0, task.kernel.symbol.rfind('_'));
}

/// The plan for all extents, and those of extents of 1, as a compile makes them; none where it makes none.
std::vector<std::shared_ptr<SymbolicPlan>> plans_of(const ir::Variants& variants,
                                                    const target::Target& target,
                                                    const SymbolicOptions& options) {
  std::vector<const ir::SymbolicModel*> models;
  if (variants.symbolic) models.push_back(&*variants.symbolic);
  for (const ir::SymbolicModel& ones : variants.symbolic_ones) models.push_back(&ones);
  std::vector<std::shared_ptr<SymbolicPlan>> plans;
  try {
    for (const ir::SymbolicModel* model : models)
      plans.push_back(std::make_shared<SymbolicPlan>(*model, variants.free_dims, target, options));
  } catch (const Error& error) {
    // As a compile: such a package has its variants, or the model itself.
    if (error.code() != ErrorCode::kNotSupported) throw;
    return {};
  }
  return plans;
}

/// Extents are measured in the first plan that takes them, as the executor has it.
void measure(const std::vector<std::shared_ptr<SymbolicPlan>>& plans, const SymbolicOptions& options) {
  const auto takes = [](const std::vector<int64_t>& dims) {
    return [&dims](const std::shared_ptr<SymbolicPlan>& plan) { return plan->measure_at(dims); };
  };
  for (const std::vector<int64_t>& dims : options.extents) {
    if (std::none_of(plans.begin(), plans.end(), takes(dims)) && !options.may_leave_out && !plans.empty())
      refuse_extents("", "the model does not take extents of " + to_string(Shape(dims)));
  }
  for (const std::shared_ptr<SymbolicPlan>& plan : plans) {
    const bool is_left_out = !options.extents.empty() && !options.may_leave_out;
    if (plan->timed().empty() && !is_left_out) plan->measure_at_hints();
  }
}

Task task_at(const std::shared_ptr<SymbolicPlan>& plan, const plan::GenericGroup& group, size_t step) {
  Task task;
  task.symbolic = std::make_shared<SymbolicKernel>(plan, group, step);
  const SymbolicPlan::Point& first = plan->at(plan->timed().front());
  std::vector<ir::ValueId> read;
  task.kernel = plan::kernel_of(first.graph, first.graph.node(group.node), read);
  task.kernel.symbol = task.symbolic->kernel().symbol;
  task.kernel.key = task.symbolic->kernel().key;
  task.calls = 1;
  describe(task, *plan, step);
  return task;
}

}  // namespace

std::vector<Task> symbolic_tasks(const ir::Variants& variants, const target::Target& target,
                                 const SymbolicOptions& options) {
  const std::vector<std::shared_ptr<SymbolicPlan>> plans = plans_of(variants, target, options);
  measure(plans, options);
  std::vector<Task> tasks;
  std::map<std::string, std::pair<const SymbolicPlan*, size_t>> task_of;  // by the kernel's symbol
  for (const std::shared_ptr<SymbolicPlan>& plan : plans) {
    const plan::GenericModel& model = plan->model();
    if (plan->timed().empty()) continue;
    for (const plan::GenericGroup& group : model.groups) {
      if (group.end_step - group.first_step > 1 && !options.runs_here) continue;
      for (size_t step = group.first_step; step < group.end_step; ++step) {
        const std::string& symbol = model.kernels[model.step_kernels[step].value()].symbol;
        const auto [found, is_new] = task_of.try_emplace(symbol, plan.get(), tasks.size());
        if (!is_new) {
          // One plan runs at a time.
          tasks[found->second.second].calls += found->second.first == plan.get() ? 1 : 0;
          continue;
        }
        tasks.push_back(task_at(plan, group, step));
      }
    }
  }
  return tasks;
}

std::vector<std::vector<int64_t>> named_extents(const ir::Variants& variants, const ShapeBuckets& named) {
  constexpr size_t kMost = 16;
  std::vector<std::vector<int64_t>> points;
  if (variants.free_dims.empty() && named.empty()) return points;
  for (const ir::ShapedGraph& graph : variants.graphs) {
    if (named.empty() && points.size() < kMost) points.push_back(graph.dims);
  }
  if (!points.empty()) return points;
  for (const auto& [name, extents] : named) {
    if (std::find(variants.free_dims.begin(), variants.free_dims.end(), name) == variants.free_dims.end())
      refuse_extents(name, "the model has no free dim " + name);
  }
  points.emplace_back();
  for (size_t d = 0; d < variants.free_dims.size(); ++d) {
    std::vector<int64_t> own = {1};
    const auto found = named.find(variants.free_dims[d]);
    if (found != named.end()) {
      own = found->second;
    } else if (variants.symbolic) {
      const auto& hints = variants.symbolic->graph.symbols()->hints();
      const auto hint = hints.find(variants.symbolic->symbols[d]);
      if (hint != hints.end()) own = {hint->second};
    }
    std::vector<std::vector<int64_t>> next;
    for (const std::vector<int64_t>& point : points) {
      for (const int64_t extent : own) {
        next.push_back(point);
        next.back().push_back(extent);
      }
    }
    points = std::move(next);
    if (points.size() > kMost) refuse_extents("", "more than " + std::to_string(kMost) + " combinations");
  }
  return points;
}

Json extents_json(const std::vector<std::vector<int64_t>>& points,
                  const std::vector<std::string>& free_dims) {
  Json list = Json::array();
  for (const std::vector<int64_t>& point : points) {
    Json named = Json::object();
    for (size_t d = 0; d < point.size(); ++d) named[free_dims[d]] = point[d];
    list.push_back(std::move(named));
  }
  return list;
}

namespace {

/// Whether any of the extents that are asked for are 1 where the model has them as 1.
bool may_serve(const ir::SymbolicModel& ones, const SymbolicOptions& options) {
  if (options.extents.empty() || options.may_leave_out) return true;
  const auto& hints = ones.graph.symbols()->hints();
  return std::any_of(options.extents.begin(), options.extents.end(), [&](const std::vector<int64_t>& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != 1 && hints.count(ones.symbols[d]) == 0) return false;
    }
    return true;
  });
}

}  // namespace

std::vector<Task> package_tasks(const ir::Variants& variants, const target::Target& target,
                                const SymbolicOptions& options) {
  std::vector<Task> tasks;
  std::set<std::string> seen;
  const auto add = [&](std::vector<Task> more) {
    for (Task& task : more) {
      if (seen.insert(task.key()).second) tasks.push_back(std::move(task));
    }
  };
  const auto extract = options.algorithms ? extract_all_tasks : extract_tasks;
  for (const ir::ShapedGraph& variant : variants.graphs)
    add(extract(variant.graph, target, options.opt_level, options.layout));
  if (!variants.symbolic) return tasks;
  add(extract(variants.symbolic->graph, target, options.opt_level, options.layout));
  for (const ir::SymbolicModel& ones : variants.symbolic_ones) {
    if (may_serve(ones, options)) add(extract(ones.graph, target, options.opt_level, options.layout));
  }
  add(symbolic_tasks(variants, target, options));
  return tasks;
}

}  // namespace tensormill::tune
