#include "compiler/driver/generic.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "compiler/codegen/jit.h"
#include "compiler/driver/for_each_index.h"
#include "compiler/driver/symbolic.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/sharing.h"
#include "runtime/base/error.h"
#include "runtime/package/branches.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::driver {

namespace {

class GenericVerifier {
public:
  GenericVerifier(const CompiledGeneric& compiled, const std::function<bool(const plan::Kernel&)>& verifies,
                  Compares compares, int threads)
      : compiled_(compiled), verifies_(verifies), compares_(compares), threads_(threads) {}

  /// The model at some extents.
  struct Point {
    std::vector<int64_t> dims;
    ir::Graph graph;
  };

  /// Left out is what takes more than `most` operations and values, and a sixteenth of that where the same
  /// kernels are compared at a point before.
  void run(const plan::GenericModel& model, const std::vector<Point>& points, int64_t most) {
    load();
    std::vector<package::ExecPlan> plans;
    std::vector<Candidate> candidates;
    for (const Point& point : points) {
      // Extents of a branch may be others than those around it: no run has them together.
      plans.push_back(package::branches_of(model.plan.plan).empty()
                          ? package::instantiate(model.plan, point.dims)
                          : package::with_extents(model.plan, point.dims));
      add_candidates(model, plans.size() - 1, plans.back(), candidates);
    }
    for_each_index(candidates.size(), threads_, [&](size_t i) {
      Candidate& candidate = candidates[i];
      const ir::Graph& graph = points[candidate.point].graph;
      candidate.kernel = plan::kernel_of(graph, graph.node(candidate.group->node), candidate.inputs);
      candidate.takes += candidate.kernel.flops;
    });
    std::vector<Candidate*> chosen, others;
    for (Candidate& candidate : candidates) {
      if (!verifies_(candidate.kernel) || candidate.takes > most) continue;
      const bool is_new = known_.insert(candidate.kernels).second;
      (is_new || candidate.takes <= most / 16 ? chosen : others).push_back(&candidate);
    }
    std::set<std::string> compared;
    const auto compare_all = [&](std::vector<Candidate*>& all) {
      // What takes long is not to be begun last.
      std::stable_sort(all.begin(), all.end(),
                       [](const Candidate* a, const Candidate* b) { return a->takes > b->takes; });
      for_each_index(all.size(), threads_, [&](size_t i) {
        Candidate& candidate = *all[i];
        candidate.is_compared =
            check(model, plans[candidate.point], points[candidate.point].graph, candidate);
      });
      for (const Candidate* candidate : all) {
        if (candidate->is_compared) compared.insert(candidate->kernels);
      }
    };
    compare_all(chosen);
    // Where the data that was tried is refused, other points may say something.
    std::erase_if(others, [&](const Candidate* other) { return compared.contains(other->kernels); });
    compare_all(others);
  }

private:
  /// One group of the plan at one point.
  struct Candidate {
    size_t point = 0;
    const plan::GenericGroup* group = nullptr;
    std::string kernels = {};  ///< functions, one after the other
    int64_t takes = 0;         ///< operations, and values written
    plan::Kernel kernel = {};
    std::vector<ir::ValueId> inputs = {};
    bool is_compared = false;
  };

  /// The kernels that are new.
  void load() {
    while (entries_.size() < compiled_.objects.size()) {
      const codegen::Object& object = compiled_.objects[entries_.size()];
      libraries_.push_back(codegen::JitLibrary::load(object));
      entries_.push_back(libraries_.back()->kernel(object.symbol));
    }
  }

  /// Of equal kernels of equal shapes one.
  static void add_candidates(const plan::GenericModel& model, size_t point, const package::ExecPlan& plan,
                             std::vector<Candidate>& candidates) {
    std::set<std::string> seen;
    for (const plan::GenericGroup& group : model.groups) {
      Candidate candidate{point, &group};
      std::string shapes;
      for (size_t step = group.first_step; step < group.end_step; ++step) {
        candidate.kernels += plan.steps[step].function + " ";
        for (const int32_t arg : plan.steps[step].args)
          shapes += to_string(plan.buffers[static_cast<size_t>(arg)].shape);
      }
      for (const int32_t output : group.outputs)
        candidate.takes += num_elements(plan.buffers[static_cast<size_t>(output)].shape);
      if (seen.insert(candidate.kernels + shapes).second) candidates.push_back(std::move(candidate));
    }
  }

  /// Whether values were compared.
  bool check(const plan::GenericModel& model, const package::ExecPlan& plan, const ir::Graph& graph,
             const Candidate& candidate) const {
    std::vector<const Tensor*> constants;
    for (const ir::ValueId input : candidate.inputs) {
      const std::optional<Tensor>& constant = graph.value(input).constant;
      constants.push_back(constant ? &*constant : nullptr);
    }
    const plan::GenericGroup& group = *candidate.group;
    plan::Kernel named = candidate.kernel;
    named.symbol = plan.steps[group.first_step].function;
    // What is refused says nothing about values.
    return compare(model, plan, group, named, make_reference(candidate.kernel, constants, compares_)) ||
           compare(model, plan, group, named,
                   make_accepted_reference(candidate.kernel, constants, compares_));
  }

  bool compare(const plan::GenericModel& model, const package::ExecPlan& plan,
               const plan::GenericGroup& group, const plan::Kernel& kernel,
               const KernelReference& reference) const {
    std::map<int32_t, Tensor> tensors;
    for (size_t i = 0; i < group.inputs.size(); ++i) tensors.emplace(group.inputs[i], reference.inputs[i]);
    int32_t code = 0;
    for (size_t step = group.first_step; step < group.end_step && code == 0; ++step) {
      std::vector<void*> buffers;
      for (const int32_t arg : plan.steps[step].args) {
        const package::Buffer& buffer = plan.buffers[static_cast<size_t>(arg)];
        auto found = tensors.find(arg);
        if (found == tensors.end())
          found = tensors.emplace(arg, Tensor::zeros(buffer.dtype, buffer.shape)).first;
        buffers.push_back(found->second.data());
      }
      code = run_kernel(entries_[model.step_kernels[step].value()], buffers, {}, plan.steps[step].dims);
    }
    std::vector<Tensor> outputs;
    for (const int32_t output : group.outputs) {
      const package::Buffer& buffer = plan.buffers[static_cast<size_t>(output)];
      const auto found = tensors.find(output);
      outputs.push_back(found != tensors.end() ? found->second : Tensor::zeros(buffer.dtype, buffer.shape));
    }
    check_outputs(kernel, reference, code, outputs);
    return reference.refusal.empty() && code == TM_OK;
  }

  const CompiledGeneric& compiled_;
  const std::function<bool(const plan::Kernel&)>& verifies_;
  const Compares compares_;
  const int threads_;
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<tm_kernel> entries_;
  std::set<std::string> known_;  ///< Candidate::kernels that were chosen
};

class GenericCompiler {
public:
  GenericCompiler(const CompileOptions& options, GenericPlanner& planner, const codegen::Backend& backend,
                  const GenericHooks& hooks)
      : options_(options),
        planner_(planner),
        backend_(backend),
        hooks_(hooks),
        verifier_(compiled_, hooks.verifies, compares_of(options.verify), options.threads) {}

  /// The plan of the model as it was imported with symbols. Kernels are compared with their references where
  /// the extents are small, and at the hints. Whether it serves all that the model takes.
  bool add(const ir::SymbolicModel& symbolic, const std::vector<std::string>& free_dims) {
    PlannedModel planned =
        planner_.plan(symbolic, free_dims, options_, compiled_.models.empty() ? &compiled_.layout : nullptr);
    const ir::Graph& graph = planned.graph;
    const ir::SymbolTable& table = *graph.symbols();
    const PlanSymbols& symbols = planned.symbols;
    plan::GenericModel& model = planned.model;
    compile_steps(model);
    compile_fixed(model, graph);
    const bool is_full = options_.verify == VerifyMode::kFull;
    bool serves_all = is_open(table);
    std::vector<std::vector<int64_t>> points = take_zeros(symbolic, symbols, model.plan, serves_all);
    // The least extents, and some that end within the blocks of rows and lanes of most layers.
    const std::vector<int64_t> least = {1, 2, 3, 5, 7, 8, 16, 17, 32, 33, 64}, ragged = {75, 77, 90, 96, 120};
    for (const bool is_least : {true, false}) {
      for (std::vector<int64_t>& dims :
           points_of(symbols.all, table, is_least ? least : ragged, is_least ? 2 : 1)) {
        if (std::find(points.begin(), points.end(), dims) == points.end()) points.push_back(std::move(dims));
      }
    }
    if (options_.verify != VerifyMode::kNone && options_.host_runs_target) {
      std::vector<GenericVerifier::Point> at;
      for (const std::vector<int64_t>& dims : points) {
        std::map<std::string, int64_t> values;
        for (size_t i = 0; i < dims.size(); ++i) values[symbols.all[i]] = dims[i];
        at.push_back({dims, ir::bind_symbols(graph, values)});
      }
      verifier_.run(model, at, is_full ? std::numeric_limits<int64_t>::max() : kFewOperations);
    }
    model.plan = plan::with_dims_around(std::move(model.plan), symbols.dims, free_dims);
    compiled_.models.push_back(std::move(model));
    return serves_all;
  }

  CompiledGeneric take() { return std::move(compiled_); }

private:
  static constexpr int64_t kFewOperations = int64_t{1} << 27;

  /// Compiles the kernels of a plan's steps.
  void compile_steps(plan::GenericModel& model) {
    const std::vector<size_t> places = add_kernels(model);
    for (size_t i = 0; i < model.step_kernels.size(); ++i) {
      std::optional<size_t>& kernel = model.step_kernels[i];
      if (!kernel) continue;
      kernel = places[*kernel];
      model.plan.plan.steps[i].sharing = plan::sharing_of(compiled_.functions[*kernel]);
    }
  }

  void compile_fixed(plan::GenericModel& model, const ir::Graph& graph) {
    const std::vector<plan::KernelWorkspace> workspaces = hooks_.compile_fixed(model.fixed, graph);
    for (size_t i = 0; i < workspaces.size(); ++i) {
      for (const size_t step : model.fixed[i].steps)
        plan::set_workspace(model.plan.plan.steps[step], workspaces[i]);
    }
  }

  /// Where the model's kernels are among those of all models.
  std::vector<size_t> add_kernels(const plan::GenericModel& model) {
    std::vector<size_t> places;
    const size_t known = compiled_.kernels.size();
    for (const plan::GenericKernel& kernel : model.kernels) {
      const auto [found, is_new] = by_symbol_.emplace(kernel.symbol, compiled_.kernels.size());
      places.push_back(found->second);
      if (is_new) {
        compiled_.kernels.push_back(kernel);
      } else {
        ir::add_origins(kernel.origins, compiled_.kernels[found->second].origins);
      }
    }
    compiled_.functions.resize(compiled_.kernels.size());
    compiled_.objects.resize(compiled_.kernels.size());
    for_each_index(compiled_.kernels.size() - known, options_.threads, [&](size_t i) { compile(known + i); });
    return places;
  }

  void compile(size_t index) {
    te::Function function = lower::lower(compiled_.kernels[index].loops, options_.target);
    TM_CHECK(function.shared_workspace_bytes == 0 && function.worker_workspace_bytes == 0,
             "a generic kernel has workspace");
    compiled_.objects[index] = backend_.emit(
        function, options_.target, {options_.dumps.count("ll") != 0, options_.dumps.count("asm") != 0});
    compiled_.functions[index] = std::move(function);
  }

  const CompileOptions& options_;
  GenericPlanner& planner_;
  const codegen::Backend& backend_;
  const GenericHooks& hooks_;
  CompiledGeneric compiled_;
  GenericVerifier verifier_;
  std::map<std::string, size_t> by_symbol_;
};

}  // namespace

bool needs_generic(const ir::Variants& variants) {
  return variants.graphs.empty() &&
         (!variants.model || !variants.symbolic->graph.symbols()->run_time_symbols().empty());
}

CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                GenericPlanner& planner, const codegen::Backend& backend,
                                const GenericHooks& hooks) {
  CompileOptions own = options;
  if (needs_generic(variants) && !variants.symbolic->graph.symbols()->run_time_symbols().empty()) {
    own.opt_level = CompileOptions().opt_level;
    own.disabled_passes.clear();
  }
  GenericCompiler compiler(own, planner, backend, hooks);
  bool is_complete = compiler.add(*variants.symbolic, variants.free_dims) && !variants.leaves_out;
  for (const ir::SymbolicModel& ones : variants.symbolic_ones)
    is_complete = compiler.add(ones, variants.free_dims) && is_complete;
  CompiledGeneric compiled = compiler.take();
  compiled.is_complete = is_complete;
  return compiled;
}

}  // namespace tensormill::driver
