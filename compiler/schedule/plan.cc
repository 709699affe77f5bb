#include <algorithm>
#include <functional>
#include <set>

#include "compiler/schedule/nest.h"
#include "compiler/schedule/region.h"
#include "compiler/te/rewrite_reads.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

// Argument values that loops may assume.
constexpr int64_t kLargestArgument = int64_t{1} << 40;

const Stage& stage_at(const State& state, int index) { return state.stages()[static_cast<size_t>(index)]; }

// Replaces reads of inlined stages by their bodies. Equal reads give the same node, so that what a value is
// used for twice is computed once.
class Expander {
public:
  Expander(const State& state, const std::vector<StagePlan>& plans)
      : state_(state),
        plans_(plans),
        rewriter_([this](const Expr& expr, const std::vector<Expr>& index) { return read(expr, index); }) {}
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;
  Expr run(const Expr& expr) { return rewriter_.run(expr); }

private:
  Expr read(const Expr& expr, const std::vector<Expr>& index) {
    const int producer = state_.stage_of(expr->tensor.get());
    if (producer < 0 || stage_at(state_, producer).attach != AttachKind::kInline) {
      return te::read(expr->tensor, index, expr->output);
    }
    for (const Known& known : known_) {
      if (known.producer != producer || known.output != expr->output) continue;
      bool same = true;
      for (size_t i = 0; i < index.size() && same; ++i) same = te::equal(known.index[i], index[i]);
      if (same) return known.value;
    }
    const Expr& body = plans_[static_cast<size_t>(producer)].definition[static_cast<size_t>(expr->output)];
    const std::vector<te::Var>& axes = stage_at(state_, producer).data_vars;
    Expr value = te::with_checks_of(substitute_all(body, axes, index), body, axes, index);
    known_.push_back({producer, expr->output, index, value});
    return value;
  }

  struct Known {
    int producer, output;
    std::vector<Expr> index;
    Expr value;
  };
  const State& state_;
  const std::vector<StagePlan>& plans_;
  std::vector<Known> known_;
  te::ReadRewriter rewriter_;
};

std::string identifier(const std::string& name) {
  std::string result;
  for (char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    result += letter || (c >= '0' && c <= '9' && !result.empty()) ? c : '_';
  }
  return result.empty() ? "t" : result;
}

// Whether both parts of a split are parts of fused axes, of which no loop is written out or vectorized: the
// index along the split axis is then worked out from the loops' numbers, and does not vary inside of a tile.
bool is_fused_away(const Stage& stage, const AxisRelation& split) {
  std::vector<char> derived(stage.axes.size(), 0);
  derived[static_cast<size_t>(split.first)] = derived[static_cast<size_t>(split.second)] = 1;
  bool fused_first = false, fused_second = false;
  for (const AxisRelation& relation : stage.relations) {
    const size_t parent = static_cast<size_t>(relation.parent), first = static_cast<size_t>(relation.first),
                 second = static_cast<size_t>(relation.second);
    if (relation.is_split) {
      if (derived[parent]) derived[first] = derived[second] = 1;
      continue;
    }
    if (derived[first] || derived[second]) derived[parent] = 1;
    fused_first = fused_first || relation.first == split.first || relation.second == split.first;
    fused_second = fused_second || relation.first == split.second || relation.second == split.second;
  }
  for (const int leaf : stage.leaves) {
    const te::ForKind kind = stage.axes[static_cast<size_t>(leaf)].kind;
    const bool plain = kind == te::ForKind::kSerial || kind == te::ForKind::kParallel;
    if (derived[static_cast<size_t>(leaf)] && !plain) return false;
  }
  return fused_first && fused_second;
}

// Whether the axis is the outer part of a dimension that was split.
bool outer_of_dimension(const Stage& stage, int axis) {
  return std::any_of(stage.relations.begin(), stage.relations.end(), [&](const AxisRelation& split) {
    return split.is_split && split.first == axis && static_cast<size_t>(split.parent) < stage.shape.size();
  });
}

// Whether an axis gets a let: a fused axis with a tail (its name carries the tighter range), and a part of a
// fused axis that is the outer of an uneven split (what the partition pass looks for), and a dimension in
// unequal parts that are fused with others (its guard bounds the name), and parts of a fused axis whose
// extent is not known, and the tile's number of a dimension whose tiles are fused with other loops (borders
// are cut off by it).
std::vector<char> let_axes(const Stage& stage, const std::vector<Extent>& extent) {
  std::vector<char> is_let(stage.axes.size(), 0);
  for (const AxisRelation& fuse : stage.relations) {
    if (fuse.is_split || extent[static_cast<size_t>(fuse.parent)].is_known()) continue;
    is_let[static_cast<size_t>(fuse.first)] = is_let[static_cast<size_t>(fuse.second)] = 1;
  }
  for (const AxisRelation& split : stage.relations) {
    if (!split.is_split) continue;
    if (stage.axes[static_cast<size_t>(split.first)].kind == te::ForKind::kParallel) {
      is_let[static_cast<size_t>(split.parent)] = 1;
    }
    const bool even = extent[static_cast<size_t>(split.parent)].is_multiple_of(split.factor);
    if (!even && static_cast<size_t>(split.parent) < stage.shape.size() && is_fused_away(stage, split))
      is_let[static_cast<size_t>(split.parent)] = 1;
    if (outer_of_dimension(stage, split.parent) && is_fused_away(stage, split))
      is_let[static_cast<size_t>(split.parent)] = 1;
    for (const AxisRelation& fuse : stage.relations) {
      // Blocks of a fused axis that are split or fused again: dimensions are worked out from the block's
      // number.
      if (!fuse.is_split && fuse.parent == split.parent && stage.leaf_position(split.first) < 0)
        is_let[static_cast<size_t>(split.first)] = 1;
      if (even) continue;
      if (fuse.is_split) continue;
      if (fuse.parent == split.parent) is_let[static_cast<size_t>(split.parent)] = 1;
      if (fuse.first == split.first || fuse.second == split.first)
        is_let[static_cast<size_t>(split.first)] = 1;
    }
  }
  for (size_t i = 0; i < extent.size(); ++i) {
    if (extent[i].is(1)) is_let[i] = 0;
  }
  return is_let;
}

}  // namespace

Plan::Plan(const State& state, te::BoundsContext& ranges)
    : state_(state), ranges_(ranges), plans_(state.stages().size()) {
  for (const te::Var& var : state.arguments().vars) ranges_.bind(var, {0, kLargestArgument});
  for (const Expr& condition : state.arguments().conditions) ranges_.assume(condition);
  for (const te::Tensor& input : state.program().inputs) {
    inputs_.push_back(
        te::make_buffer(identifier(input->name), input->dtypes[0], input->shape, te::Scope::kParameter));
  }
  expand_definitions();
  for (size_t i = order_.size(); i-- > 0;) {
    infer_region(order_[i]);
    plan_axes(order_[i]);
  }
  for (int stage : order_) make_buffers(stage);
}

void Plan::expand_definitions() {
  for (int index : state_.order()) {
    const Stage& stage = stage_at(state_, index);
    Expander expander(state_, plans_);
    for (const Expr& expr : schedule::definition(stage)) {
      plans_[static_cast<size_t>(index)].definition.push_back(expander.run(expr));
    }
    if (stage.attach != AttachKind::kInline) order_.push_back(index);
  }
}

namespace {

// The loop axes that enclose the point where a stage is computed, as (stage, leaf position) pairs.
std::set<const te::VarNode*> fixed_variables(const State& state, const Stage& attached) {
  std::set<const te::VarNode*> fixed;  // looked up, never iterated
  const Stage* stage = &attached;
  while (stage->attach == AttachKind::kAt) {
    const Stage& outer = stage_at(state, stage->attach_stage);
    const int last = outer.leaf_position(stage->attach_axis);
    if (last < 0) reject("stage " + stage->name + " is computed at a loop that is gone");
    for (int i = 0; i <= last; ++i)
      fixed.insert(outer.axes[static_cast<size_t>(outer.leaves[static_cast<size_t>(i)])].var.get());
    // Names that follow from fixed loops alone are fixed as well.
    for (size_t round = 0; round < outer.relations.size(); ++round) {
      for (const AxisRelation& relation : outer.relations) {
        const auto var = [&](int axis) { return outer.axes[static_cast<size_t>(axis)].var.get(); };
        if (relation.is_split) {
          if (fixed.count(var(relation.first)) && fixed.count(var(relation.second)))
            fixed.insert(var(relation.parent));
        } else if (fixed.count(var(relation.parent))) {
          fixed.insert(var(relation.first));
          fixed.insert(var(relation.second));
        }
      }
    }
    stage = &outer;
  }
  return fixed;
}

// Names the dimensions of `stage` that are fixed where a guarded sum is computed: the guards bound the index
// as it stands, which folding it into the loops' numbers would hide.
void name_guarded_dimensions(const State& state, int index, const std::vector<Extent>& extent,
                             std::vector<char>& is_let) {
  const Stage& stage = stage_at(state, index);
  for (const Stage& other : state.stages()) {
    if (other.attach != AttachKind::kAt || other.attach_stage != index || other.update_guards.empty())
      continue;
    const std::set<const te::VarNode*> fixed = fixed_variables(state, other);
    for (size_t d = 0; d < stage.shape.size(); ++d) {
      const bool leaf = stage.leaf_position(static_cast<int>(d)) >= 0;
      if (!leaf && !extent[d].is(1) && fixed.count(stage.axes[d].var.get())) is_let[d] = 1;
    }
  }
}

}  // namespace

void Plan::plan_axes(int index) {
  const Stage& stage = stage_at(state_, index);
  StagePlan& plan = plans_[static_cast<size_t>(index)];
  plan.extent = axis_extents(stage, plan.region);
  plan.is_let = let_axes(stage, plan.extent);
  name_guarded_dimensions(state_, index, plan.extent, plan.is_let);
  std::vector<te::Var> names;
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    names.push_back(stage.axes[i].var);
    bind_axis_range(ranges_, stage.axes[i].var, plan.extent[i]);
  }
  AxisValues values(stage, plan, names);
  for (int leaf : stage.leaves) {
    const bool single = plan.extent[static_cast<size_t>(leaf)].is(1);
    values.bind(leaf, single ? Expr(0) : Expr(stage.axes[static_cast<size_t>(leaf)].var));
  }
  values.propagate();
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    TM_CHECK(values.known(static_cast<int>(i)),
             "axis " + stage.axes[i].name + " of " + stage.name + " has no value");
    plan.value.push_back(values.value(static_cast<int>(i)));
    plan.named.push_back(te::normalize(values.definition(static_cast<int>(i)), ranges_));
  }
  for (int at = index; at >= 0;) {
    const Stage& outer = stage_at(state_, at);
    if (outer.attach == AttachKind::kRoot) {
      const bool any = !outer.leaves.empty();
      const size_t leaf = any ? static_cast<size_t>(outer.leaves[0]) : 0;
      plan.inside_parallel = any && outer.axes[leaf].kind == te::ForKind::kParallel &&
                             !plans_[static_cast<size_t>(at)].extent[leaf].is(1);
      break;
    }
    at = outer.attach_stage;
  }
}

namespace {

// Whether `consumer` runs inside the loop at which `stage` is computed.
bool runs_inside(const State& state, int consumer, const Stage& stage) {
  const Stage& target = stage_at(state, stage.attach_stage);
  const int place = target.leaf_position(stage.attach_axis);
  if (consumer == stage.attach_stage) return true;
  for (const Stage* at = &stage_at(state, consumer); at->attach == AttachKind::kAt;
       at = &stage_at(state, at->attach_stage)) {
    if (at->attach_stage == stage.attach_stage) return target.leaf_position(at->attach_axis) >= place;
  }
  return false;
}

void collect_indices(const Expr& expr, const te::TensorNode* tensor, std::vector<std::vector<Expr>>& found,
                     std::set<const te::ExprNode*>& seen) {
  if (!seen.insert(expr.get()).second) return;
  if (expr->op == ExprOp::kRead && expr->tensor.get() == tensor) found.push_back(expr->args);
  for (const Expr& arg : expr->args) collect_indices(arg, tensor, found, seen);
}

}  // namespace

namespace {

// `expr` with the names of axes that follow from relaxed loops written out: what a name stands for moves with
// them.
Expr written_out(Expr expr, const Stage& stage, const StagePlan& plan,
                 const std::function<bool(const te::Var&)>& relaxed) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < stage.axes.size(); ++i) {
      const te::Var& var = stage.axes[i].var;
      if (!plan.is_let[i] || !relaxed(var) || !te::mentions(expr, var)) continue;
      if (plan.named[i]->op == ExprOp::kVar && plan.named[i]->var == var) continue;  // a loop's own variable
      expr = te::substitute(expr, var, plan.named[i]);
      changed = true;
    }
  }
  return expr;
}

}  // namespace

Expr Plan::without_names(Expr expr, const std::function<bool(const te::Var&)>& which) const {
  for (int index : order_) {
    const StagePlan& plan = plans_[static_cast<size_t>(index)];
    if (!plan.named.empty() && plan.named.size() == plan.is_let.size())
      expr = written_out(expr, stage_at(state_, index), plan, which);
  }
  return expr;
}

void Plan::infer_region(int index) {
  const Stage& stage = stage_at(state_, index);
  StagePlan& plan = plans_[static_cast<size_t>(index)];
  for (size_t d = 0; d < stage.shape.size(); ++d) plan.region.push_back(stage.axes[d].extent);
  plan.region_min.assign(stage.shape.size(), Expr(0));
  if (stage.attach != AttachKind::kAt) return;
  const std::set<const te::VarNode*> fixed = fixed_variables(state_, stage);
  const auto relaxed = [&](const te::Var& var) { return fixed.count(var.get()) == 0; };
  std::vector<std::optional<SymbolicInterval>> needed(stage.shape.size());
  std::vector<char> unknown(stage.shape.size(), 0), first(stage.shape.size(), 1);
  for (int user : order_) {
    const Stage& consumer = stage_at(state_, user);
    const StagePlan& consumer_plan = plans_[static_cast<size_t>(user)];
    std::vector<std::vector<Expr>> indices;
    std::set<const te::ExprNode*> seen;
    for (const Expr& expr : consumer_plan.definition)
      collect_indices(expr, stage.tensor.get(), indices, seen);
    if (indices.empty()) continue;
    if (!runs_inside(state_, user, stage))
      reject("stage " + consumer.name + " reads " + stage.name + " outside the loop where it is computed");
    std::vector<te::Var> vars = consumer.data_vars;
    std::vector<Expr> values;
    for (size_t d = 0; d < vars.size(); ++d)
      values.push_back(consumer_plan.region_min[d] + consumer_plan.value[d]);
    if (consumer.reduction) {
      for (size_t r = 0; r < consumer.reduction->axes.size(); ++r) {
        vars.push_back(consumer.reduction->axes[r].var);
        values.push_back(consumer_plan.value[consumer.shape.size() + r]);
      }
    }
    for (const std::vector<Expr>& read : indices) {
      for (size_t d = 0; d < read.size(); ++d) {
        const Expr at = without_names(substitute_all(read[d], vars, values), relaxed);
        std::optional<SymbolicInterval> part = interval_of(at, relaxed, ranges_);
        if (!part) unknown[d] = 1;
        if (unknown[d]) continue;
        needed[d] = needed[d] ? unite(*needed[d], *part, ranges_) : part;
      }
    }
  }
  for (size_t d = 0; d < stage.shape.size(); ++d) {
    if (unknown[d] || !needed[d]) continue;
    te::Linear length = needed[d]->high;
    length.add(needed[d]->low, -1);
    const std::optional<te::IndexRange> range = te::range_of(length, ranges_);
    if (!range || range->high < 0) continue;
    if (stage.shape[d] != kUnknown && range->high + 1 >= stage.shape[d]) continue;
    // A part that is no vector is not cut out of one.
    if (stage.axes[d].kind == te::ForKind::kVectorized && ((range->high + 1) & range->high) != 0) continue;
    plan.region[d] = range->high + 1;
    plan.region_min[d] = te::to_expr(needed[d]->low, ranges_);
  }
}

void Plan::make_buffers(int index) {
  const Stage& stage = stage_at(state_, index);
  StagePlan& plan = plans_[static_cast<size_t>(index)];
  const bool is_known = std::all_of(plan.region.begin(), plan.region.end(),
                                    [](const Extent& extent) { return extent.is_known(); });
  if (!is_known && (!stage.is_output || stage.dtypes.size() != 1))
    reject("how large stage " + stage.name + " is is not known, and it is no output");
  std::vector<Extent> extent = plan.region;
  if (stage.in_registers) {
    // Whole vectors: a tail lane of a register has a place of its own.
    for (const AxisRelation& relation : stage.relations) {
      const size_t parent = static_cast<size_t>(relation.parent);
      if (!relation.is_split || parent >= extent.size()) continue;
      extent[parent] = divided(extent[parent], relation.factor) * relation.factor;
    }
  }
  std::vector<Expr> shape;
  for (size_t d = 0; d < extent.size(); ++d) {
    for (const LayoutSplit& split : stage.layout) {
      if (static_cast<size_t>(split.dimension) != d) continue;
      shape.emplace_back(split.factor);
      extent[d] = divided(extent[d], split.factor);
    }
    shape.push_back(extent[d].expr());
  }
  for (size_t k = 0; k < stage.dtypes.size(); ++k) {
    const bool parameter = stage.is_output && k == 0;
    const te::Scope scope = parameter            ? te::Scope::kParameter
                            : stage.in_registers ? te::Scope::kRegister
                            : plan.inside_parallel && stage.attach == AttachKind::kAt
                                ? te::Scope::kWorkerWorkspace
                                : te::Scope::kSharedWorkspace;
    const std::string name = identifier(stage.tensor->name) + (k == 0 ? "" : "_" + std::to_string(k));
    plan.buffers.push_back(te::make_buffer(name, stage.dtypes[k], shape, scope));
  }
}

std::vector<Expr> Plan::place_of(int index, const std::vector<Expr>& position) const {
  const Stage& stage = stage_at(state_, index);
  const StagePlan& plan = plans_[static_cast<size_t>(index)];
  std::vector<Expr> result;
  for (size_t d = 0; d < position.size(); ++d) {
    const Expr offset = position[d] - plan.region_min[d];
    Expr place = te::normalize(offset, ranges_);
    if (stage.attach == AttachKind::kAt) {
      // Loops outside cancel once names stand for what they are, those of loops inside first; which register
      // it is must show once loops are unrolled.
      const std::set<const te::VarNode*> fixed = fixed_variables(state_, stage);
      const auto relaxed = [&](const te::Var& var) { return fixed.count(var.get()) == 0; };
      const auto any = [](const te::Var&) { return true; };
      const Expr inner = te::normalize(without_names(offset, relaxed), ranges_);
      const bool cancelled = !te::has_division(inner) && without_names(inner, any).same_as(inner);
      const Expr open = cancelled ? inner : te::normalize(without_names(offset, any), ranges_);
      if (stage.in_registers || !te::has_division(open)) place = open;
    }
    for (const LayoutSplit& split : stage.layout) {
      if (static_cast<size_t>(split.dimension) != d) continue;
      result.push_back(te::normalize(te::floormod(place, Expr(split.factor)), ranges_));
      place = te::normalize(te::floordiv(place, Expr(split.factor)), ranges_);
    }
    result.push_back(place);
  }
  return result;
}

Expr Plan::load_of(const te::TensorNode* tensor, const std::vector<Expr>& index, int output) const {
  if (const int input = state_.input_of(tensor); input >= 0) {
    std::vector<Expr> place;
    for (const Expr& expr : index) place.push_back(te::normalize(expr, ranges_));
    return te::load(inputs_[static_cast<size_t>(input)], place);
  }
  const int producer = state_.stage_of(tensor);
  TM_CHECK(producer >= 0, "read of a tensor that is neither input nor stage: " + tensor->name);
  return te::load(plans_[static_cast<size_t>(producer)].buffers[static_cast<size_t>(output)],
                  place_of(producer, index));
}

}  // namespace tensormill::schedule
