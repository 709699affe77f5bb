#include "compiler/plan/symbolic_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/ir/branch_symbols.h"
#include "compiler/ir/run_dims.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/plan/generic_epilogue.h"
#include "compiler/plan/generic_join.h"
#include "compiler/plan/plan_writer.h"
#include "compiler/plan/step_branches.h"
#include "compiler/plan/symbolic_nest.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

/// Remainders that are looked at.
constexpr int64_t kMostPeriod = 4096;

SymbolVars variables_of(const ir::SymbolTable& table) {
  SymbolVars vars;
  for (const auto& [text, var] : table.variables()) vars.emplace(var, te::parse_dim(text));
  return vars;
}

std::vector<te::Dim> dims_of(const ir::SymShape& shape) {
  std::vector<te::Dim> dims;
  for (const ir::SymInt& extent : shape) dims.push_back(extent.expr());
  return dims;
}

std::string relation_of(const ir::Guard& guard) {
  switch (guard.relation) {
    case ir::Relation::kEqual:
      return guard.holds ? "==" : "!=";
    case ir::Relation::kLess:
      return guard.holds ? "<" : ">=";
    case ir::Relation::kLessEqual:
      return guard.holds ? "<=" : ">";
  }
  return "==";
}

/// By how much the symbol has to grow for each quotient to grow by an integer, whatever it is; 0 where there
/// is no such number, or a large one.
int64_t period_of(const te::Dim& dim) {
  int64_t period = 1;
  for (const te::DimTerm& term : dim.terms()) {
    if (term.factors.size() != 1) return 0;
    const te::DimAtom& atom = *term.factors[0];
    if (atom.kind == te::DimAtom::Kind::kSymbol) continue;
    if (atom.kind != te::DimAtom::Kind::kFloorDiv || !atom.args[1].is_constant()) return 0;
    const int64_t divisor = std::abs(atom.args[1].constant());
    if (divisor > kMostPeriod) return 0;
    period = std::lcm(period, divisor * period_of(atom.args[0]));
    if (period > kMostPeriod) return 0;
  }
  return period;
}

/// The number that the symbol is a multiple of where, and only where, the dim is 0: what it is repeats itself
/// then, so that one period tells.
std::optional<int64_t> multiple_where_zero(const te::Dim& dim, const std::string& symbol) {
  const int64_t period = period_of(dim);
  if (period < 2) return std::nullopt;
  const auto value = [&](int64_t at) { return dim.evaluate({{symbol, at}}).value_or(1); };
  int64_t by = 0;
  for (int64_t at = 1; at <= period; ++at) {
    if (value(at) != value(at + period)) return std::nullopt;
    if (by == 0 && value(at) == 0) by = at;
    if ((value(at) == 0) != (by != 0 && at % by == 0)) return std::nullopt;
  }
  return by > 1 ? std::optional(by) : std::nullopt;
}

/// The names of the run's symbols in a package, in which they are none of the free dims'.
std::vector<std::string> run_names(const ir::Graph& graph, const std::vector<std::string>& free_dims) {
  std::vector<std::string> names = ir::run_symbols(graph);
  for (std::string& name : names) {
    while (std::find(free_dims.begin(), free_dims.end(), name) != free_dims.end()) name += "_";
  }
  return names;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool has_generic_kernels(const ir::Graph& graph, const ir::Storage& storage, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  return !storage.is_view(id) && !is_host_node(graph, node) && !ir::has_constant_extents(graph, node);
}

class SymbolicBuilder : private PlanWriter {
public:
  SymbolicBuilder(const ir::Graph& graph, const FreeSymbols& free, const LoopFacts& facts)
      : PlanWriter(graph),
        free_(free),
        table_(*graph.symbols()),
        facts_(facts),
        dims_(joined(free.symbols, ir::run_symbols(graph)),
              joined(free.free_dims, run_names(graph, free.free_dims)), table_.facts_with_zeros()) {
    result_.plan.dims.assign(free.dims.begin(),
                             free.dims.begin() + static_cast<std::ptrdiff_t>(free.symbols.size()));
    small_ = small_dims(free.dims);
    // A sum of what a run counts is none where all of it is.
    if (free.dims.size() > free.symbols.size()) {
      small_.push_back(free.dims);
      std::fill(small_.back().begin() + static_cast<std::ptrdiff_t>(free.symbols.size()), small_.back().end(),
                0);
    }
    add_run_dims();
    result_.plan.multiples.assign(free.symbols.size(), 1);
    result_.plan.minimums.assign(free.symbols.size(), 1);
  }

  GenericModel run(const std::vector<std::string>& output_names) {
    // Every expression first: what they take for granted is known of all formulas then.
    const ir::SymbolTable::ProofsOnly proofs_only(graph_.symbols().get());
    std::vector<NodeProgram> programs;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      const ir::SymbolTable::Origin origin(graph_.symbols().get(), name_of(node));
      programs.push_back(is_generic(static_cast<ir::NodeId>(i)) ? program_of(graph_, node) : NodeProgram{});
    }
    symbols_ = variables_of(table_);
    for (const ir::ValueId input : graph_.inputs())
      plan().inputs.push_back(port(graph_.value(input).name, add_value(input, package::BufferKind::kInput)));
    BranchSteps branches(graph_, plan());
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      try {
        branches.enter(
            static_cast<ir::NodeId>(i), [this](ir::ValueId value) { return condition_buffer(value); },
            [this](package::Step step) { add_step(std::move(step)); });
        const size_t bound = bound_;
        add_node(static_cast<ir::NodeId>(i), programs[i]);
        if (bound_ != bound && branches.is_inside())
          throw Error(ErrorCode::kNotSupported, "a branch binds extents, which it does not where it is left");
      } catch (Error& error) {
        error.add_context("node \"" + name_of(graph_.nodes()[i]) + "\"");
        throw;
      }
    }
    PlanWriter::add_outputs(output_names);
    add_count_guards();
    for (const ir::Guard& guard : table_.guards()) {
      if (is_of_branch(guard, branches)) continue;
      // What was solved for a symbol is the extent of an input, which is compared with those that are given.
      const bool is_run_time = table_.is_run_time(guard);
      const bool is_solved = !is_run_time && guard.relation == ir::Relation::kEqual && guard.holds &&
                             table_.facts_with_zeros().solved(guard.left - guard.right) == te::Dim(0);
      if (!is_solved)
        (is_run_time ? result_.plan.run_guards : result_.plan.guards)
            .push_back({guard_side(guard.left, is_run_time), guard_side(guard.right, is_run_time),
                        relation_of(guard), guard.origin});
      if (is_run_time) continue;
      raise_minimum(guard);
      note_multiple(guard);
    }
    branches.finish(free_.free_dims);
    result_.plan.derived = dims_.derived();
    return std::move(result_);
  }

private:
  void add_run_dims() {
    const std::vector<std::string> names = run_names(graph_, free_.free_dims);
    const std::vector<std::string> symbols = ir::run_symbols(graph_);
    for (size_t i = 0; i < names.size(); ++i) {
      // What counts something is never below 0; of other numbers guards say what they are.
      result_.plan.run_dims.push_back({names[i], -1, 0, table_.find_run_time_symbol(symbols[i])->low,
                                       free_.dims.at(free_.symbols.size() + i)});
    }
  }

  /// What counts something is no more than there is, which kernels rely on.
  void add_count_guards() {
    const std::vector<std::string> bound = ir::run_symbols(graph_);
    for (const ir::RunSymbol& symbol : table_.run_time_symbols()) {
      if (symbol.high && std::find(bound.begin(), bound.end(), symbol.name) != bound.end())
        result_.plan.run_guards.push_back(
            {dims_.extent(te::Dim::symbol(symbol.name)), dims_.extent(*symbol.high), "<=", ""});
    }
  }

  /// Guards of the free dims are over these alone.
  Extent guard_side(const te::Dim& dim, bool is_run_time) const {
    return is_run_time ? dims_.extent(dim) : dims_.free_extent(dim, free_.symbols.size());
  }

  /// Its symbols, which are listed in the order of such nodes, are bound by the step that is next.
  void note_bound(const ir::Node& node) {
    const size_t count = node.attrs.sym_ints_of("extents").size();
    for (size_t i = 0; i < count; ++i) {
      package::RunDim& run = result_.plan.run_dims.at(bound_++);
      run.step = static_cast<int32_t>(plan().steps.size());
      run.element = static_cast<int32_t>(i);
    }
  }

  /// Whether it is checked where a branch is taken, if the graph has that branch still.
  bool is_of_branch(const ir::Guard& guard, BranchSteps& branches) {
    const std::set<int64_t> all = ir::branches_of(guard);
    if (all.empty()) return false;
    if (ir::is_inherited(table_, guard)) return true;
    if (table_.is_run_time(guard))
      throw Error(ErrorCode::kNotSupported,
                  "node \"" + guard.origin + "\": a branch demands something of what a run decides");
    std::vector<ir::BranchSide> sides;
    for (const int64_t branch : all) {
      if (const std::optional<ir::BranchSide> side = side_of(branch)) sides.push_back(*side);
    }
    if (sides.size() > 1)
      throw Error(ErrorCode::kNotSupported,
                  "node \"" + guard.origin +
                      "\": what has to hold is of extents of several branches: " + ir::to_string(guard));
    for (const ir::BranchSide& side : sides)
      branches.add_guard(side, {{guard_side(guard.left, false), guard_side(guard.right, false),
                                 relation_of(guard), guard.origin},
                                guard.demanded});
    return true;
  }

  std::optional<ir::BranchSide> side_of(int64_t branch) const {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op != ir::kChoose || !node.attrs.has(ir::kThenBranch)) continue;
      for (const bool when : {true, false}) {
        if (node.attrs.int_of(when ? ir::kThenBranch : ir::kElseBranch) == branch)
          return ir::BranchSide{node.inputs[0], when};
      }
    }
    return std::nullopt;
  }

  int32_t condition_buffer(ir::ValueId condition) {
    if (buffer_of_[static_cast<size_t>(condition)] < 0 && !graph_.value(condition).constant)
      throw Error(ErrorCode::kNotSupported, "what a branch needs alone stands before its condition");
    return buffer_for(condition);
  }

  void add_step(package::Step step) {
    plan().steps.push_back(std::move(step));
    result_.step_kernels.emplace_back();
  }

  /// Where the guard is that one symbol is the multiple of a number.
  void note_multiple(const ir::Guard& guard) {
    if (guard.relation != ir::Relation::kEqual || !guard.holds) return;
    const te::Dim rest = guard.left - guard.right;
    const std::vector<std::string> symbols = rest.symbols();
    if (symbols.size() != 1) return;
    const auto found = std::find(free_.symbols.begin(), free_.symbols.end(), symbols[0]);
    if (found == free_.symbols.end()) return;
    const std::optional<int64_t> by = multiple_where_zero(rest, symbols[0]);
    int64_t& multiple = result_.plan.multiples[static_cast<size_t>(found - free_.symbols.begin())];
    if (by) multiple = std::lcm(multiple, *by);
  }

  /// Where the guard is that one symbol is so much at least.
  void raise_minimum(const ir::Guard& guard) {
    if (guard.relation == ir::Relation::kEqual) return;
    const int64_t strict = (guard.relation == ir::Relation::kLess) == guard.holds ? 1 : 0;
    const te::Dim room =
        (guard.holds ? guard.right - guard.left : guard.left - guard.right) - te::Dim(strict);
    if (room.terms().size() != 1 || room.terms()[0].factors.size() != 1) return;
    const int64_t factor = room.terms()[0].coefficient;
    const te::DimAtom& atom = *room.terms()[0].factors[0];
    const auto found = std::find(free_.symbols.begin(), free_.symbols.end(), atom.name);
    if (factor <= 0 || atom.kind != te::DimAtom::Kind::kSymbol || found == free_.symbols.end()) return;
    int64_t& minimum = result_.plan.minimums[static_cast<size_t>(found - free_.symbols.begin())];
    if (room.constant() < 0) minimum = std::max(minimum, (-room.constant() + factor - 1) / factor);
  }

  bool is_generic(ir::NodeId id) const { return has_generic_kernels(graph_, storage_, id); }

  int32_t add_buffer(const std::string& name, package::BufferKind kind, DType dtype,
                     const std::vector<te::Dim>& shape) {
    const auto index = static_cast<int32_t>(plan().buffers.size());
    package::Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.dtype = dtype;
    for (size_t d = 0; d < shape.size(); ++d) {
      DimFormula formula = dims_.formula(shape[d]);
      buffer.shape.push_back(dims_.evaluate(formula, free_.dims));
      if (!formula.products.empty())
        result_.plan.buffer_holes.push_back({index, static_cast<int32_t>(d), std::move(formula)});
    }
    buffer.bytes = num_bytes(buffer.shape, dtype);
    plan().buffers.push_back(std::move(buffer));
    return index;
  }

  int32_t add_value(ir::ValueId id, package::BufferKind kind) override {
    const ir::Value& value = graph_.value(id);
    const int32_t index = add_buffer(value.name, kind, value.type.dtype, dims_of(value.type.shape));
    buffer_of_[static_cast<size_t>(id)] = index;
    return index;
  }

  int32_t buffer_for(ir::ValueId id) override {
    const int32_t known = buffer_of_[static_cast<size_t>(id)];
    if (known >= 0) return known;
    const ir::Value& value = graph_.value(id);
    TM_CHECK(value.constant, "value " + value.name + " is read before it is computed");
    return add_constant(id, *value.constant);
  }

  void add_node(ir::NodeId id, const NodeProgram& program) {
    const ir::Node& node = graph_.node(id);
    if (storage_.is_view(id)) return add_views(node);
    if (is_host_node(graph_, node)) {
      if (node.op == ir::kBindExtents) {
        note_bound(node);
        return add_host_step(node);
      }
      check_host_step(node);
      return add_host_step(node);
    }
    if (!is_generic(id)) return add_fixed_step(node);
    const Nests nests = split_nests(program.program);
    GenericGroup group;
    group.node = id;
    for (const ir::ValueId input : program.inputs) group.inputs.push_back(buffer_for(input));
    group.first_step = plan().steps.size();
    NodeNests all{node, program.base.substr(0, program.base.rfind('_')), nests, group.inputs, {}};
    all.made.resize(nests.nests.size());
    for (const Order& each : order_of(nests)) {
      if (each.sum && add_with_sum(all, each.nest, *each.sum)) continue;
      if (each.sum) add_nest(all, *each.sum);
      add_nest(all, each.nest);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const NestSource& source = nests.outputs[i];
      if (source.is_input) throw Error(ErrorCode::kNotSupported, "an output is an input");
      buffer_of_[static_cast<size_t>(node.outputs[i])] =
          all.made[source.index][static_cast<size_t>(source.output)];
      group.outputs.push_back(buffer_for(node.outputs[i]));
    }
    group.end_step = plan().steps.size();
    result_.groups.push_back(std::move(group));
  }

  static void check_host_step(const ir::Node& node) {
    // What is chosen has the extents of its buffer.
    if (node.op == ir::kChoose) return;
    for (const auto& [name, value] : node.attrs.all()) {
      const bool depends =
          std::holds_alternative<ir::SymInt>(value) || std::holds_alternative<ir::SymShape>(value);
      if (depends && ops::is_read(name))
        throw Error(ErrorCode::kNotSupported, "attribute " + name + " of a host step depends on free dims");
    }
  }

  /// The nests of a node on their way into steps.
  struct NodeNests {
    const ir::Node& node;
    const std::string base;  ///< of the kernels' names
    const Nests& nests;
    const std::vector<int32_t>& inputs;           ///< buffers
    std::vector<std::vector<int32_t>> made = {};  ///< by nest: the buffers of its outputs
  };

  void add_made(NodeNests& all, size_t number, package::Step& step) {
    const te::TensorNode& tensor = *all.nests.nests[number].tensor;
    for (size_t i = 0; i < tensor.dtypes.size(); ++i) {
      const Made made = made_of(all.node, all.nests.outputs, number, i, tensor.dtypes[i]);
      all.made[number].push_back(add_buffer(made.name, package::BufferKind::kTemp, made.dtype,
                                            plan::dims_of(tensor.shape, symbols_)));
      step.outputs.push_back(static_cast<int32_t>(step.args.size()));
      step.args.push_back(all.made[number].back());
    }
  }

  void add_nest(NodeNests& all, size_t number) {
    TermVars vars(dims_.free_dims());
    const Nest nest = with_arguments(all.nests.nests[number], symbols_, dims_, vars);
    package::Step step;
    step.args = arguments(nest.sources, all.inputs, all.made);
    add_made(all, number, step);
    add_kernel_step(std::move(step), nest, vars, empties_of(all.nests.nests[number], vars), all);
  }

  /// Nest `number` and the sum that it reads, as one step; false where they cannot be one.
  bool add_with_sum(NodeNests& all, size_t number, size_t sum) {
    TermVars vars(dims_.free_dims());
    const Nest summed = with_arguments(all.nests.nests[sum], symbols_, dims_, vars);
    const Nest finished = with_arguments(all.nests.nests[number], symbols_, dims_, vars);
    const auto input = std::find(finished.sources.begin(), finished.sources.end(), NestSource{false, sum, 0});
    if (input == finished.sources.end()) return false;
    const std::optional<Nest> both =
        with_epilogue(summed, finished, static_cast<size_t>(input - finished.sources.begin()));
    if (!both || !empties_of(all.nests.nests[sum], vars).empty() ||
        !empties_of(all.nests.nests[number], vars).empty())
      return false;
    package::Step step;
    step.args = arguments(both->sources, all.inputs, all.made);
    add_made(all, number, step);
    add_kernel_step(std::move(step), *both, vars, {}, all);
    return true;
  }

  std::vector<EmptyCase> empties_of(const Nest& nest, const TermVars& vars) {
    std::vector<std::vector<DimFormula>> shapes = {formulas_of(nest.tensor->shape)};
    for (const te::Tensor& input : nest.inputs) shapes.push_back(formulas_of(input->shape));
    dims_.derive(small_);
    return empty_cases(nest, shapes, vars, small_);
  }

  std::vector<DimFormula> formulas_of(const std::vector<te::Expr>& shape) {
    std::vector<DimFormula> formulas;
    for (const te::Dim& dim : plan::dims_of(shape, symbols_)) formulas.push_back(dims_.formula(dim));
    return formulas;
  }

  void add_kernel_step(package::Step step, const Nest& whole, TermVars& vars,
                       const std::vector<EmptyCase>& empties, const NodeNests& all) {
    const auto index = static_cast<int32_t>(plan().steps.size());
    Nest nest = with_joined_axes(whole, vars);
    for (const DimFormula& formula : vars.formulas()) {
      result_.plan.step_holes.push_back({index, static_cast<int32_t>(step.dims.size()), formula});
      step.dims.push_back(dims_.evaluate(formula, free_.dims));
    }
    PlanWriter::add_kernel_step(std::move(step), all.base, {std::move(nest), vars, facts_, empties},
                                all.node.origins);
  }

  const FreeSymbols& free_;
  const ir::SymbolTable& table_;
  const LoopFacts facts_;
  DimTable dims_;
  SymbolVars symbols_;
  std::vector<std::vector<int64_t>> small_;  ///< dims
  size_t bound_ = 0;                         ///< of the run's symbols, by the nodes so far
};

}  // namespace

GenericModel plan_symbolic(const ir::Graph& graph, const FreeSymbols& free,
                           const std::vector<std::string>& output_names, const LoopFacts& facts) {
  return SymbolicBuilder(graph, free, facts).run(output_names);
}

void find_kernel_guards(const ir::Graph& graph) {
  const ir::SymbolTable::ProofsOnly proofs_only(graph.symbols().get());
  const ir::Storage storage(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    const ir::SymbolTable::Origin origin(graph.symbols().get(), name_of(node));
    if (has_generic_kernels(graph, storage, static_cast<ir::NodeId>(i))) program_of(graph, node);
  }
}

}  // namespace tensormill::plan
