// Primitives that place stages, and those that make new ones.
#include <algorithm>

#include "compiler/schedule/primitives.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

bool has_loops_changed(const Stage& stage) {
  return !stage.relations.empty() ||
         std::any_of(stage.axes.begin(), stage.axes.end(),
                     [](const StageAxis& axis) { return axis.kind != te::ForKind::kSerial; });
}

void require_fresh(const Stage& stage) {
  if (has_loops_changed(stage)) reject("stage " + stage.name + " has scheduled loops already");
}

// A tensor node that only serves as identity for reads.
te::Tensor identity_tensor(const std::string& name, const std::vector<DType>& dtypes,
                           std::vector<Expr> shape) {
  te::TensorNode node;
  node.name = name;
  node.dtypes = dtypes;
  node.shape = std::move(shape);
  return std::make_shared<const te::TensorNode>(std::move(node));
}

std::vector<te::Var> fresh_vars(size_t count, const std::string& prefix) {
  std::vector<te::Var> vars;
  for (size_t i = 0; i < count; ++i) vars.push_back(te::make_var(prefix + std::to_string(i)));
  return vars;
}

std::vector<Expr> as_exprs(const std::vector<te::Var>& vars) { return {vars.begin(), vars.end()}; }

std::vector<Expr> reads_of(const te::Tensor& tensor, const std::vector<Expr>& index) {
  std::vector<Expr> values;
  for (size_t k = 0; k < tensor->dtypes.size(); ++k)
    values.push_back(te::read(tensor, index, static_cast<int>(k)));
  return values;
}

Expr redirect(const Expr& expr, const te::TensorNode* from, const te::Tensor& to) {
  std::vector<Expr> args;
  for (const Expr& arg : expr->args) args.push_back(redirect(arg, from, to));
  if (expr->op == ExprOp::kRead)
    return te::read(expr->tensor.get() == from ? to : expr->tensor, args, expr->output);
  return args.empty() ? expr : te::with_args(expr, std::move(args), expr->mask);
}

// Whether `stage` is (transitively) computed inside `ancestor`.
bool is_inside(const State& state, int stage, int ancestor) {
  for (int steps = 0; stage >= 0 && steps < 1000; ++steps) {
    if (stage == ancestor) return true;
    const Stage& current = state.stages()[static_cast<size_t>(stage)];
    if (current.attach != AttachKind::kAt) return false;
    stage = current.attach_stage;
  }
  return false;
}

}  // namespace

void apply_compute_at(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  Stage& consumer = state.stage(args[1]);
  const int axis = leaf_named(consumer, args[2]);
  const int self = state.find_stage(args[0]), target = state.find_stage(args[1]);
  if (stage.is_output) reject("an output is computed at the root");
  if (is_inside(state, target, self)) reject("stage " + args[1] + " is computed inside " + args[0]);
  const te::ForKind kind = consumer.axes[static_cast<size_t>(axis)].kind;
  if (kind == te::ForKind::kVectorized) reject("nothing is computed inside a vectorized loop");
  for (const StageAxis& own : stage.axes) {
    if (own.kind == te::ForKind::kParallel) reject("a parallel stage is computed at the root");
  }
  stage.attach = AttachKind::kAt;
  stage.attach_stage = target;
  stage.attach_axis = axis;
}

void apply_compute_inline(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  if (stage.reduction) reject("a reduction is not inlined");
  if (stage.is_output) reject("an output is not inlined");
  require_fresh(stage);
  stage.attach = AttachKind::kInline;
}

void apply_cache_write(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  require_fresh(stage);
  Stage cache = stage;
  cache.name = stage.name + ".c";
  if (state.find_stage(cache.name) >= 0) reject("stage " + cache.name + " exists already");
  cache.is_output = false;
  cache.tensor = identity_tensor(cache.name, stage.dtypes, stage.extents());
  reset_axes(cache);
  stage.data_vars = fresh_vars(stage.shape.size(), "i");
  stage.body = reads_of(cache.tensor, as_exprs(stage.data_vars));
  stage.reduction = nullptr;
  stage.update_guards.clear();
  reset_axes(stage);
  state.add_stage(std::move(cache));
}

void apply_cache_read(State& state, const std::vector<std::string>& args) {
  te::Tensor source;
  if (const int index = state.find_stage(args[0]); index >= 0) {
    source = state.stages()[static_cast<size_t>(index)].tensor;
  } else if (args[0].size() > 1 && args[0][0] == 'p') {
    const size_t input = args[0] == "p0" ? 0 : static_cast<size_t>(positive(args[0].substr(1)));
    if (input >= state.program().inputs.size()) reject("no input '" + args[0] + "'");
    source = state.program().inputs[input];
  } else {
    reject("no stage or input '" + args[0] + "'");
  }
  Stage copy;
  copy.name = args[0] + "." + args[1];
  if (state.find_stage(copy.name) >= 0) reject("stage " + copy.name + " exists already");
  copy.dtypes = source->dtypes;
  for (const Expr& extent : source->shape) {
    if (te::as_int(extent) == nullptr) reject("not all extents of " + args[0] + " are known");
    copy.shape.push_back(*te::as_int(extent));
  }
  copy.tensor = identity_tensor(copy.name, copy.dtypes, source->shape);
  copy.data_vars = fresh_vars(copy.shape.size(), "i");
  copy.body = reads_of(source, as_exprs(copy.data_vars));
  reset_axes(copy);
  Stage& consumer = state.stage(args[1]);
  std::vector<const te::TensorNode*> reads;
  for (const Expr& expr : definition(consumer)) collect_reads(expr, reads);
  if (std::find(reads.begin(), reads.end(), source.get()) == reads.end())
    reject(args[1] + " does not read " + args[0]);
  if (consumer.reduction) {
    te::Reduction reduction = *consumer.reduction;
    for (Expr& expr : reduction.source) expr = redirect(expr, source.get(), copy.tensor);
    consumer.reduction = std::make_shared<const te::Reduction>(std::move(reduction));
  } else {
    for (Expr& expr : consumer.body) expr = redirect(expr, source.get(), copy.tensor);
  }
  state.add_stage(std::move(copy));
}

namespace {

// The values of a stage's reduction roots as expressions over its leaves, and the guards of uneven splits.
struct ReduceRoots {
  std::vector<Expr> values;
  std::vector<Expr> guards;
};

ReduceRoots reduce_roots(const Stage& stage) {
  std::vector<Expr> value(stage.axes.size());
  for (size_t i = 0; i < stage.axes.size(); ++i) value[i] = Expr(stage.axes[i].var);
  ReduceRoots result;
  for (size_t k = stage.relations.size(); k-- > 0;) {
    const AxisRelation& relation = stage.relations[k];
    const size_t parent = static_cast<size_t>(relation.parent), first = static_cast<size_t>(relation.first),
                 second = static_cast<size_t>(relation.second);
    if (!stage.axes[parent].reduce) reject("rfactor needs data axes that are not split");
    if (relation.is_split) {
      value[parent] = value[first] * Expr(relation.factor) + value[second];
    } else {
      const Expr inner(std::max<int64_t>(stage.axes[second].extent, 1));
      value[first] = te::floordiv(value[parent], inner);
      value[second] = te::floormod(value[parent], inner);
    }
  }
  for (const AxisRelation& relation : stage.relations) {
    const StageAxis& parent = stage.axes[static_cast<size_t>(relation.parent)];
    if (!relation.is_split || parent.extent.is_multiple_of(relation.factor)) continue;
    result.guards.push_back(value[static_cast<size_t>(relation.parent)] < parent.extent.expr());
  }
  for (size_t i = stage.shape.size(); i < static_cast<size_t>(stage.num_roots); ++i)
    result.values.push_back(value[i]);
  return result;
}

}  // namespace

void apply_rfactor(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  if (!stage.reduction) reject("stage " + args[0] + " is no reduction");
  if (stage.dtypes.size() != 1) reject("a reduction of tuples has no rfactor");
  const int factor_axis = leaf_named(stage, args[1]);
  if (!stage.axes[static_cast<size_t>(factor_axis)].reduce) reject("rfactor takes a reduction axis");
  const ReduceRoots roots = reduce_roots(stage);
  const te::Reduction& old = *stage.reduction;
  std::vector<te::Var> old_vars;
  for (const te::Axis& axis : old.axes) old_vars.push_back(axis.var);

  Stage partial;
  partial.name = stage.name + ".rf";
  if (state.find_stage(partial.name) >= 0) reject("stage " + partial.name + " exists already");
  partial.dtypes = stage.dtypes;
  const Extent lanes = stage.axes[static_cast<size_t>(factor_axis)].extent;
  if (!lanes.is_known()) reject("the extent of axis '" + args[1] + "' is not known");
  partial.shape = stage.shape;
  partial.shape.push_back(lanes);
  partial.axes.assign(stage.axes.begin(), stage.axes.begin() + static_cast<ptrdiff_t>(stage.shape.size()));
  std::vector<Expr> extents = stage.extents();
  extents.push_back(lanes.expr());
  partial.tensor = identity_tensor(partial.name, partial.dtypes, std::move(extents));
  partial.data_vars = stage.data_vars;
  partial.data_vars.push_back(stage.axes[static_cast<size_t>(factor_axis)].var);
  te::Reduction inner = old;
  inner.axes.clear();
  for (int leaf : stage.leaves) {
    const StageAxis& axis = stage.axes[static_cast<size_t>(leaf)];
    if (axis.reduce && leaf != factor_axis) inner.axes.push_back({axis.var, axis.extent.expr()});
  }
  for (Expr& expr : inner.source) expr = substitute_all(expr, old_vars, roots.values);
  partial.update_guards = roots.guards;
  for (const Expr& guard : stage.update_guards)
    partial.update_guards.push_back(substitute_all(guard, old_vars, roots.values));
  partial.reduction = std::make_shared<const te::Reduction>(std::move(inner));
  reset_axes(partial);

  te::Reduction outer = old;
  const te::Var lane = te::make_var("r0");
  outer.axes = {{lane, lanes.expr()}};
  std::vector<Expr> index = as_exprs(stage.data_vars);
  index.emplace_back(lane);
  outer.source = reads_of(partial.tensor, index);
  stage.reduction = std::make_shared<const te::Reduction>(std::move(outer));
  stage.update_guards.clear();
  reset_axes(stage);
  state.add_stage(std::move(partial));
}

void apply_storage_layout(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  if (stage.is_output) reject("an output has the layout that the caller expects");
  const int axis = stage.find_axis(args[1]);
  if (axis < 0 || axis >= static_cast<int>(stage.shape.size())) reject("no dimension '" + args[1] + "'");
  stage.layout.push_back({axis, positive(args[2])});
}

void apply_store_in(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  if (args[1] != "register") reject("a stage is stored in 'register'");
  if (stage.attach != AttachKind::kAt)
    reject("only a stage computed inside another one is kept in registers");
  stage.in_registers = true;
}

}  // namespace tensormill::schedule
