#include "compiler/driver/generic.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "compiler/codegen/jit.h"
#include "compiler/driver/generic_points.h"
#include "compiler/driver/symbolic.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/sharing.h"
#include "compiler/plan/symbolic_plan.h"
#include "runtime/base/error.h"
#include "runtime/package/branches.h"
#include "runtime/package/plan_formulas.h"

namespace tensormill::driver {

namespace {

class GenericVerifier {
public:
  GenericVerifier(const CompiledGeneric& compiled, const std::function<bool(const plan::Kernel&)>& verifies,
                  Compares compares)
      : compiled_(compiled), verifies_(verifies), compares_(compares) {}

  /// `sample`: which one `graph` is of. Of a kernel more than `most_flops` are left out.
  void run(const plan::GenericModel& model, const ir::Graph& graph,
           const std::vector<plan::HiddenConstant>& hidden, size_t sample, const std::vector<int64_t>& dims,
           int64_t most_flops = std::numeric_limits<int64_t>::max()) {
    load();
    std::map<ir::ValueId, const Tensor*> constants;
    const size_t own_inputs = graph.inputs().size() - hidden.size();
    for (size_t i = 0; i < hidden.size(); ++i)
      constants[graph.inputs()[own_inputs + i]] = &hidden[i].values[sample];
    // Extents of a branch may be others than those around it: no run has them together.
    const package::ExecPlan plan = package::branches_of(model.plan.plan).empty()
                                       ? package::instantiate(model.plan, dims)
                                       : package::with_extents(model.plan, dims);
    std::set<std::string> seen;
    for (const plan::GenericGroup& group : model.groups) {
      std::string what;
      for (size_t step = group.first_step; step < group.end_step; ++step) {
        what += plan.steps[step].function;
        for (const int32_t arg : plan.steps[step].args)
          what += to_string(plan.buffers[static_cast<size_t>(arg)].shape);
      }
      if (seen.insert(what).second) check(model, plan, group, graph, constants, most_flops);
    }
  }

private:
  /// The kernels that are new.
  void load() {
    while (entries_.size() < compiled_.objects.size()) {
      const codegen::Object& object = compiled_.objects[entries_.size()];
      libraries_.push_back(codegen::JitLibrary::load(object));
      entries_.push_back(libraries_.back()->kernel(object.symbol));
    }
  }

  void check(const plan::GenericModel& model, const package::ExecPlan& plan, const plan::GenericGroup& group,
             const ir::Graph& graph, const std::map<ir::ValueId, const Tensor*>& hidden,
             int64_t most_flops) const {
    std::vector<ir::ValueId> inputs;
    const plan::Kernel kernel = plan::kernel_of(graph, graph.node(group.node), inputs);
    if (!verifies_(kernel) || kernel.flops > most_flops) return;
    std::vector<const Tensor*> constants;
    for (const ir::ValueId input : inputs) {
      const std::optional<Tensor>& constant = graph.value(input).constant;
      const auto found = hidden.find(input);
      const Tensor* computed = found != hidden.end() ? found->second : nullptr;
      constants.push_back(constant ? &*constant : computed);
    }
    plan::Kernel named = kernel;
    named.symbol = plan.steps[group.first_step].function;
    // What is refused says nothing about values.
    if (!compare(model, plan, group, named, make_reference(kernel, constants, compares_)))
      compare(model, plan, group, named, make_accepted_reference(kernel, constants, compares_));
  }

  /// Whether values were compared.
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
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<tm_kernel> entries_;
};

/// Samples of one form, and the plan that they have in common.
struct Generalized {
  std::vector<const ir::ShapedGraph*> samples;
  std::vector<plan::HiddenConstant> hidden;
  ir::Graph first, last;  ///< optimized; weights are kept of the two samples alone that are verified
  plan::GenericModel model;
  std::set<std::vector<int64_t>> refused;  ///< of the checks, below the samples
};

Generalized generalize(const Points& points, const std::vector<const ir::ShapedGraph*>& samples,
                       const CompileOptions& options) {
  std::vector<const ir::Graph*> imported;
  for (const ir::ShapedGraph* sample : samples) imported.push_back(&sample->graph);
  plan::SampleGraphs graphs = plan::hide_shape_constants(imported);
  ir::Graph first = optimize_generic(graphs.graphs.front(), options);
  std::vector<plan::GraphForm> forms = {plan::form_of(first, samples.front()->dims, first)};
  ir::Graph last = first;
  for (size_t i = 1; i < samples.size(); ++i) {
    last = optimize_generic(graphs.graphs[i], options);
    forms.push_back(plan::form_of(last, samples[i]->dims, first));
  }
  const std::vector<std::string> names = imported[0]->output_names();
  const auto with_facts = [&](bool all) {
    plan::ExtentFacts facts = plan::extent_facts(imported, all);
    facts.dependents = points.dependents;
    facts.maximums = points.maximums;
    return plan::generalize_model(first, forms, graphs.hidden, facts, names, options.target.facts.lanes(32));
  };
  plan::GenericModel model = [&] {
    try {
      return with_facts(false);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
      return with_facts(true);
    }
  }();
  model.plan.multiples = points.multiples;
  for (const int64_t most : points.maximums)
    model.plan.maximums.push_back(most == 0 ? package::kMaxFreeDim : most);
  model.plan.goes_first = points.goes_first;
  for (const ir::DependentDim& each : points.spread) {
    if (!package::fits_package(each.value))
      throw Error(ErrorCode::kNotSupported, "what a free dim follows from is a formula that is too large");
    model.plan.spread.push_back({static_cast<int32_t>(each.dim), each.value});
  }
  Generalized result{samples,         std::move(graphs.hidden), std::move(first),
                     std::move(last), std::move(model),         {}};
  result.refused = check_outputs_of(points, samples, result.model.plan);
  return result;
}

/// Whether a dim is less that nothing else decides about.
bool has_less(const Points& points, const std::vector<int64_t>& dims, int64_t least) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < least && !is_dependent(points, d)) return true;
  }
  return false;
}

/// Where points below the samples are refused, these are samples, too: extents may end or start there. All of
/// them, then without extents of 0, then without those of 1, which hide what broadcasts; of several that have
/// one form the one that refuses least.
Generalized generalize_all(const Points& points, const CompileOptions& options) {
  const std::vector<const ir::ShapedGraph*>& samples = points.samples;
  Generalized result = generalize(points, samples, options);
  size_t before = samples.size();
  for (const int64_t least : {0, 1, 2}) {
    std::vector<const ir::ShapedGraph*> more = samples;
    for (const ir::ShapedGraph* small : points.small) {
      if (!has_less(points, small->dims, least)) more.push_back(small);
    }
    const auto has_elements = [](const std::vector<int64_t>& dims) {
      return std::find(dims.begin(), dims.end(), 0) == dims.end();
    };
    if (!std::any_of(result.refused.begin(), result.refused.end(), has_elements) &&
        (least > 0 || result.refused.empty()))
      break;
    if (more.size() == before || more.size() == samples.size()) continue;
    before = more.size();
    // The last one is verified: a large one.
    std::swap(more[samples.size() - 1], more.back());
    try {
      Generalized other = generalize(points, more, options);
      if (other.refused.size() < result.refused.size()) result = std::move(other);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
    }
  }
  return result;
}

/// With the dims that may be 1 where that has one form, else without.
Generalized generalize_set(const ir::SampleSet& set, const std::vector<const ir::SampleSet*>& elsewhere,
                           const CompileOptions& options, std::string& refused) {
  const auto with_others = [&](Points points) {
    points.elsewhere = elsewhere;
    return points;
  };
  if (!set.spread.empty()) {
    try {
      return generalize_all(with_others(spread_points_of(set)), options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
      if (refused.empty()) refused = error.message();
    }
  }
  return generalize_all(with_others(points_of(set)), options);
}

class GenericCompiler {
public:
  GenericCompiler(const CompileOptions& options, const codegen::Backend& backend,
                  const std::function<bool(const plan::Kernel&)>& verifies)
      : options_(options), backend_(backend), verifier_(compiled_, verifies, compares_of(options.verify)) {}

  /// Before any other plan: those that go first, whose shapes are none of the others'.
  void add_first(const ir::SampleSet& set) {
    const size_t before = compiled_.models.size();
    add_special(set);
    if (compiled_.models.size() == before) return;
    first_.push_back(std::move(compiled_.models.back()));
    compiled_.models.pop_back();
    elsewhere_.push_back(&set);
  }

  void add(const ir::SampleSet& set) {
    const bool is_first = set.goes_first;
    Generalized generalized = generalize_set(set, is_first ? std::vector<const ir::SampleSet*>() : elsewhere_,
                                             options_, compiled_.refused);
    plan::GenericModel& model = generalized.model;
    compile_steps(model);
    if (options_.verify != VerifyMode::kNone && options_.host_runs_target) verify(generalized);
    for (const std::vector<ir::ShapeCheck>* checks : {&set.checks, &set.spread_checks}) {
      for (const ir::ShapeCheck& check : *checks) {
        if (ir::has_form(set, check.dims) && package::is_within(model.plan, check.dims))
          served_.insert(check.dims);
      }
    }
    compiled_.models.push_back(std::move(model));
  }

  /// The plan of the model as it was imported with symbols. Kernels are compared with their references where
  /// the extents are small, and at the hints. Whether it serves all that the model takes.
  bool add(const ir::SymbolicModel& symbolic, const std::vector<std::string>& free_dims) {
    const ir::Graph graph = optimize_generic(symbolic.graph, options_);
    plan::find_kernel_guards(graph);
    const ir::SymbolTable& table = *graph.symbols();
    const PlanSymbols symbols = plan_symbols(symbolic, graph, free_dims);
    const std::vector<int64_t> base = base_point(symbols.all, table, {8, 4, 16, 32, 64, 128});
    plan::GenericModel model =
        plan_with(graph, symbols, base, symbolic.graph.output_names(), options_.target.facts.lanes(32));
    compile_steps(model);
    const bool is_full = options_.verify == VerifyMode::kFull;
    bool serves_all = is_open(table);
    std::vector<std::vector<int64_t>> points = take_zeros(symbolic, symbols, model.plan, serves_all);
    for (std::vector<int64_t>& dims :
         points_of(symbols.all, table, {1, 2, 3, 5, 7, 8, 16, 17, 32, 33, 64}, 2))
      points.push_back(std::move(dims));
    for (const std::vector<int64_t>& dims : points) {
      if (options_.verify == VerifyMode::kNone || !options_.host_runs_target) break;
      std::map<std::string, int64_t> values;
      for (size_t i = 0; i < dims.size(); ++i) values[symbols.all[i]] = dims[i];
      verifier_.run(model, ir::bind_symbols(graph, values), {}, 0, dims,
                    is_full ? std::numeric_limits<int64_t>::max() : kFewFlops);
    }
    model.plan = plan::with_dims_around(std::move(model.plan), symbols.dims, free_dims);
    compiled_.models.push_back(std::move(model));
    return serves_all;
  }

  /// A set whose plan cannot be made leaves the others as they are.
  void add_special(const ir::SampleSet& set) {
    try {
      add(set);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported) throw;
      if (compiled_.refused.empty()) compiled_.refused = error.message();
    }
  }

  /// Of a model of one free dim: the known extents below those that the other plans take, each as a plan of
  /// its own.
  void add_alone(const ir::SampleSet& set) {
    if (set.samples.front().dims.size() != 1) return;
    const int64_t least = compiled_.models.front().plan.minimums[0];
    for (const ir::ShapeCheck& check : set.checks) {
      const ir::ShapedGraph* graph = below(set, check.dims);
      const bool is_full = compiled_.models.size() + first_.size() > package::kMaxSpecialPlans;
      if (graph == nullptr || check.dims[0] >= least || is_elsewhere(check.dims) || is_full) continue;
      ir::SampleSet one;
      one.samples.push_back(*graph);
      one.checks.push_back(check);
      one.multiples = {1};
      one.dependents.push_back({0, {check.dims[0], {}}});
      add_special(one);
    }
  }

  /// Whether each shape at which one of the sets was looked at has a plan.
  bool serves_all(const ir::Variants& variants) const {
    const auto serves = [&](const std::vector<ir::ShapeCheck>& checks) {
      return std::all_of(checks.begin(), checks.end(),
                         [&](const ir::ShapeCheck& check) { return served_.count(check.dims) != 0; });
    };
    return !variants.leaves_out && serves(variants.checks) && serves(variants.spread_checks) &&
           std::all_of(variants.special.begin(), variants.special.end(), [&](const ir::SampleSet& set) {
             return serves(set.checks) && serves(set.spread_checks);
           });
  }

  CompiledGeneric take() {
    for (plan::GenericModel& model : first_) compiled_.models.push_back(std::move(model));
    return std::move(compiled_);
  }

private:
  static constexpr int64_t kFewFlops = int64_t{1} << 27;

  /// Compiles the kernels of a plan's steps.
  void compile_steps(plan::GenericModel& model) {
    for (const plan::GenericKernel& kernel : model.kernels) check_bounds(kernel);
    const std::vector<size_t> places = compile_kernels(model);
    for (size_t i = 0; i < model.step_kernels.size(); ++i) {
      std::optional<size_t>& kernel = model.step_kernels[i];
      if (!kernel) continue;
      kernel = places[*kernel];
      model.plan.plan.steps[i].sharing = plan::sharing_of(compiled_.functions[*kernel]);
    }
  }

  /// What the model is at those dims, which are below its samples; or nothing.
  static const ir::ShapedGraph* below(const ir::SampleSet& set, const std::vector<int64_t>& dims) {
    for (const std::vector<ir::ShapedGraph>* graphs : {&set.small, &set.alone}) {
      for (const ir::ShapedGraph& graph : *graphs) {
        if (graph.dims == dims) return &graph;
      }
    }
    return nullptr;
  }

  bool is_elsewhere(const std::vector<int64_t>& dims) const {
    return std::any_of(elsewhere_.begin(), elsewhere_.end(),
                       [&](const ir::SampleSet* set) { return ir::has_form(*set, dims); });
  }

  /// Where the model's kernels are among those of all models.
  std::vector<size_t> compile_kernels(const plan::GenericModel& model) {
    std::vector<size_t> places;
    for (const plan::GenericKernel& kernel : model.kernels) {
      const auto [found, is_new] = by_symbol_.emplace(kernel.symbol, compiled_.kernels.size());
      places.push_back(found->second);
      if (is_new) {
        compile(kernel);
      } else {
        add_origins(kernel.origins, compiled_.kernels[found->second].origins);
      }
    }
    return places;
  }

  void compile(const plan::GenericKernel& kernel) {
    compiled_.functions.push_back(lower::lower(kernel.loops, options_.target));
    const te::Function& function = compiled_.functions.back();
    TM_CHECK(function.shared_workspace_bytes == 0 && function.worker_workspace_bytes == 0,
             "a generic kernel has workspace");
    compiled_.objects.push_back(backend_.emit(
        function, options_.target, {options_.dumps.count("ll") != 0, options_.dumps.count("asm") != 0}));
    compiled_.kernels.push_back(kernel);
  }

  static void add_origins(const std::vector<std::string>& origins, std::vector<std::string>& all) {
    for (const std::string& origin : origins) {
      if (std::find(all.begin(), all.end(), origin) == all.end()) all.push_back(origin);
    }
  }

  void verify(const Generalized& generalized) {
    const size_t count = generalized.samples.size();
    verifier_.run(generalized.model, generalized.first, generalized.hidden, 0,
                  generalized.samples.front()->dims);
    // Whole plans are compared at small shapes as well (probe.h).
    if (count > 1)
      verifier_.run(generalized.model, generalized.last, generalized.hidden, count - 1,
                    generalized.samples.back()->dims,
                    options_.verify == VerifyMode::kFull ? std::numeric_limits<int64_t>::max() : kFewFlops);
  }

  const CompileOptions& options_;
  const codegen::Backend& backend_;
  CompiledGeneric compiled_;
  GenericVerifier verifier_;
  std::map<std::string, size_t> by_symbol_;
  std::vector<plan::GenericModel> first_;  ///< those that go first
  std::vector<const ir::SampleSet*> elsewhere_;
  std::set<std::vector<int64_t>> served_;  ///< of the sets' checks
};

}  // namespace

CompiledGeneric compile_generic(const ir::Variants& variants, const CompileOptions& options,
                                const codegen::Backend& backend,
                                const std::function<bool(const plan::Kernel&)>& verifies) {
  GenericCompiler compiler(options, backend, verifies);
  if (variants.symbolic) {
    bool is_complete = compiler.add(*variants.symbolic, variants.free_dims) && !variants.leaves_out;
    for (const ir::SymbolicModel& ones : variants.symbolic_ones)
      is_complete = compiler.add(ones, variants.free_dims) && is_complete;
    CompiledGeneric compiled = compiler.take();
    compiled.is_complete = is_complete;
    return compiled;
  }
  for (const ir::SampleSet& set : variants.special) {
    if (set.goes_first) compiler.add_first(set);
  }
  try {
    compiler.add(variants);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotSupported || !variants.graphs.empty()) throw;
    std::string dims;
    for (const std::string& dim : variants.free_dims) dims += (dims.empty() ? "" : ", ") + dim;
    throw Error(error.code(), error.message() + "; without a plan for all extents of " + dims +
                                  ", give shape_buckets, or bind them with input_shapes");
  }
  for (const ir::SampleSet& set : variants.special) {
    if (!set.goes_first) compiler.add_special(set);
  }
  compiler.add_alone(variants);
  const bool is_complete = compiler.serves_all(variants);
  CompiledGeneric compiled = compiler.take();
  compiled.is_complete = is_complete;
  return compiled;
}

}  // namespace tensormill::driver
