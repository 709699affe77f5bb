#include "compiler/schedule/nest.h"

#include <functional>
#include <optional>

#include "compiler/schedule/emit.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::Stmt;

namespace {

class NestBuilder {
public:
  NestBuilder(const State& state, const Plan& plan, te::BoundsContext& ranges)
      : state_(state), plan_(plan), ranges_(ranges) {}

  Stmt build() {
    std::vector<Stmt> nests;
    std::vector<te::Buffer> buffers;
    for (int index : plan_.order()) {
      if (stage(index).attach != AttachKind::kRoot) continue;
      for (const te::Buffer& buffer : plan_[index].buffers) {
        if (buffer->scope != te::Scope::kParameter) buffers.push_back(buffer);
      }
      nests.push_back(nest(index));
    }
    Stmt body = te::make_seq(std::move(nests));
    for (size_t i = buffers.size(); i-- > 0;) body = te::make_allocate(buffers[i], body);
    return body;
  }

private:
  // One nest of loops over `leaves` of a stage; the main nest uses the axes' own variables, others fresh
  // ones.
  struct Loops {
    int index;
    std::vector<int> leaves;
    std::vector<te::Var> vars;
    bool main;
  };

  const Stage& stage(int index) const { return state_.stages()[static_cast<size_t>(index)]; }

  Stmt nest(int index) {
    const Stage& self = stage(index);
    Loops loops{index, self.leaves, {}, true};
    for (const StageAxis& axis : self.axes) loops.vars.push_back(axis.var);
    AxisValues values(self, plan_[index], loops.vars);
    return level(loops, values, 0, self.reduction == nullptr);
  }

  // `placed`: update guards that stand around this level already.
  Stmt level(const Loops& loops, AxisValues values, size_t depth, bool initialized,
             std::vector<char> placed = {}) {
    std::vector<Expr> due;
    if (initialized && loops.main) due = due_guards(loops, values, placed);
    Stmt inner = loop_level(loops, std::move(values), depth, initialized, placed);
    for (size_t i = due.size(); i-- > 0;) inner = te::make_if(due[i], inner);
    return inner;
  }

  Stmt loop_level(const Loops& loops, AxisValues values, size_t depth, bool initialized,
                  const std::vector<char>& placed) {
    const Stage& self = stage(loops.index);
    const bool innermost = depth == loops.leaves.size();
    if (!initialized && (innermost || self.axes[static_cast<size_t>(loops.leaves[depth])].reduce)) {
      Stmt init = init_nest(loops, values, depth);
      return te::make_seq({init, level(loops, std::move(values), depth, true, placed)});
    }
    if (innermost)
      return loops.main ? leaf_statement(loops, values)
                        : emit_init(state_, plan_, loops.index, point_of(loops, values));
    const int leaf = loops.leaves[depth];
    const size_t axis = static_cast<size_t>(leaf);
    const int64_t extent = plan_[loops.index].extent[axis];
    const te::ForKind kind = self.axes[axis].kind;
    const bool lanes = is_lane_axis(self, leaf) && extent > 1;
    values.bind(leaf, extent == 1 ? Expr(0) : Expr(loops.vars[axis]));
    std::vector<int> known = values.propagate();
    known.insert(known.begin(), leaf);
    Stmt inner = level(loops, values, depth + 1, initialized, placed);
    if (loops.main) inner = with_attached(loops.index, leaf, inner);
    for (size_t i = known.size(); i-- > 0;) inner = bind_axis(loops, values, known[i], inner, leaf);
    if (extent == 1 || lanes) return inner;
    check_kind(self, self.axes[axis], extent);
    return te::make_for(loops.vars[axis], Expr(0), Expr(extent), kind, inner);
  }

  // A vectorized reduction axis makes no loop: its iterations are the lanes of the source.
  static bool is_lane_axis(const Stage& self, int axis) {
    const StageAxis& it = self.axes[static_cast<size_t>(axis)];
    return it.reduce && it.kind == te::ForKind::kVectorized;
  }

  static void check_kind(const Stage& self, const StageAxis& axis, int64_t extent) {
    if (axis.kind == te::ForKind::kVectorized && (extent & (extent - 1)) != 0) {
      reject("axis " + axis.name + " of " + self.name + " is vectorized but has " + std::to_string(extent) +
             " iterations");
    }
  }

  // Puts the let and the guards of an axis that became known around `inner`.
  Stmt bind_axis(const Loops& loops, const AxisValues& values, int axis, Stmt inner, int leaf) {
    const Stage& self = stage(loops.index);
    const StagePlan& plan = plan_[loops.index];
    const size_t i = static_cast<size_t>(axis);
    std::vector<Expr> guards;
    for (const AxisRelation& relation : self.relations) {
      if (!relation.is_split || relation.parent != axis || plan.extent[i] % relation.factor == 0) continue;
      const Expr tail = plan.is_let[i] ? values.definition(axis) : values.value(axis);
      guards.push_back(undecided(tail < Expr(plan.extent[i])) ? values.value(axis) < Expr(plan.extent[i])
                                                              : Expr());
    }
    if (i < self.shape.size() && self.attach == AttachKind::kAt) {
      const Expr position = plan.region_min[i] + values.value(axis);
      guards.push_back(guard(position < Expr(self.shape[i])));
      guards.push_back(guard(position >= Expr(0)));
    }
    for (size_t g = guards.size(); g-- > 0;) {
      if (!guards[g]) continue;
      if (is_lane_axis(self, leaf) && te::mentions(guards[g], loops.vars[static_cast<size_t>(leaf)]))
        reject("the vectorized reduction axis of " + self.name + " has a tail");
      inner = te::make_if(guards[g], inner);
    }
    if (axis != leaf && plan.is_let[i]) inner = te::make_let(loops.vars[i], values.definition(axis), inner);
    return inner;
  }

  bool undecided(const Expr& condition) const {
    const std::optional<bool> known = te::decide(condition, ranges_);
    return !known || !*known;
  }
  // The condition in normal form, or null when it always holds.
  Expr guard(const Expr& condition) const {
    if (!undecided(condition)) return {};
    return te::make(condition->op,
                    {te::normalize(condition->args[0], ranges_), te::normalize(condition->args[1], ranges_)});
  }

  Stmt init_nest(const Loops& loops, const AxisValues& values, size_t depth) {
    const Stage& self = stage(loops.index);
    Loops init{loops.index, {}, loops.vars, false};
    for (size_t i = depth; i < loops.leaves.size(); ++i) {
      if (!self.axes[static_cast<size_t>(loops.leaves[i])].reduce) init.leaves.push_back(loops.leaves[i]);
    }
    for (size_t i = 0; i < init.vars.size(); ++i) {
      if (values.known(static_cast<int>(i))) continue;
      init.vars[i] = te::make_var(self.axes[i].name);
      ranges_.bind(init.vars[i], *ranges_.find(self.axes[i].var));
    }
    AxisValues fresh(self, plan_[loops.index], init.vars);
    for (size_t i = 0; i < init.vars.size(); ++i) {
      if (values.known(static_cast<int>(i)))
        fresh.bind(static_cast<int>(i), values.value(static_cast<int>(i)));
    }
    return level(init, std::move(fresh), 0, true);
  }

  Point point_of(const Loops& loops, const AxisValues& values) const {
    const Stage& self = stage(loops.index);
    const StagePlan& plan = plan_[loops.index];
    Point point;
    for (size_t d = 0; d < self.shape.size(); ++d) {
      point.data.push_back(te::normalize(plan.region_min[d] + values.value(static_cast<int>(d)), ranges_));
    }
    for (int r = static_cast<int>(self.shape.size()); r < self.num_roots; ++r) {
      if (values.known(r)) point.reduce.push_back(te::normalize(values.value(r), ranges_));
    }
    const int last = self.leaves.empty() ? -1 : self.leaves.back();
    if (loops.main && last >= 0 && is_lane_axis(self, last) && plan.extent[static_cast<size_t>(last)] > 1) {
      point.lane = loops.vars[static_cast<size_t>(last)];
      point.lanes = static_cast<int>(plan.extent[static_cast<size_t>(last)]);
    }
    return point;
  }

  Stmt leaf_statement(const Loops& loops, const AxisValues& values) {
    const Stage& self = stage(loops.index);
    Point point = point_of(loops, values);
    if (!self.reduction) return emit_body(state_, plan_, loops.index, point);
    point.kept = guards_of_lanes(loops, values);
    return emit_update(state_, plan_, loops.index, point);
  }

  // The update's guards whose variables are all known here and which stand nowhere outside, undecided ones
  // only.
  std::vector<Expr> due_guards(const Loops& loops, const AxisValues& values,
                               std::vector<char>& placed) const {
    const Stage& self = stage(loops.index);
    placed.resize(self.update_guards.size(), 0);
    std::vector<Expr> due;
    for (size_t g = 0; g < self.update_guards.size(); ++g) {
      if (placed[g]) continue;
      const std::optional<Expr> condition = bound_guard(loops, values, self.update_guards[g]);
      if (!condition) continue;
      placed[g] = 1;
      if (const Expr needed = guard(*condition)) due.push_back(needed);
    }
    return due;
  }

  // The update's guards that are not the same for all lanes of a register; null where there are none.
  Expr guards_of_lanes(const Loops& loops, const AxisValues& values) const {
    const Stage& self = stage(loops.index);
    if (self.leaves.empty()) return {};
    const size_t last = static_cast<size_t>(self.leaves.back());
    if (self.axes[last].kind != te::ForKind::kVectorized) return {};
    Expr all;
    for (const Expr& update_guard : self.update_guards) {
      const std::optional<Expr> condition = bound_guard(loops, values, update_guard);
      const Expr needed = condition ? guard(*condition) : Expr();
      if (!needed || !te::mentions(needed, loops.vars[last])) continue;
      if (self.axes[last].reduce)
        reject("the vectorized reduction axis of " + self.name + " has a condition");
      if (self.in_registers) all = all ? te::logical_and(all, needed) : needed;
    }
    return all;
  }

  // The guard over the loops' variables; nothing while one of its own is not known.
  std::optional<Expr> bound_guard(const Loops& loops, const AxisValues& values, const Expr& condition) const {
    const Stage& self = stage(loops.index);
    const StagePlan& plan = plan_[loops.index];
    std::vector<te::Var> vars;
    std::vector<Expr> positions;
    for (int i = 0; i < self.num_roots; ++i) {
      const size_t d = static_cast<size_t>(i), dims = self.shape.size();
      const te::Var& var = d < dims ? self.data_vars[d] : self.reduction->axes[d - dims].var;
      if (!te::mentions(condition, var)) continue;
      if (!values.known(i)) return std::nullopt;
      vars.push_back(var);
      positions.push_back(d < dims ? plan.region_min[d] + values.value(i) : values.value(i));
    }
    return substitute_all(condition, vars, positions);
  }

  // The stages that are computed at this loop, then `inner`.
  Stmt with_attached(int index, int leaf, Stmt inner) {
    std::vector<Stmt> statements;
    std::vector<te::Buffer> buffers;
    for (int producer : plan_.order()) {
      const Stage& other = stage(producer);
      if (other.attach != AttachKind::kAt || other.attach_stage != index || other.attach_axis != leaf)
        continue;
      statements.push_back(nest(producer));
      buffers.insert(buffers.end(), plan_[producer].buffers.begin(), plan_[producer].buffers.end());
    }
    if (statements.empty()) return inner;
    statements.push_back(std::move(inner));
    Stmt result = te::make_seq(std::move(statements));
    for (size_t i = buffers.size(); i-- > 0;) result = te::make_allocate(buffers[i], result);
    return result;
  }

  const State& state_;
  const Plan& plan_;
  te::BoundsContext& ranges_;
};

}  // namespace

te::Function build_function(const State& state, const std::string& name) {
  te::BoundsContext ranges;
  const Plan plan(state, ranges);
  te::Function function;
  function.name = name;
  for (const te::Buffer& input : plan.inputs()) function.parameters.push_back({input, false});
  for (const te::Tensor& output : state.output_tensors()) {
    function.parameters.push_back({plan[state.stage_of(output.get())].buffers[0], true});
  }
  function.aliases.assign(function.parameters.size(), -1);
  function.body = NestBuilder(state, plan, ranges).build();
  return function;
}

te::Function apply(const te::Program& program, const Schedule& schedule, const std::string& name) {
  State state(program);
  for (const Step& step : schedule.steps) {
    try {
      state.apply(step);
    } catch (Error& error) {
      error.add_context("step '" + print(Schedule{{step}}).substr(0, print(Schedule{{step}}).size() - 1) +
                        "'");
      throw;
    }
  }
  return build_function(state, name);
}

}  // namespace tensormill::schedule
