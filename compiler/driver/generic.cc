#include "compiler/driver/generic.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "compiler/codegen/jit.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/sharing.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// What chooses layouts and algorithms by extents; and what makes one kernel of several reductions.
const std::set<std::string>& specializing_passes() {
  static const std::set<std::string> names = {"alter_layout", "choose_algorithms", "pack_matmul",
                                              "fuse_attention", "fuse_layer_norm"};
  return names;
}

ir::Graph optimize(const ir::Graph& graph, const CompileOptions& options) {
  passes::PipelineOptions pipeline;
  pipeline.context = {options.target.facts, options.opt_level};
  pipeline.context.is_sample = true;
  pipeline.disabled = options.disabled_passes;
  pipeline.disabled.insert(specializing_passes().begin(), specializing_passes().end());
  std::vector<std::string> ran;
  return passes::run_pipeline(graph, pipeline, ran);
}

class GenericVerifier {
public:
  GenericVerifier(const CompiledGeneric& compiled, const std::function<bool(const plan::Kernel&)>& verifies)
      : compiled_(compiled), verifies_(verifies) {
    for (const codegen::Object& object : compiled.objects) {
      libraries_.push_back(codegen::JitLibrary::load(object));
      entries_.push_back(libraries_.back()->kernel(object.symbol));
    }
  }

  /// `sample`: which one `graph` is of.
  void run(const ir::Graph& graph, const std::vector<plan::HiddenConstant>& hidden, size_t sample,
           const std::vector<int64_t>& dims) const {
    std::map<ir::ValueId, const Tensor*> constants;
    const size_t own_inputs = graph.inputs().size() - hidden.size();
    for (size_t i = 0; i < hidden.size(); ++i)
      constants[graph.inputs()[own_inputs + i]] = &hidden[i].values[sample];
    const package::ExecPlan plan = package::instantiate(compiled_.model.plan, dims);
    std::set<std::string> seen;
    for (const plan::GenericGroup& group : compiled_.model.groups) {
      std::string what;
      for (size_t step = group.first_step; step < group.end_step; ++step) {
        what += plan.steps[step].function;
        for (const int32_t arg : plan.steps[step].args)
          what += to_string(plan.buffers[static_cast<size_t>(arg)].shape);
      }
      if (seen.insert(what).second) check(plan, group, graph, constants);
    }
  }

private:
  void check(const package::ExecPlan& plan, const plan::GenericGroup& group, const ir::Graph& graph,
             const std::map<ir::ValueId, const Tensor*>& hidden) const {
    std::vector<ir::ValueId> inputs;
    const plan::Kernel kernel = plan::kernel_of(graph, graph.node(group.node), inputs);
    if (!verifies_(kernel)) return;
    std::vector<const Tensor*> constants;
    for (const ir::ValueId input : inputs) {
      const std::optional<Tensor>& constant = graph.value(input).constant;
      const auto found = hidden.find(input);
      const Tensor* computed = found != hidden.end() ? found->second : nullptr;
      constants.push_back(constant ? &*constant : computed);
    }
    KernelReference reference = make_reference(kernel, constants);
    std::map<int32_t, Tensor> tensors;
    for (size_t i = 0; i < group.inputs.size(); ++i) tensors.emplace(group.inputs[i], reference.inputs[i]);
    int32_t code = 0;
    for (size_t step = group.first_step; step < group.end_step && code == 0; ++step) {
      std::vector<void*> buffers;
      for (const int32_t arg : plan.steps[step].args) {
        const package::Buffer& buffer = plan.buffers[static_cast<size_t>(arg)];
        const auto found = tensors.try_emplace(arg, Tensor::zeros(buffer.dtype, buffer.shape)).first;
        buffers.push_back(found->second.data());
      }
      code = run_kernel(entries_[compiled_.model.step_kernels[step].value()], buffers, {},
                        plan.steps[step].dims);
    }
    std::vector<Tensor> outputs;
    for (const int32_t output : group.outputs) {
      const package::Buffer& buffer = plan.buffers[static_cast<size_t>(output)];
      outputs.push_back(tensors.try_emplace(output, Tensor::zeros(buffer.dtype, buffer.shape)).first->second);
    }
    plan::Kernel named = kernel;
    named.symbol = plan.steps[group.first_step].function;
    check_outputs(named, reference, code, outputs);
  }

  const CompiledGeneric& compiled_;
  const std::function<bool(const plan::Kernel&)>& verifies_;
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<tm_kernel> entries_;
};

bool gives(const package::GenericPlan& generic, const ir::ShapeCheck& check) {
  try {
    const package::ExecPlan plan = package::instantiate(generic, check.dims);
    for (size_t i = 0; i < check.outputs.size(); ++i) {
      if (plan.buffers[static_cast<size_t>(plan.outputs[i].buffer)].shape != check.outputs[i]) return false;
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidTensor && error.code() != ErrorCode::kInvalidPackage) throw;
    return false;
  }
}

/// The least extent of `dim`, above one that is refused, at which the plan was compared with the model.
int64_t least_above(const ir::Variants& variants, size_t dim, int64_t refused) {
  const std::vector<int64_t>& base = variants.samples.front().dims;
  int64_t least = base[dim];
  for (const ir::ShapeCheck& check : variants.checks) {
    std::vector<int64_t> others = check.dims;
    others[dim] = base[dim];
    if (others == base && check.dims[dim] > refused) least = std::min(least, check.dims[dim]);
  }
  return least;
}

/// The plan gives the model's output shapes at every checked point. Extents below the samples for which it
/// does not are below its minimums; so is 0 where the model does not take it.
void check_outputs_of(const ir::Variants& variants, package::GenericPlan& plan) {
  const std::vector<int64_t>& base = variants.samples.front().dims;
  plan.minimums.assign(base.size(), 0);
  std::vector<int64_t> minimums(base.size(), 1);
  std::set<size_t> may_be_empty;
  for (const ir::ShapeCheck& check : variants.checks) {
    if (gives(plan, check)) {
      const auto zero = std::find(check.dims.begin(), check.dims.end(), 0);
      if (zero != check.dims.end()) may_be_empty.insert(static_cast<size_t>(zero - check.dims.begin()));
      continue;
    }
    bool small = false;
    for (size_t d = 0; d < base.size(); ++d) {
      if (check.dims[d] >= base[d]) continue;
      small = true;
      minimums[d] = std::max(minimums[d], least_above(variants, d, check.dims[d]));
    }
    if (small) continue;
    throw Error(ErrorCode::kNotSupported,
                "the shapes of the outputs depend on the free dims in a way that "
                "has no formula: they differ at " +
                    to_string(Shape(check.dims)));
  }
  for (const size_t d : may_be_empty) {
    if (minimums[d] == 1) minimums[d] = 0;
  }
  plan.minimums = std::move(minimums);
}

/// Some products of dims are beyond what the verifier can show: no reason to lose the buckets.
void check_bounds(const plan::GenericKernel& kernel) {
  try {
    te::verify(kernel.loops, te::Level::kLoops);
  } catch (const InternalError& error) {
    throw Error(
        ErrorCode::kNotSupported,
        "kernel " + kernel.symbol + " is not shown to stay in its buffers for all shapes: " + error.what());
  }
}

}  // namespace

CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                const codegen::Backend& backend,
                                const std::function<bool(const plan::Kernel&)>& verifies) {
  // Optimized weights are kept of the two samples alone that are verified.
  std::vector<const ir::Graph*> imported;
  for (const ir::ShapedGraph& sample : variants.samples) imported.push_back(&sample.graph);
  const plan::SampleGraphs samples = plan::hide_shape_constants(imported);
  const ir::Graph first = optimize(samples.graphs.front(), options);
  std::vector<plan::GraphForm> forms = {plan::form_of(first, variants.samples.front().dims, first)};
  std::optional<ir::Graph> last;
  for (size_t i = 1; i < variants.samples.size(); ++i) {
    last = optimize(samples.graphs[i], options);
    forms.push_back(plan::form_of(*last, variants.samples[i].dims, first));
  }
  std::vector<std::string> names;
  for (ir::ValueId output : imported[0]->outputs()) names.push_back(imported[0]->value(output).name);
  CompiledGeneric compiled;
  compiled.model = plan::generalize_model(first, forms, samples.hidden, plan::extent_facts(imported), names,
                                          options.target.facts.lanes(32));
  compiled.model.plan.multiples = variants.multiples;
  check_outputs_of(variants, compiled.model.plan);
  for (const plan::GenericKernel& kernel : compiled.model.kernels) {
    check_bounds(kernel);
    compiled.functions.push_back(lower::lower(kernel.loops, options.target));
    const te::Function& function = compiled.functions.back();
    TM_CHECK(function.shared_workspace_bytes == 0 && function.worker_workspace_bytes == 0,
             "a generic kernel has workspace");
    compiled.objects.push_back(backend.emit(
        function, options.target, {options.dumps.count("ll") != 0, options.dumps.count("asm") != 0}));
  }
  for (size_t i = 0; i < compiled.model.step_kernels.size(); ++i) {
    const std::optional<size_t> kernel = compiled.model.step_kernels[i];
    if (kernel) compiled.model.plan.plan.steps[i].sharing = plan::sharing_of(compiled.functions[*kernel]);
  }
  if (options.verify != VerifyMode::kNone && options.host_runs_target) {
    const GenericVerifier verifier(compiled, verifies);
    verifier.run(first, samples.hidden, 0, forms.front().dims);
    if (last) verifier.run(*last, samples.hidden, forms.size() - 1, forms.back().dims);
  }
  return compiled;
}

}  // namespace tensormill::driver
