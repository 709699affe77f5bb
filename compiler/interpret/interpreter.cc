#include "compiler/interpret/interpreter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/onnx/kept_model.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/plan_builder.h"
#include "runtime/base/error.h"
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

frontend::onnx::KeptFiles kept_files(const std::shared_ptr<const package::Package>& package) {
  const package::PlanSet& plans = package->plans();
  const std::span<const std::byte> params = package->member(package::kParamsMember);
  frontend::onnx::KeptFiles kept;
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

  std::shared_ptr<const package::BoundPlan> bind(const std::vector<int64_t>& dims) const override {
    ir::Graph graph = import(dims);
    const std::vector<std::string> output_names = graph.output_names();
    graph = prepare(std::move(graph));
    const plan::Kernels kernels = plan::extract_kernels(graph);
    plan::BuiltPlan built = plan::build_plan(
        graph, kernels, std::vector<plan::KernelWorkspace>(kernels.kernels.size()), output_names);
    auto bound = std::make_shared<package::BoundPlan>();
    bound->dims = dims;
    bound->is_generic = true;
    bound->is_interpreted = true;
    bound->plan = std::move(built.plan);
    check_ports(bound->plan);
    package::validate_plan(bound->plan);
    bound->memory = package::plan_memory(bound->plan);
    add_steps(kernels, *bound);
    add_constants(built.params, *bound);
    return bound;
  }

private:
  /// Read when it is first needed: most runs need no interpreter.
  const frontend::onnx::KeptImport& model() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (model_) return *model_;
    try {
      return model_.emplace(kept_files(package_), ops::standard_ops());
    } catch (const Error& error) {
      throw Error(ErrorCode::kInvalidPackage, "the model that the package holds: " + error.message());
    }
  }

  ir::Graph import(const std::vector<int64_t>& dims) const {
    const frontend::onnx::KeptImport& kept = model();
    try {
      return kept.at(dims);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kMemoryBudget) throw;
      throw Error(ErrorCode::kInvalidTensor,
                  "the model does not take inputs of these extents: " + error.message(), error.details());
    }
  }

  /// Callers have looked the ports up in the package's other plans.
  void check_ports(const package::ExecPlan& plan) const {
    const auto same = [](const package::Port& a, const package::Port& b) {
      return a.name == b.name && a.dtype == b.dtype;
    };
    const auto are_same = [&](const std::vector<package::Port>& a, const std::vector<package::Port>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
    };
    const package::ExecPlan& first = package_->plan();
    if (!are_same(plan.inputs, first.inputs) || !are_same(plan.outputs, first.outputs))
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
  mutable std::optional<frontend::onnx::KeptImport> model_;
};

}  // namespace

std::unique_ptr<const package::Interpreter> make_interpreter(
    const std::shared_ptr<const package::Package>& package) {
  if (!package->plans().model) return nullptr;
  return std::make_unique<ModelInterpreter>(package);
}

}  // namespace tensormill::interpret
