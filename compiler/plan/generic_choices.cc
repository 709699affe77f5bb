#include "compiler/plan/generic_choices.h"

#include <algorithm>
#include <bit>
#include <set>

#include "compiler/te/rewrite_reads.h"
#include "compiler/te/simplify.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

/// Places of all axes that are computed together: what is held of more does not stay in registers.
constexpr int64_t kMostPlaces = 64;

/// By axis: the numbers that the conditions of selects compare it with.
std::map<size_t, std::set<int64_t>> compared_places(const te::TensorNode& stage) {
  std::map<size_t, std::set<int64_t>> places;
  te::for_each_expr(stage.body[0], [&](const Expr& expr) {
    if (expr->op != ExprOp::kSelect || expr->args[0]->op != ExprOp::kEq) return;
    const std::vector<Expr>& sides = expr->args[0]->args;
    const int64_t* place = te::as_int(sides[1]);
    for (size_t d = 0; d < stage.axes.size() && place != nullptr; ++d) {
      if (te::equal(sides[0], Expr(stage.axes[d].var))) places[d].insert(*place);
    }
  });
  return places;
}

/// Axes of which all places but the last are compared with: those are told apart.
Choices own_choices(const te::TensorNode& stage) {
  Choices choices;
  for (const auto& [axis, places] : compared_places(stage)) {
    const int64_t* extent = te::as_int(stage.axes[axis].extent);
    const bool is_each = extent != nullptr && static_cast<int64_t>(places.size()) == *extent - 1 &&
                         *places.begin() == 0 && *places.rbegin() == *extent - 2;
    if (is_each) choices[axis] = *extent;
  }
  return choices;
}

}  // namespace

bool is_output(const te::Program& program, const te::TensorNode& stage) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [&](const te::Tensor& output) { return output.get() == &stage; });
}

ChoiceFinder::ChoiceFinder(const te::Program& program) {
  for (const te::Tensor& stage : te::stages_of(program)) add(program, *stage);
}

const Choices& ChoiceFinder::of(const te::TensorNode& stage) const {
  const auto found = choices_.find(&stage);
  return found == choices_.end() ? none_ : found->second;
}

bool ChoiceFinder::is_put_in_place(const te::TensorNode& stage) const {
  const auto found = is_put_.find(&stage);
  return found != is_put_.end() && found->second;
}

void ChoiceFinder::add(const te::Program& program, const te::TensorNode& stage) {
  Choices choices;
  if (!stage.reduction && stage.body.size() == 1) choices = own_choices(stage);
  const auto look = [&](const Expr& expr) {
    if (expr->op != ExprOp::kRead || of(*expr->tensor).empty()) return;
    const bool is_known = !stage.reduction && stage.body.size() == 1 && inherit(stage, *expr, choices);
    if (!is_known) is_put_[expr->tensor.get()] = false;
  };
  for (const Expr& body : stage.body) te::for_each_expr(body, look);
  if (stage.reduction) {
    for (const Expr& source : stage.reduction->source) te::for_each_expr(source, look);
  }
  int64_t places = 1;
  for (const auto& [axis, factor] : choices) places *= factor;
  if (choices.empty() || places > kMostPlaces) return;
  choices_[&stage] = std::move(choices);
  is_put_[&stage] = !is_output(program, stage);
}

bool ChoiceFinder::inherit(const te::TensorNode& reader, const te::ExprNode& read, Choices& choices) const {
  Choices more = choices;
  for (const auto& [axis, own_factor] : of(*read.tensor)) {
    const int64_t factor = own_factor;
    const Expr& index = read.args[axis];
    if (te::as_int(index) != nullptr) continue;
    const auto names = [&](const te::Axis& own) {
      return te::equal(index, Expr(own.var)) || te::equal(index, te::floormod(Expr(own.var), Expr(factor)));
    };
    const auto own = std::find_if(reader.axes.begin(), reader.axes.end(), names);
    if (own == reader.axes.end()) return false;
    const auto [known, is_new] = more.emplace(own - reader.axes.begin(), factor);
    if (known->second != factor) return false;
  }
  choices = std::move(more);
  return true;
}

/// Of one element: what its axes are, and what has been rewritten for it.
struct PlaceMaker::Place {
  std::unordered_map<const te::VarNode*, Expr> axes;
  std::unordered_map<const te::ExprNode*, Expr> done;
};

Expr PlaceMaker::element(const te::Tensor& stage, const std::vector<Expr>& indices) {
  std::vector<const te::ExprNode*> key;
  for (const Expr& index : indices) key.push_back(index.get());
  Expr& known = elements_[{stage.get(), std::move(key)}];
  if (known) return known;
  Place place;
  std::vector<te::Var> axes;
  for (size_t d = 0; d < indices.size(); ++d) {
    axes.push_back(stage->axes[d].var);
    place.axes[axes.back().get()] = indices[d];
  }
  return known = te::with_checks_of(rewrite(stage->body[0], place), stage->body[0], axes, indices);
}

Expr PlaceMaker::index(const Expr& expr) {
  const Expr one = unique(expr);
  Expr& simple = simple_[one.get()];
  if (!simple) simple = unique(te::simplify(one));
  return simple;
}

Expr PlaceMaker::unique(const Expr& expr) {
  if (const auto found = unique_.find(expr.get()); found != unique_.end()) return found->second;
  std::vector<Expr> args;
  Key key{expr->op,
          expr->type.dtype,
          expr->type.lanes,
          expr->int_value,
          std::bit_cast<uint64_t>(expr->float_value),
          nullptr,
          expr->output,
          {}};
  key.of = expr->op == ExprOp::kVar      ? static_cast<const void*>(expr->var.get())
           : expr->op == ExprOp::kLookup ? static_cast<const void*>(expr->table.get())
                                         : expr->tensor.get();
  bool is_changed = false;
  for (const Expr& arg : expr->args) {
    args.push_back(unique(arg));
    key.args.push_back(args.back().get());
    is_changed = is_changed || !args.back().same_as(arg);
  }
  Expr& node = nodes_[std::move(key)];
  if (!node) node = is_changed ? te::with_args(expr, std::move(args)) : expr;
  kept_.push_back(expr);
  unique_.emplace(expr.get(), node);
  return node;
}

Expr PlaceMaker::rewrite(const Expr& expr, Place& place) {
  if (const auto found = place.done.find(expr.get()); found != place.done.end()) return found->second;
  const auto rewrite_all = [&](const std::vector<Expr>& args) {
    std::vector<Expr> result;
    for (const Expr& arg : args) result.push_back(rewrite(arg, place));
    return result;
  };
  Expr result = expr;
  if (expr->op == ExprOp::kVar) {
    const auto axis = place.axes.find(expr->var.get());
    if (axis != place.axes.end()) result = axis->second;
  } else if (expr->op == ExprOp::kSelect) {
    const Expr condition = index(rewrite(expr->args[0], place));
    if (const int64_t* known = te::as_int(condition)) {
      result = rewrite(expr->args[*known != 0 ? 1 : 2], place);
    } else {
      result = te::with_args(expr, {condition, rewrite(expr->args[1], place), rewrite(expr->args[2], place)});
    }
  } else if (expr->op == ExprOp::kRead) {
    std::vector<Expr> indices;
    for (const Expr& arg : rewrite_all(expr->args)) indices.push_back(index(arg));
    result = is_put_(*expr->tensor) ? element(expr->tensor, indices) : read_(*expr, std::move(indices));
  } else if (!expr->args.empty()) {
    result = te::with_args(expr, rewrite_all(expr->args));
  }
  result = unique(result);
  place.done.emplace(expr.get(), result);
  return result;
}

}  // namespace tensormill::plan
