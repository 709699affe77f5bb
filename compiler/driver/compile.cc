#include "compiler/driver/compile.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>

#include "compiler/codegen/backend.h"
#include "compiler/driver/describe_values.h"
#include "compiler/driver/generic.h"
#include "compiler/driver/kernel_set.h"
#include "compiler/driver/phase_timer.h"
#include "compiler/driver/probe.h"
#include "compiler/driver/symbolic.h"
#include "compiler/driver/warn_of_shapes.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/run_dims.h"
#include "compiler/package/writer.h"
#include "compiler/passes/pass.h"
#include "compiler/te/text.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/error.h"
#include "runtime/package/model_step.h"
#include "runtime/package/plan_set.h"

namespace tensormill::driver {

namespace {

class Job {
public:
  Job(const ir::Variants& variants, const CompileOptions& options, const CompileHooks& hooks)
      : variants_(variants),
        options_(options),
        hooks_(hooks),
        backend_(codegen::make_llvm_backend()),
        kernels_(options, *backend_,
                 [this](int64_t done, int64_t total) { report("kernels", done, total); }) {}

  CompileResult run() {
    for (const ir::ShapedGraph& graph : variants_.graphs) imported_.push_back(&graph);
    const bool is_generic_alone = imported_.empty();
    if (is_generic_alone) compile_symbolic();
    // A package has a plan to begin with.
    if (is_generic_alone && !generic_) imported_.push_back(&at_hints_.emplace(at_hints(*variants_.symbolic)));
    for (size_t i = 0; i < imported_.size(); ++i) graphs_.push_back(optimize(i));
    if (options_.layout) passes::require_layout(*options_.layout, result_.layout);
    extract();
    compile_kernels();
    if (!is_generic_alone) compile_symbolic();
    link();
    finish();
    return std::move(result_);
  }

private:
  /// A graph of one shape with its calls of the kernels that all graphs share.
  struct ShapedCalls {
    const ir::Graph* graph = nullptr;
    plan::Kernels kernels;       ///< its own
    std::vector<size_t> shared;  ///< where each of them stands in kernels_
  };

  bool dumps(const std::string& stage) const { return options_.dumps.count(stage) != 0; }

  void report(const std::string& stage, int64_t done, int64_t total) {
    if (hooks_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the compilation was cancelled");
    if (!hooks_.progress) return;
    const std::lock_guard<std::mutex> lock(progress_mutex_);
    hooks_.progress({stage, done, total});
  }

  ir::Graph optimize(size_t index) {
    const ir::Graph& imported = imported_[index]->graph;
    const std::string title = title_of(variants_.free_dims, imported_[index]->dims);
    report("passes", static_cast<int64_t>(index), static_cast<int64_t>(imported_.size()));
    const PhaseTimer timer(result_.times, "passes");
    passes::PipelineOptions pipeline;
    pipeline.context = {options_.target.facts, options_.opt_level};
    pipeline.disabled = options_.disabled_passes;
    if (options_.layout) pipeline.context.layout = passes::bind_desired_layout(*options_.layout, imported);
    if (!options_.algorithms.empty())
      pipeline.context.algorithms = LayerProbe(imported, pipeline).options_for(options_.algorithms);
    pipeline.context.algorithms.mark = true;
    if (index == 0) pipeline.context.layout_log = &result_.layout;
    ir::GraphPrinter printer;
    if (dumps("relay")) result_.dumps["relay"] += "# imported" + title + "\n" + printer.print(imported);
    auto start = std::chrono::steady_clock::now();
    const auto observe = [&](std::string_view pass, const ir::Graph& graph) {
      const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
      result_.pass_times.push_back({std::string(pass), elapsed.count()});
      if (dumps("relay"))
        result_.dumps["relay"] += "# after " + std::string(pass) + title + "\n" + printer.print(graph);
      start = std::chrono::steady_clock::now();
    };
    std::vector<std::string> ran;
    ir::Graph graph = passes::run_pipeline(imported, pipeline, ran, observe);
    if (index == 0) metadata_.passes = std::move(ran);
    return graph;
  }

  void extract() {
    const PhaseTimer timer(result_.times, "extract kernels");
    for (const ir::Graph& graph : graphs_) {
      ShapedCalls shaped{&graph, plan::extract_kernels(graph), {}};
      std::vector<const std::vector<ir::ValueId>*> inputs(shaped.kernels.kernels.size());
      for (const plan::KernelCall& call : shaped.kernels.calls) {
        if (inputs[call.kernel] == nullptr) inputs[call.kernel] = &call.inputs;
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        shaped.shared.push_back(kernels_.add(shaped.kernels.kernels[i], graph, *inputs[i]));
      shaped_.push_back(std::move(shaped));
    }
  }

  void compile_kernels() {
    const PhaseTimer timer(result_.times, "kernels");
    kernels_.compile();
  }

  std::vector<plan::KernelWorkspace> compile_fixed(const std::vector<plan::FixedKernel>& kernels,
                                                   const ir::Graph& graph) {
    for (const plan::FixedKernel& each : kernels) kernels_.add(each.kernel, graph, each.inputs);
    kernels_.compile();
    std::vector<plan::KernelWorkspace> workspaces;
    for (const plan::FixedKernel& each : kernels)
      workspaces.push_back(kernels_.compiled(kernels_.place_of(each.kernel.key)).workspace);
    return workspaces;
  }

  /// The generic plan. Where it cannot be made the package has its variants and the model, and says why.
  void compile_symbolic() {
    if (!variants_.symbolic) {
      result_.generic_refused = variants_.not_symbolic;
      return;
    }
    report("generic", 0, 1);
    const PhaseTimer timer(result_.times, "generic");
    const size_t known = kernels_.size();
    try {
      GenericPlanner own(options_.target);
      const GenericHooks hooks = {[this](const plan::Kernel& kernel) { return kernels_.verifies(kernel); },
                                  [this](const std::vector<plan::FixedKernel>& kernels,
                                         const ir::Graph& graph) { return compile_fixed(kernels, graph); }};
      generic_ = compile_generic(variants_, options_, hooks_.planner != nullptr ? *hooks_.planner : own,
                                 *backend_, hooks);
      if (imported_.empty()) result_.layout = generic_->layout;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotSupported || needs_generic(variants_)) throw;
      result_.generic_refused = error.message();
      kernels_.keep(known);
    }
  }

  void link() {
    report("link", 0, 1);
    const PhaseTimer timer(result_.times, "link");
    std::vector<codegen::Object> objects;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const plan::Kernel& kernel = kernels_.kernel(i);
      CompiledKernel& compiled = kernels_.compiled(i);
      if (compiled.refused) result_.refused_records.push_back(*compiled.refused);
      const std::string title = "# " + kernel.symbol + "\n";
      if (dumps("te"))
        result_.dumps["te"] +=
            title + te::print(kernel.program) + "# schedule\n" + compiled.schedule_text + "\n";
      if (dumps("tir")) result_.dumps["tir"] += title + compiled.loop_text + "\n";
      if (dumps("ll")) result_.dumps["ll"] += "; " + kernel.symbol + "\n" + compiled.object.ir_text + "\n";
      if (dumps("asm")) result_.dumps["asm"] += title + compiled.object.assembly_text + "\n";
      objects.push_back(std::move(compiled.object));
    }
    for (size_t i = 0; generic_ && i < generic_->objects.size(); ++i) {
      codegen::Object& object = generic_->objects[i];
      if (generic_->tuning[i].refused) result_.refused_records.push_back(*generic_->tuning[i].refused);
      if (dumps("tir"))
        result_.dumps["tir"] += "# " + object.symbol + "\n" + te::print(generic_->functions[i]) + "\n";
      if (dumps("ll")) result_.dumps["ll"] += "; " + object.symbol + "\n" + object.ir_text + "\n";
      if (dumps("asm")) result_.dumps["asm"] += "# " + object.symbol + "\n" + object.assembly_text + "\n";
      objects.push_back(std::move(object));
    }
    result_.code = backend_->link(objects, options_.target);
  }

  std::string verify_name() const {
    if (options_.verify == VerifyMode::kNone) return "none";
    if (!options_.host_runs_target) return "not_run";
    return options_.verify == VerifyMode::kFull ? "full" : "sample";
  }

  /// Whether mod.params holds more than one plan's constants.
  bool shares_params() const { return variants_.is_dynamic() || variants_.model; }

  /// The plan of one shape, its constants placed in the shared weights.
  package::ExecPlan plan_of(const ShapedCalls& shaped, const ir::Graph& imported,
                            plan::SharedParams* params) {
    std::vector<plan::KernelWorkspace> workspaces;
    for (const size_t kernel : shaped.shared) workspaces.push_back(kernels_.compiled(kernel).workspace);
    plan::BuiltPlan built =
        plan::build_plan(*shaped.graph, shaped.kernels, workspaces, imported.output_names());
    package::ExecPlan plan;
    if (params != nullptr) {
      params->merge(std::move(built), plan);
    } else {
      result_.params = std::move(built.params);
      result_.params_bytes = built.plan.params_bytes;
      plan = std::move(built.plan);
    }
    return plan;
  }

  void keep_model(package::PlanSet& set) {
    set.model = package::KeptModel{{}, variants_.model->options};
    for (const auto& [name, bytes] : variants_.model->files)
      set.model->files.push_back({name, params_.place(bytes), bytes.num_elements()});
  }

  package::PlanSet plan_all() {
    package::PlanSet set;
    set.free_dims = variants_.free_dims;
    for (size_t i = 0; i < shaped_.size(); ++i) {
      const ir::ShapedGraph& variant = *imported_[i];
      set.variants.push_back(
          {variant.dims, plan_of(shaped_[i], variant.graph, shares_params() ? &params_ : nullptr)});
    }
    set.input_shapes = variants_.input_shapes;
    std::vector<package::GenericPlan> generics;
    for (size_t i = 0; generic_ && i < generic_->models.size(); ++i) {
      plan::GenericModel& model = generic_->models[i];
      generics.push_back(model.plan);
      params_.merge({std::move(model.plan.plan), std::move(model.params)}, generics.back().plan);
    }
    for (size_t i = generics.size(); i-- > 1;)
      set.special.insert(set.special.begin(), std::move(generics[i]));
    if (!generics.empty()) set.generic = std::move(generics.front());
    if (variants_.model && !(generic_ && generic_->is_complete && !package::is_model_step(set.first())))
      keep_model(set);
    return set;
  }

  void finish() {
    report("plan", 0, 1);
    const PhaseTimer timer(result_.times, "plan");
    package::PlanSet set = plan_all();
    write_plan(set);
    std::future<package::MemberInfo> params = hash_params();
    if (generic_ && kernels_.verifies()) {
      const package::Metadata begun = metadata_;
      // Probes read the constants where they are, whatever their digest.
      write_metadata(set, {{}, result_.params_bytes});
      metadata_ = begun;
      if (check_probes(set)) {
        params.wait();
        write_plan(set);
        params = hash_params();
      }
    }
    write_metadata(set, params.get());
  }

  /// What is said of the constants, worked out meanwhile where there is a thread for it.
  std::future<package::MemberInfo> hash_params() const {
    return std::async(options_.threads > 1 ? std::launch::async : std::launch::deferred,
                      [this] { return package::params_member(result_.params, result_.params_bytes); });
  }

  /// Whether the set is another one now: it keeps the model, and no shapes of which a plan computes something
  /// else.
  bool check_probes(package::PlanSet& set) {
    const auto loaded = package::LoadedPackage::load(package::open_written(
        {result_.metadata_json, result_.plan_json, result_.code, &result_.params, result_.params_bytes}));
    const Probed probed = run_probes(loaded, variants_);
    const package::PlanSet& plans = loaded->package().plans();
    for (const RaisedMinimum& raised : probed.raised) {
      const bool is_special = raised.plan != &*plans.generic;
      package::GenericPlan& own =
          is_special ? set.special[static_cast<size_t>(raised.plan - plans.special.data())] : *set.generic;
      own.minimums[raised.dim] = std::max(own.minimums[raised.dim], raised.least);
      if (!is_special) raised_.push_back(set.free_dims[raised.dim] + " >= " + std::to_string(raised.least));
    }
    const bool keeps = !probed.is_complete && variants_.model && !set.model;
    if (keeps) keep_model(set);
    return keeps || !probed.raised.empty();
  }

  void write_plan(package::PlanSet& set) {
    if (shares_params()) {
      std::vector<package::ExecPlan*> plans;
      if (set.generic) plans.push_back(&set.generic->plan);
      for (package::GenericPlan& special : set.special) plans.push_back(&special.plan);
      for (package::PlanVariant& variant : set.variants) plans.push_back(&variant.plan);
      result_.params_bytes = params_.finish(plans);
      result_.params = params_.segments();
    }
    std::vector<std::string> conditions = raised_;
    if (generic_) add_conditions(*variants_.symbolic->graph.symbols(), conditions);
    result_.shape_warning = warn_of_shapes(set, result_.generic_refused, conditions);
    result_.plan_json = package::plan_set_to_json(set);
    // What the compiler writes is read as a stranger's package is.
    package::plan_set_from_json(result_.plan_json);
  }

  void write_metadata(const package::PlanSet& set, const package::MemberInfo& params) {
    describe(set);
    describe_kernels();
    metadata_.members[std::string(package::kCodeMember)] = package::member_of(result_.code);
    metadata_.members[std::string(package::kPlanMember)] = package::member_of(result_.plan_json);
    metadata_.members[std::string(package::kParamsMember)] = params;
    result_.metadata_json = package::metadata_to_json(metadata_);
  }

  void describe(const package::PlanSet& set) {
    metadata_.abi_version = TM_ABI_VERSION;
    metadata_.compiler_version = compiler_version();
    metadata_.compiler_build = compiler_build();
    metadata_.model_digest = options_.model_digest;
    metadata_.model_format = options_.model_format;
    metadata_.target = options_.target.canonical();
    metadata_.triple = options_.target.triple;
    metadata_.cpu_features = options_.target.required_features();
    package::describe_ports(set, metadata_.inputs, metadata_.outputs);
    for (auto* ports : {&metadata_.inputs, &metadata_.outputs}) describe_values(variants_, *ports);
    metadata_.opt_level = options_.opt_level;
    metadata_.options = options_.recorded_options;
    if (!result_.generic_refused.empty())
      metadata_.options["generic_plan"] = "refused: " + result_.generic_refused;
    metadata_.verify = verify_name();
    describe_plans(set, metadata_);
  }

  void describe_kernels() {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      const plan::Kernel& kernel = kernels_.kernel(i);
      const CompiledKernel& compiled = kernels_.compiled(i);
      package::KernelInfo info;
      info.symbol = kernel.symbol;
      info.task_key = kernel.key.hex();
      info.tuning_record = compiled.tuning_record;
      info.tuning_reason = compiled.tuning_reason;
      info.verified =
          kernels_.verifies(kernel) || options_.verify == VerifyMode::kNone ? verify_name() : "not_run";
      metadata_.kernels.push_back(std::move(info));
    }
    for (const ShapedCalls& shaped : shaped_) {
      for (const plan::KernelCall& call : shaped.kernels.calls) {
        ir::add_origins(shaped.graph->node(call.node).origins,
                        metadata_.kernels[shaped.shared[call.kernel]].origins);
      }
    }
    for (size_t i = 0; generic_ && i < generic_->models.size(); ++i) {
      for (const plan::FixedKernel& fixed : generic_->models[i].fixed)
        ir::add_origins(fixed.origins, metadata_.kernels[kernels_.place_of(fixed.kernel.key)].origins);
    }
    describe_algorithms();
    for (size_t i = 0; generic_ && i < generic_->kernels.size(); ++i) {
      const plan::GenericKernel& kernel = generic_->kernels[i];
      const GenericTuning& tuning = generic_->tuning[i];
      const bool is_by_rule = tuning.record.empty() && tuning.reason.empty();
      metadata_.kernels.push_back({kernel.symbol, kernel.key.hex(), "generic", tuning.record,
                                   is_by_rule ? "serves every shape" : tuning.reason, verify_name(),
                                   kernel.origins});
    }
  }

  /// Of a kernel that computes several layers, "records" where one of them is chosen by records.
  void describe_algorithms() {
    for (const ShapedCalls& shaped : shaped_) {
      std::map<ir::NodeId, size_t> kernel_of;
      for (const plan::KernelCall& call : shaped.kernels.calls)
        kernel_of[call.node] = shaped.shared[call.kernel];
      for (const LayerNode& layer : layer_nodes(*shaped.graph)) {
        package::KernelInfo& info = metadata_.kernels[kernel_of.at(layer.node)];
        info.algorithm = layer.algorithm;
        if (info.algorithm_reason != "records") info.algorithm_reason = layer.chosen_by;
      }
    }
  }

  const ir::Variants& variants_;
  const CompileOptions& options_;
  const CompileHooks& hooks_;
  std::unique_ptr<codegen::Backend> backend_;
  std::mutex progress_mutex_;
  std::vector<const ir::ShapedGraph*> imported_;  ///< what plans of one shape are made of
  std::vector<std::string> raised_;               ///< conditions that a look at the plan has shown
  std::optional<ir::ShapedGraph> at_hints_;       ///< one of them that nobody asked for
  std::vector<ir::Graph> graphs_;                 ///< the same, optimized
  std::vector<ShapedCalls> shaped_;
  KernelSet kernels_;  ///< of constant extents, of all plans
  std::optional<CompiledGeneric> generic_;
  plan::SharedParams params_;  ///< of a package with free dims
  package::Metadata metadata_;
  CompileResult result_;
};

}  // namespace

CompileResult compile(const ir::Variants& variants, const CompileOptions& options,
                      const CompileHooks& hooks) {
  if (options.opt_level < 0 || options.opt_level > 4) {
    throw Error(ErrorCode::kInvalidArgument,
                "opt level is " + std::to_string(options.opt_level) + ", expected 0 to 4");
  }
  if (static_cast<int64_t>(variants.free_dims.size()) > package::kMaxFreeDims) {
    throw Error(ErrorCode::kInvalidArgument, std::to_string(variants.free_dims.size()) +
                                                 " free dims, a package has at most " +
                                                 std::to_string(package::kMaxFreeDims));
  }
  return Job(variants, options, hooks).run();
}

CompileResult compile(const ir::Graph& graph, const CompileOptions& options, const CompileHooks& hooks) {
  ir::Variants variants;
  if (ir::run_symbols(graph).empty()) {
    variants.graphs.push_back({{}, graph});
  } else {
    for (const ir::ValueId input : graph.inputs()) {
      const Shape shape = graph.value(input).type.shape;
      variants.input_shapes.emplace_back(shape.begin(), shape.end());
    }
    variants.symbolic = ir::SymbolicModel{graph, {}};
  }
  return compile(variants, options, hooks);
}

}  // namespace tensormill::driver
