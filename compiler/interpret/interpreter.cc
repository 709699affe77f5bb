#include "compiler/interpret/interpreter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/importer/kept_import.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/run_dims.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/package/model_step.h"
#include "runtime/package/plan_memory.h"

namespace tensormill::interpret {

namespace {

/// A tensor over bytes that the executor owns.
Tensor tensor_at(const ir::ValueType& type, void* data) {
  return Tensor(type.dtype, type.shape, std::shared_ptr<void>(), data);
}

/// `buffers`: of the region's inputs, then of its outputs, one of which may lie on an input's.
void evaluate(const ir::Graph& region, std::span<void* const> buffers) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < region.inputs().size(); ++i)
    inputs.push_back(tensor_at(region.value(region.inputs()[i]).type, buffers[i]));
  const std::vector<Tensor> outputs = ir::evaluate_reference(region, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].num_bytes() != 0)
      std::memcpy(buffers[inputs.size() + i], outputs[i].data(), outputs[i].num_bytes());
  }
}

/// What needs no kernels, and leaves nodes as the model has them: errors and deadlines are theirs.
ir::Graph prepare(ir::Graph graph) {
  passes::PipelineOptions pipeline;
  pipeline.context.opt_level = 2;
  pipeline.disabled = {"fuse_operators"};
  std::vector<std::string> ran;
  return passes::run_pipeline(std::move(graph), pipeline, ran);
}

frontend::KeptFiles kept_files(const std::shared_ptr<const package::Package>& package) {
  const package::PlanSet& plans = package->plans();
  const std::span<const std::byte> params = package->member(package::kParamsMember);
  frontend::KeptFiles kept;
  for (const package::KeptModel::File& file : plans.model->files) {
    const std::span<const std::byte> bytes =
        params.subspan(static_cast<size_t>(file.params_offset), static_cast<size_t>(file.bytes));
    kept.files.emplace_back(file.name, MappedFile::part_of(package, bytes, file.name));
  }
  kept.options = plans.model->options;
  kept.free_dims = plans.free_dims;
  for (const package::Port& output : package->plan().outputs) kept.outputs.push_back(output.name);
  return kept;
}

class ModelInterpreter final : public package::Interpreter {
public:
  explicit ModelInterpreter(std::shared_ptr<const package::Package> package) : package_(std::move(package)) {}

  std::shared_ptr<const package::BoundPlan> bind(const std::vector<int64_t>& dims,
                                                 const package::RunValues& values) const override {
    if (values.empty()) return plan_of_shapes(dims);
    package::RunValues known = values_asked_for(values);
    const std::lock_guard<std::mutex> lock(run_mutex_);
    if (run_plan_ && run_plan_->dims == dims && are_same(run_values_, known)) return run_plan_;
    ir::Graph graph = import_run(dims, values, known);
    run_plan_ = plan_of(std::move(graph), dims, true);
    run_values_ = std::move(known);
    return run_plan_;
  }

private:
  static bool are_same(const package::RunValues& a, const package::RunValues& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      const Tensor &own = x.second, &other = y.second;
      return x.first == y.first && own.shape() == other.shape() && own.dtype() == other.dtype() &&
             (own.num_bytes() == 0 || std::memcmp(own.data(), other.data(), own.num_bytes()) == 0);
    });
  }

  /// Those of the values that earlier runs had to know.
  package::RunValues values_asked_for(const package::RunValues& values) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    package::RunValues known;
    for (const std::string& name : asked_) {
      if (const auto found = values.find(name); found != values.end()) known.insert(*found);
    }
    return known;
  }

  /// What shapes are made of.
  static bool is_shape_like(const Tensor& value) {
    constexpr int64_t kFew = 64;
    return !is_float(value.dtype()) && value.dtype() != kString && value.num_elements() <= kFew;
  }

  /// Adds to what an import knows what it asked for: of that the few numbers that shapes are made of, or else
  /// all; where it is no input, every value. Whether there was any.
  static bool add_asked(const Error& error, const package::RunValues& values, package::RunValues& known) {
    package::RunValues asked, shapes;
    for (const ErrorDetail& detail : error.details()) {
      const auto found = values.find(detail.pointer);
      if (found == values.end() || known.count(found->first) != 0) continue;
      asked.insert(*found);
      if (is_shape_like(found->second)) shapes.insert(*found);
    }
    const package::RunValues& added = !shapes.empty() ? shapes : !asked.empty() ? asked : values;
    const size_t before = known.size();
    known.insert(added.begin(), added.end());
    return known.size() > before;
  }

  /// The fewer values are known, the more runs have the same plan.
  ir::Graph import_run(const std::vector<int64_t>& dims, const package::RunValues& values,
                       package::RunValues& known) const {
    const frontend::KeptImport& kept = model();
    for (;;) {
      try {
        ir::Graph graph = kept.at(dims, known);
        // Of all values such extents are numbers.
        if (!ir::run_symbols(graph).empty())
          throw Error(ErrorCode::kShapeRequired, "a run works out extents");
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [name, value] : known) asked_.insert(name);
        return graph;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kShapeRequired && add_asked(error, values, known)) continue;
        throw_refused(error, "extents and values");
      }
    }
  }

  std::shared_ptr<const package::BoundPlan> plan_of_shapes(const std::vector<int64_t>& dims) const {
    const frontend::KeptImport& kept = model();
    try {
      ir::Graph graph = kept.at(dims);
      if (!ir::run_symbols(graph).empty()) return plan_of_runs(dims, "a run works out extents");
      return plan_of(std::move(graph), dims, false);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kShapeRequired) throw_refused(error, "extents");
      return plan_of_runs(dims, std::string(error.message()));
    }
  }

  std::shared_ptr<const package::BoundPlan> plan_of_runs(const std::vector<int64_t>& dims,
                                                         const std::string& reason) const {
    const std::shared_ptr<package::BoundPlan> bound = begun(dims, true);
    bound->plan = package::plan_of_model(package_->plans(), dims, reason);
    package::validate_plan(bound->plan);
    bound->memory = package::plan_memory(bound->plan);
    bound->interpreted.resize(bound->plan.steps.size());
    return bound;
  }

  static std::shared_ptr<package::BoundPlan> begun(const std::vector<int64_t>& dims, bool is_single_use) {
    auto bound = std::make_shared<package::BoundPlan>();
    bound->dims = dims;
    bound->is_generic = true;
    bound->is_interpreted = true;
    bound->is_single_use = is_single_use;
    return bound;
  }

  std::shared_ptr<const package::BoundPlan> plan_of(ir::Graph graph, const std::vector<int64_t>& dims,
                                                    bool is_single_use) const {
    std::vector<std::string> output_names = graph.output_names();
    // What hands an input through whose value is known is a constant.
    if (is_single_use) {
      for (size_t i = 0; i < output_names.size() && i < package_->plan().outputs.size(); ++i)
        output_names[i] = package_->plan().outputs[i].name;
    }
    graph = prepare(std::move(graph));
    const plan::Kernels kernels = plan::extract_kernels(graph);
    plan::BuiltPlan built = plan::build_plan(
        graph, kernels, std::vector<plan::KernelWorkspace>(kernels.kernels.size()), output_names);
    const std::shared_ptr<package::BoundPlan> bound = begun(dims, is_single_use);
    bound->plan = std::move(built.plan);
    check_ports(bound->plan);
    package::validate_plan(bound->plan);
    bound->memory = package::plan_memory(bound->plan);
    add_steps(kernels, *bound);
    add_constants(built.params, *bound);
    return bound;
  }

  /// Read when it is first needed: most runs need no interpreter.
  const frontend::KeptImport& model() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (model_) return *model_;
    try {
      return model_.emplace(kept_files(package_), ops::standard_ops());
    } catch (const Error& error) {
      throw Error(ErrorCode::kInvalidPackage, "the model that the package holds: " + error.message());
    }
  }

  [[noreturn]] static void throw_refused(const Error& error, const std::string& what) {
    if (error.code() == ErrorCode::kMemoryBudget) throw Error(error);
    throw Error(ErrorCode::kInvalidTensor,
                "the model does not take inputs of these " + what + ": " + error.message(), error.details());
  }

  /// Callers have looked the ports up in the package's other plans.
  void check_ports(const package::ExecPlan& plan) const {
    const auto same = [](const package::Port& a, const package::Port& b) {
      return a.name == b.name && a.dtype == b.dtype;
    };
    const auto are_alike = [&](const std::vector<package::Port>& a, const std::vector<package::Port>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
    };
    const package::ExecPlan& first = package_->plan();
    if (!are_alike(plan.inputs, first.inputs) || !are_alike(plan.outputs, first.outputs))
      throw Error(ErrorCode::kInvalidTensor,
                  "with inputs of these extents the model has other inputs or outputs than the package");
  }

  static void add_steps(const plan::Kernels& kernels, package::BoundPlan& bound) {
    std::map<std::string, std::shared_ptr<const ir::Graph>> regions;
    for (const plan::Kernel& kernel : kernels.kernels) regions[kernel.symbol] = kernel.region;
    for (const package::Step& step : bound.plan.steps) {
      package::InterpretedStep run;
      if (step.kind == package::StepKind::kKernel)
        run = [region = regions.at(step.function)](std::span<void* const> buffers) {
          evaluate(*region, buffers);
        };
      bound.interpreted.push_back(std::move(run));
    }
  }

  static void add_constants(const std::vector<plan::ParamSegment>& params, package::BoundPlan& bound) {
    std::map<int64_t, const Tensor*> by_offset;
    for (const plan::ParamSegment& segment : params) by_offset[segment.offset] = &segment.tensor;
    for (size_t i = 0; i < bound.plan.buffers.size(); ++i) {
      const package::Buffer& buffer = bound.plan.buffers[i];
      if (buffer.kind == package::BufferKind::kConstant)
        bound.constants.emplace(static_cast<int32_t>(i), *by_offset.at(buffer.params_offset));
    }
  }

  std::shared_ptr<const package::Package> package_;
  mutable std::mutex mutex_;
  mutable std::optional<frontend::KeptImport> model_;
  mutable std::set<std::string> asked_;  ///< inputs whose values imports asked for
  mutable std::mutex run_mutex_;         ///< of the last run's plan
  mutable std::shared_ptr<const package::BoundPlan> run_plan_;
  mutable package::RunValues run_values_;  ///< what of the run decided about it
};

}  // namespace

std::unique_ptr<const package::Interpreter> make_interpreter(
    const std::shared_ptr<const package::Package>& package) {
  if (!package->plans().model) return nullptr;
  return std::make_unique<ModelInterpreter>(package);
}

}  // namespace tensormill::interpret
