#include "compiler/schedule/emit.h"

#include "compiler/schedule/naming.h"
#include "compiler/te/rewrite_reads.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;
using te::Stmt;

namespace {

std::vector<Expr> values_at(const State& state, const Plan& plan, int index, const Point& point) {
  const Stage& stage = state.stages()[static_cast<size_t>(index)];
  std::vector<te::Var> vars = stage.data_vars;
  std::vector<Expr> positions = point.data;
  if (stage.reduction) {
    for (size_t r = 0; r < stage.reduction->axes.size(); ++r) {
      vars.push_back(stage.reduction->axes[r].var);
      positions.push_back(point.reduce[r]);
    }
  }
  // One substitution and one lowering for all values: what they share stays shared.
  te::ReadRewriter lowering([&](const Expr& read, const std::vector<Expr>& index) {
    return plan.load_of(read->tensor.get(), index, read->output);
  });
  std::vector<Expr> values;
  for (const Expr& expr : point.values.empty() ? plan[index].definition : point.values)
    values.push_back(lowering.run(substitute_all(expr, vars, positions)));
  return values;
}

Stmt store_all(const Plan& plan, int index, const Point& point, const std::vector<Expr>& values) {
  const std::vector<Expr> place = plan.place_of(index, point.data);
  std::vector<Stmt> stores;
  for (size_t k = 0; k < values.size(); ++k)
    stores.push_back(te::make_store(plan[index].buffers[k], place, values[k], point.kept));
  return te::make_seq(std::move(stores));
}

// The lane reduction that a combination stands for.
Expr reduce_lanes(const te::Reduction& reduction, const Expr& value) {
  const Expr& combine = reduction.combine[0];
  switch (combine->op) {
    case ExprOp::kAdd:
      return te::make(ExprOp::kLaneReduceAdd, {value});
    case ExprOp::kMul:
      return te::make(ExprOp::kLaneReduceMul, {value});
    case ExprOp::kMin:
      return te::make(ExprOp::kLaneReduceMin, {value});
    case ExprOp::kMax:
      return te::make(ExprOp::kLaneReduceMax, {value});
    default:
      reject("this reduction has no lane form");
  }
}

}  // namespace

Stmt emit_body(const State& state, const Plan& plan, int stage, const Point& point) {
  return name_shared(values_at(state, plan, stage, point),
                     [&](const std::vector<Expr>& values) { return store_all(plan, stage, point, values); });
}

Stmt emit_init(const State& state, const Plan& plan, int stage, const Point& point) {
  return store_all(plan, stage, point, state.stages()[static_cast<size_t>(stage)].reduction->identity);
}

Stmt emit_update(const State& state, const Plan& plan, int index, const Point& point) {
  const te::Reduction& reduction = *state.stages()[static_cast<size_t>(index)].reduction;
  std::vector<Expr> sources = values_at(state, plan, index, point);
  const std::vector<Expr> place = plan.place_of(index, point.data);
  std::vector<Expr> held;
  for (const te::Buffer& buffer : plan[index].buffers) held.push_back(te::load(buffer, place));
  if (point.lane) {
    const Expr lanes = te::ramp(Expr(0), Expr(1), point.lanes);
    sources[0] = reduce_lanes(reduction, te::substitute(sources[0], point.lane, lanes));
  }
  std::vector<te::Var> vars = reduction.left;
  vars.insert(vars.end(), reduction.right.begin(), reduction.right.end());
  if (sources.size() == 1) {
    std::vector<Expr> replacement = held;
    replacement.push_back(sources[0]);
    return name_shared(
        {substitute_all(reduction.combine[0], vars, replacement)},
        [&](const std::vector<Expr>& values) { return store_all(plan, index, point, values); });
  }
  // All values are taken before the first is stored.
  std::vector<std::pair<te::Var, Expr>> lets;
  std::vector<Expr> names;
  const auto name = [&](const Expr& value) {
    lets.emplace_back(te::make_var("t", value->type.dtype), value);
    return Expr(lets.back().first);
  };
  for (const Expr& value : held) names.push_back(name(value));
  for (const Expr& value : sources) names.push_back(name(value));
  std::vector<Expr> results;
  for (const Expr& combine : reduction.combine) results.push_back(name(substitute_all(combine, vars, names)));
  Stmt result = store_all(plan, index, point, results);
  for (size_t i = lets.size(); i-- > 0;) result = te::make_let(lets[i].first, lets[i].second, result);
  return result;
}

}  // namespace tensormill::schedule
