#include "compiler/schedule/nest.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "compiler/schedule/bounded_reads.h"
#include "compiler/schedule/conditions.h"
#include "compiler/schedule/emit.h"
#include "compiler/schedule/row_parts.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::Stmt;

namespace {

class NestBuilder {
public:
  NestBuilder(const State& state, const Plan& plan, te::BoundsContext& ranges)
      : state_(state),
        plan_(plan),
        ranges_(ranges),
        is_symbolic_(!state.arguments().vars.empty() || !state.knows_extents()) {}

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
    const std::vector<Expr>& conditions = state_.arguments().conditions;
    for (size_t i = conditions.size(); i-- > 0;) body = te::make_if(conditions[i], body);
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
    const StagePlan* plan;  // of the stage, or of a part of a dimension
  };

  const Stage& stage(int index) const { return state_.stages()[static_cast<size_t>(index)]; }

  Stmt nest(int index) {
    const Stage& self = stage(index);
    Loops loops{index, self.leaves, {}, true, &plan_[index]};
    for (const StageAxis& axis : self.axes) loops.vars.push_back(axis.var);
    if (is_symbolic_) bind_definition(self);
    AxisValues values(self, plan_[index], loops.vars);
    return level(loops, values, 0, self.reduction == nullptr);
  }

  // What is known of the variables of a stage's definition.
  void bind_definition(const Stage& self) {
    for (size_t d = 0; d < self.data_vars.size(); ++d)
      ranges_.bind_extent(self.data_vars[d], Expr(0), self.axes[d].extent.expr());
    if (!self.reduction) return;
    for (const te::Axis& axis : self.reduction->axes) ranges_.bind_extent(axis.var, Expr(0), axis.extent);
  }

  // `placed`: update guards that stand around this level already.
  Stmt level(const Loops& loops, AxisValues values, size_t depth, bool initialized,
             std::vector<char> placed = {}) {
    if (is_row(loops, depth)) return row(loops, values, depth, loops.plan->definition[0], true);
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
    const Extent& extent = loops.plan->extent[axis];
    const te::ForKind kind = self.axes[axis].kind;
    const bool lanes = is_lane_axis(self, leaf) && extent > 1;
    values.bind(leaf, extent.is(1) ? Expr(0) : Expr(loops.vars[axis]));
    std::vector<int> known = values.propagate();
    known.insert(known.begin(), leaf);
    const auto inside = [&] {
      Stmt inner = level(loops, values, depth + 1, initialized, placed);
      return loops.main ? with_attached(loops.index, leaf, inner) : inner;
    };
    Stmt inner = by_tiles(loops, values, known, inside);
    for (size_t i = known.size(); i-- > 0;) inner = bind_axis(loops, values, known[i], inner, leaf);
    if (extent.is(1) || lanes) return inner;
    check_kind(self, self.axes[axis], extent);
    return te::make_for(loops.vars[axis], Expr(0), extent.expr(), kind, inner);
  }

  // What stands inside where the axes `known` became known: where they are the numbers of tiles that a
  // partition keeps apart, once for whole tiles and once for others. What that says of the numbers is not
  // taken for granted inside: tasks of a parallel loop are told apart by them.
  template <typename Inside>
  Stmt by_tiles(const Loops& loops, const AxisValues& values, const std::vector<int>& known,
                const Inside& inside) {
    const std::set<const AxisRelation*> before = whole_;
    Expr whole;
    for (const AxisRelation& split : stage(loops.index).relations) {
      const Extent& extent = loops.plan->extent[static_cast<size_t>(split.parent)];
      const bool is_here = std::find(known.begin(), known.end(), split.first) != known.end();
      if (!split.is_partition || !loops.main || !is_here || extent.is_multiple_of(split.factor)) continue;
      const Expr fits = (values.value(split.first) + Expr(1)) * Expr(split.factor) <= extent.expr();
      if (te::decide(fits, ranges_) == false) continue;
      whole = both(whole, fits);
      whole_.insert(&split);
    }
    const Stmt tile = inside();
    whole_ = before;
    return whole ? te::make_if(whole, tile, inside()) : tile;
  }

  // A vectorized reduction axis makes no loop: its iterations are the lanes of the source.
  static bool is_lane_axis(const Stage& self, int axis) {
    const StageAxis& it = self.axes[static_cast<size_t>(axis)];
    return it.reduce && it.kind == te::ForKind::kVectorized;
  }

  static void check_kind(const Stage& self, const StageAxis& axis, const Extent& extent) {
    if (axis.kind == te::ForKind::kVectorized && (extent & (extent - 1)) != 0) {
      reject("axis " + axis.name + " of " + self.name + " is vectorized but has " +
             std::to_string(int64_t{extent}) + " iterations");
    }
  }

  // Puts the let and the guards of an axis that became known around `inner`.
  Stmt bind_axis(const Loops& loops, const AxisValues& values, int axis, Stmt inner, int leaf) {
    const Stage& self = stage(loops.index);
    const StagePlan& plan = *loops.plan;
    const size_t i = static_cast<size_t>(axis);
    std::vector<Expr> guards;
    for (const AxisRelation& relation : self.relations) {
      if (!relation.is_split || relation.parent != axis || whole_.count(&relation) != 0 ||
          plan.extent[i].is_multiple_of(relation.factor))
        continue;
      const Expr tail = plan.is_let[i] ? values.definition(axis) : values.value(axis);
      const Expr end = plan.extent[i].expr();
      guards.push_back(undecided(tail < end) ? values.value(axis) < end : Expr());
    }
    if (i < self.shape.size() && self.attach == AttachKind::kAt) {
      const Expr position = plan.region_min[i] + values.value(axis);
      guards.push_back(guard(position < self.axes[i].extent.expr()));
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
    return known ? !*known : !is_symbolic_ || !ranges_.proves(condition);
  }
  // The condition in normal form, or null when it always holds.
  Expr guard(const Expr& condition) const {
    if (!undecided(condition)) return {};
    return te::make(condition->op,
                    {te::normalize(condition->args[0], ranges_), te::normalize(condition->args[1], ranges_)});
  }

  Stmt init_nest(const Loops& loops, const AxisValues& values, size_t depth) {
    const Stage& self = stage(loops.index);
    Loops init{loops.index, {}, loops.vars, false, loops.plan};
    for (size_t i = depth; i < loops.leaves.size(); ++i) {
      if (!self.axes[static_cast<size_t>(loops.leaves[i])].reduce) init.leaves.push_back(loops.leaves[i]);
    }
    for (size_t i = 0; i < init.vars.size(); ++i) {
      if (values.known(static_cast<int>(i))) continue;
      init.vars[i] = te::make_var(self.axes[i].name);
      ranges_.bind(init.vars[i], *ranges_.find(self.axes[i].var));
    }
    AxisValues fresh(self, *loops.plan, init.vars);
    for (size_t i = 0; i < init.vars.size(); ++i) {
      if (values.known(static_cast<int>(i)))
        fresh.bind(static_cast<int>(i), values.value(static_cast<int>(i)));
    }
    return level(init, std::move(fresh), 0, true);
  }

  Point point_of(const Loops& loops, const AxisValues& values) const {
    const Stage& self = stage(loops.index);
    const StagePlan& plan = *loops.plan;
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
    point.values = bounded_values(loops);
    if (!self.reduction) return emit_body(state_, plan_, loops.index, point);
    point.kept = guards_of_lanes(loops, values);
    return emit_update(state_, plan_, loops.index, point);
  }

  // What is computed, its reads in bounds whatever the extents are; empty where they are numbers.
  std::vector<Expr> bounded_values(const Loops& loops) const {
    if (!is_symbolic_) return {};
    const Stage& self = stage(loops.index);
    const auto buffer = [this](const te::Tensor& tensor) {
      const int input = state_.input_of(tensor.get());
      return input < 0 ? te::Buffer() : plan_.inputs()[static_cast<size_t>(input)];
    };
    const bool has_lanes = !self.leaves.empty() && self.axes[static_cast<size_t>(self.leaves.back())].kind ==
                                                       te::ForKind::kVectorized;
    BoundedReads reads(ranges_, {buffer}, has_lanes);
    std::vector<Expr> result;
    for (const Expr& expr : loops.plan->definition) result.push_back(reads.run(expr));
    return result;
  }

  // Whether the loops from here on are those of a specialized dimension.
  bool is_row(const Loops& loops, size_t depth) const {
    const Stage& self = stage(loops.index);
    return self.specialized >= 0 && loops.main && loops.plan == &plan_[loops.index] &&
           depth + innermost_leaves(self, self.specialized) == self.leaves.size();
  }

  Expr end_of(const Loops& loops) const {
    return loops.plan->extent[static_cast<size_t>(stage(loops.index).specialized)].expr();
  }

  // A specialized dimension, of which `body` is computed: what a condition of the other dimensions chooses is
  // asked once, and what one of the place in the row chooses has loops of its own.
  Stmt row(const Loops& loops, const AxisValues& values, size_t depth, const Expr& body, bool may_cut) {
    const Stage& self = stage(loops.index);
    std::vector<te::Axis> axes;
    for (size_t d = 0; d < self.shape.size(); ++d)
      axes.push_back({self.data_vars[d], self.axes[d].extent.expr()});
    std::swap(axes[static_cast<size_t>(self.specialized)], axes.back());
    const std::optional<RowParts> parts = row_parts_of(body, axes, ranges_);
    if (!parts || (parts->cuts_rows() && !may_cut))
      return part_of_row(loops, values, depth, body, Expr(0), end_of(loops));
    const te::BoundsContext before = ranges_;
    if (parts->rows) ranges_.assume(parts->rows);
    const Stmt inside = parts->cuts_rows() ? cut_row(loops, values, depth, body, *parts)
                                           : row(loops, values, depth, parts->inside, may_cut);
    ranges_ = before;
    if (!parts->rows) return inside;
    ranges_.assume(te::logical_not(parts->rows));
    const Stmt outside = row(loops, values, depth, parts->outside, may_cut);
    ranges_ = before;
    return te::make_if(*bound_guard(loops, values, parts->rows), inside, outside);
  }

  // Three parts where they follow each other within the row, which is asked once; else one.
  Stmt cut_row(const Loops& loops, const AxisValues& values, size_t depth, const Expr& body,
               const RowParts& parts) {
    const Expr first(0), last = end_of(loops);
    const bool is_first = !parts.begin || ranges_.proves(parts.begin <= first);
    const Expr begin = is_first ? first : parts.begin, end = parts.end ? parts.end : last;
    const te::BoundsContext before = ranges_;
    Expr fits;
    for (const Expr& condition : {begin >= first, begin <= end, end <= last}) {
      if (ranges_.proves(condition)) continue;
      ranges_.assume(condition);
      fits = both(fits, condition);
    }
    const Stmt cut = te::make_seq({part_of_row(loops, values, depth, parts.outside, first, begin),
                                   part_of_row(loops, values, depth, parts.inside, begin, end),
                                   part_of_row(loops, values, depth, parts.outside, end, last)});
    ranges_ = before;
    return fits ? te::make_if(fits, cut, part_of_row(loops, values, depth, body, first, last)) : cut;
  }

  // Elements [begin, end) of a row.
  Stmt part_of_row(const Loops& loops, const AxisValues& values, size_t depth, const Expr& body,
                   const Expr& begin, const Expr& end) {
    const Stage& self = stage(loops.index);
    const size_t d = static_cast<size_t>(self.specialized);
    const Expr count = te::simplify(end - begin, ranges_);
    if (te::is_int(count, 0)) return te::make_seq({});
    const te::BoundsContext before = ranges_;
    StagePlan plan = *loops.plan;
    plan.region[d] = Extent(count);
    plan.region_min[d] = begin;
    plan.extent = axis_extents(self, plan.region);
    for (size_t i = 0; i < self.axes.size(); ++i) {
      ranges_.unbind(self.axes[i].var);
      bind_axis_range(ranges_, self.axes[i].var, plan.extent[i]);
    }
    ranges_.unbind(self.data_vars[d]);
    ranges_.bind_extent(self.data_vars[d], begin, count);
    plan.definition = {simple_indices(ranges_).run(body)};
    Loops own = loops;
    own.plan = &plan;
    const Stmt result = level(own, values, depth, true);
    ranges_ = before;
    return result;
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
  const bool is_symbolic_;               // extents, or what is computed, depend on arguments
  std::set<const AxisRelation*> whole_;  // splits of which the tile that is being made is whole
};

}  // namespace

te::Function build_function(const State& state, const std::string& name) {
  te::BoundsContext ranges;
  const Plan plan(state, ranges);
  te::Function function;
  function.name = name;
  function.dims = state.arguments().vars;
  for (const te::Buffer& input : plan.inputs()) function.parameters.push_back({input, false});
  for (const te::Tensor& output : state.output_tensors()) {
    function.parameters.push_back({plan[state.stage_of(output.get())].buffers[0], true});
  }
  function.aliases.assign(function.parameters.size(), -1);
  function.body = NestBuilder(state, plan, ranges).build();
  return function;
}

te::Function apply(const te::Program& program, const Schedule& schedule, const std::string& name,
                   const Arguments& arguments) {
  State state(program, arguments);
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
