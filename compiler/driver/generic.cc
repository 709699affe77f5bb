#include "compiler/driver/generic.h"

#include <algorithm>
#include <memory>
#include <set>

#include "compiler/codegen/jit.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/passes/pass.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// What chooses layouts and algorithms by extents; and what makes one kernel of several reductions.
const std::set<std::string>& specializing_passes() {
  static const std::set<std::string> kPasses = {"alter_layout", "choose_algorithms", "pack_matmul",
                                                "fuse_attention", "fuse_layer_norm"};
  return kPasses;
}

ir::Graph optimize(const ir::Graph& graph, const CompileOptions& options) {
  passes::PipelineOptions pipeline;
  pipeline.context = {options.target.facts, options.opt_level};
  pipeline.disabled = options.disabled_passes;
  pipeline.disabled.insert(specializing_passes().begin(), specializing_passes().end());
  std::vector<std::string> ran;
  return passes::run_pipeline(graph, pipeline, ran);
}

class GenericVerifier {
public:
  GenericVerifier(const CompiledGeneric& compiled, const std::vector<ir::Graph>& graphs,
                  const std::vector<std::vector<int64_t>>& dims,
                  const std::function<bool(const plan::Kernel&)>& verifies)
      : compiled_(compiled), graphs_(graphs), dims_(dims), verifies_(verifies) {
    for (const codegen::Object& object : compiled.objects) {
      libraries_.push_back(codegen::JitLibrary::load(object));
      entries_.push_back(libraries_.back()->kernel(object.symbol));
    }
  }

  void run(size_t sample) const {
    const package::ExecPlan plan = package::instantiate(compiled_.model.plan, dims_[sample]);
    std::set<std::string> seen;
    for (const plan::GenericGroup& group : compiled_.model.groups) {
      std::string what;
      for (size_t step = group.first_step; step < group.end_step; ++step) {
        what += plan.steps[step].function;
        for (const int32_t arg : plan.steps[step].args)
          what += to_string(plan.buffers[static_cast<size_t>(arg)].shape);
      }
      if (seen.insert(what).second) check(plan, group, graphs_[sample]);
    }
  }

private:
  void check(const package::ExecPlan& plan, const plan::GenericGroup& group, const ir::Graph& graph) const {
    std::vector<ir::ValueId> inputs;
    const plan::Kernel kernel = plan::kernel_of(graph, graph.node(group.node), inputs);
    if (!verifies_(kernel)) return;
    std::vector<const Tensor*> constants;
    for (const ir::ValueId input : inputs) {
      const std::optional<Tensor>& constant = graph.value(input).constant;
      constants.push_back(constant ? &*constant : nullptr);
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
      code = run_kernel(entries_[compiled_.model.step_kernels[step]], buffers, {}, plan.steps[step].dims);
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
  const std::vector<ir::Graph>& graphs_;
  const std::vector<std::vector<int64_t>>& dims_;
  const std::function<bool(const plan::Kernel&)>& verifies_;
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<tm_kernel> entries_;
};

}  // namespace

CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                const codegen::Backend& backend,
                                const std::function<bool(const plan::Kernel&)>& verifies) {
  std::vector<ir::Graph> graphs;
  std::vector<std::vector<int64_t>> dims;
  for (const ir::ShapedGraph& sample : variants.samples) {
    graphs.push_back(optimize(sample.graph, options));
    dims.push_back(sample.dims);
  }
  std::vector<std::string> names;
  const ir::Graph& imported = variants.samples.front().graph;
  for (ir::ValueId output : imported.outputs()) names.push_back(imported.value(output).name);
  CompiledGeneric compiled;
  compiled.model = plan::generalize_model(graphs, dims, names, options.target.facts.lanes(32));
  compiled.model.plan.multiples = variants.multiples;
  for (const plan::GenericKernel& kernel : compiled.model.kernels) {
    te::verify(kernel.loops, te::Level::kLoops);
    compiled.functions.push_back(lower::lower(kernel.loops, options.target));
    const te::Function& function = compiled.functions.back();
    TM_CHECK(function.shared_workspace_bytes == 0 && function.worker_workspace_bytes == 0,
             "a generic kernel has workspace");
    compiled.objects.push_back(backend.emit(
        function, options.target, {options.dumps.count("ll") != 0, options.dumps.count("asm") != 0}));
  }
  if (options.verify != VerifyMode::kNone && options.host_runs_target) {
    const GenericVerifier verifier(compiled, graphs, dims, verifies);
    verifier.run(0);
    verifier.run(graphs.size() - 1);
  }
  return compiled;
}

}  // namespace tensormill::driver
