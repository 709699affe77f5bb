#include "compiler/driver/generic.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/driver/for_each_index.h"
#include "compiler/driver/generic_tails.h"
#include "compiler/driver/generic_verifier.h"
#include "compiler/driver/symbolic.h"
#include "compiler/driver/verify_kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/plan/sharing.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

class GenericCompiler {
public:
  GenericCompiler(const CompileOptions& options, GenericPlanner& planner, const codegen::Backend& backend,
                  const GenericHooks& hooks)
      : options_(options),
        planner_(planner),
        backend_(backend),
        hooks_(hooks),
        verifier_(compiled_, {hooks.verifies, compares_of(options.verify), options.threads}) {}

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
    bool serves_all = is_open(table);
    const std::vector<std::vector<int64_t>> zeros = take_zeros(symbolic, symbols, model.plan, serves_all);
    if (options_.verify != VerifyMode::kNone && options_.host_runs_target)
      verify(model, graph, symbols, zeros);
    set_sharing(model);
    model.plan = plan::with_dims_around(std::move(model.plan), symbols.dims, free_dims);
    compiled_.models.push_back(std::move(model));
    return serves_all;
  }

  CompiledGeneric take() { return std::move(compiled_); }

private:
  static constexpr int64_t kFewOperations = int64_t{1} << 27;
  /// Of each of many points.
  static constexpr int64_t kFewOfTails = int64_t{1} << 20;

  /// Compiles the kernels of a plan's steps.
  void compile_steps(plan::GenericModel& model) {
    const std::vector<size_t> places = add_kernels(model);
    for (std::optional<size_t>& kernel : model.step_kernels) {
      if (kernel) kernel = places[*kernel];
    }
  }

  void set_sharing(plan::GenericModel& model) const {
    for (size_t i = 0; i < model.step_kernels.size(); ++i) {
      if (const std::optional<size_t> kernel = model.step_kernels[i])
        model.plan.plan.steps[i].sharing = plan::sharing_of(compiled_.functions[*kernel]);
    }
  }

  /// At extents of 0 where the plan takes them, the least ones, some that end within the blocks of rows and
  /// lanes of most layers, the hints, and around each kernel's own tiles.
  void verify(const plan::GenericModel& model, const ir::Graph& graph, const PlanSymbols& symbols,
              const std::vector<std::vector<int64_t>>& zeros) {
    const ir::SymbolTable& table = *graph.symbols();
    const int64_t all = std::numeric_limits<int64_t>::max();
    const bool is_full = options_.verify == VerifyMode::kFull;
    std::vector<GenericVerifier::Point> at;
    const auto add = [&](const std::vector<int64_t>& dims, int64_t most, std::set<size_t> tails) {
      const bool is_known = std::any_of(at.begin(), at.end(), [&](const GenericVerifier::Point& point) {
        return point.dims == dims && point.tails.empty();
      });
      if (is_known) return;
      at.push_back({dims, graph_at(graph, symbols.all, dims), is_full ? all : most, std::move(tails)});
    };
    for (const std::vector<int64_t>& dims : zeros) add(dims, kFewOperations, {});
    const std::vector<int64_t> least = {1, 2, 3, 5, 7, 8, 16, 17, 32, 33, 64}, ragged = {75, 77, 90, 96, 120};
    for (const bool is_least : {true, false}) {
      for (const std::vector<int64_t>& dims :
           points_of(symbols.all, table, is_least ? least : ragged, is_least ? 2 : 1))
        add(dims, kFewOperations, {});
    }
    const std::vector<int64_t> base = base_point(symbols.all, table, {2, 3, 1, 5, 7, 8, 16, 17, 32, 64});
    for (const auto& [dims, kernels] : tail_points(model, compiled_.tails, symbols.all, table, base)) {
      std::set<size_t> tuned;
      for (const size_t kernel : kernels) {
        if (!compiled_.tuning[kernel].record.empty()) tuned.insert(kernel);
      }
      // What a record says has been seen by nobody here.
      if (!tuned.empty()) add(dims, kFewOperations, tuned);
      if (tuned.size() < kernels.size()) add(dims, kFewOfTails, kernels);
    }
    for (std::vector<GenericVerifier::Wrong> wrong = verifier_.run(model, at); !wrong.empty();
         wrong = verifier_.run(model, at)) {
      for (const GenericVerifier::Wrong& each : wrong) {
        refuse(each.kernel, compiled_.tuning[each.kernel].record, each.what, true);
        compile_by_rule(each.kernel);
        verifier_.replace(each.kernel);
      }
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
    compiled_.tuning.resize(compiled_.kernels.size());
    compiled_.tails.resize(compiled_.kernels.size());
    compiled_.objects.resize(compiled_.kernels.size());
    for_each_index(compiled_.kernels.size() - known, options_.threads, [&](size_t i) { compile(known + i); });
    return places;
  }

  void compile(size_t index) {
    if (!compile_by_record(index)) compile_by_rule(index);
  }

  void compile_by_rule(size_t index) {
    const plan::GenericKernel& kernel = compiled_.kernels[index];
    compiled_.tails[index] = plan::tails_by_rule(*kernel.source);
    emit(index, kernel.loops);
  }

  /// As KernelSet does: records come from strangers, and their damage may show in any phase.
  bool compile_by_record(size_t index) {
    const plan::GenericKernel& kernel = compiled_.kernels[index];
    const auto found = options_.schedules.find(kernel.key.hex());
    if (found == options_.schedules.end()) return false;
    GenericTuning& tuning = compiled_.tuning[index];
    tuning.reason = found->second.reason;
    if (!tuning.reason.empty()) return false;
    try {
      emit_by(index, schedule::parse_schedule(found->second.steps));
      tuning.record = found->second.record;
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      refuse(index, found->second.record, error.message(), error.code() != ErrorCode::kInvalidRecords);
    } catch (const InternalError& error) {
      refuse(index, found->second.record, error.what(), true);
    }
    return false;
  }

  void refuse(size_t index, const std::string& record, const std::string& why, bool is_damaged) {
    const std::string reason = (is_damaged ? "its steps make no kernel: " : "its steps do not apply: ") + why;
    compiled_.tuning[index] = {"", reason,
                               RefusedRecord{"record " + record.substr(0, 12) + " of kernel " +
                                                 compiled_.kernels[index].symbol + ": " + reason,
                                             is_damaged}};
  }

  void emit_by(size_t index, const schedule::Schedule& steps) {
    plan::GenericLoops loops = plan::loops_by(*compiled_.kernels[index].source, steps);
    loops.function.name = compiled_.kernels[index].symbol;
    te::verify(loops.function, te::Level::kLoops);
    compiled_.tails[index] = std::move(loops.tails);
    emit(index, loops.function);
  }

  void emit(size_t index, const te::Function& loops) {
    te::Function function = lower::lower(loops, options_.target);
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
