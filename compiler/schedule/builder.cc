#include "compiler/schedule/builder.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/schedule/nest.h"
#include "compiler/schedule/primitives.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

namespace {

constexpr double kParallelWork = 32768;  // below, starting the other workers costs more than it saves
constexpr int64_t kTasksPerCore = 8;
constexpr size_t kMaxInlineNodes = 600;

size_t count_nodes(const Expr& expr, const std::map<std::string, size_t>& inlined, const State& state) {
  size_t count = 1;
  if (expr->op == ExprOp::kRead) {
    if (const int producer = state.stage_of(expr->tensor.get()); producer >= 0) {
      const auto found = inlined.find(state.stages()[static_cast<size_t>(producer)].name);
      if (found != inlined.end()) count += found->second;
    }
  }
  for (const Expr& arg : expr->args) count += count_nodes(arg, inlined, state);
  return count;
}

bool has_vector_math(const Expr& expr) {
  bool found = false;
  te::for_each_expr(expr, [&](const Expr& part) {
    const bool math = part->op >= ExprOp::kExp && part->op <= ExprOp::kPow;
    found = found || math || part->op == ExprOp::kDiv || part->op == ExprOp::kSqrt;
  });
  return found;
}

}  // namespace

void Builder::step(std::string primitive, std::vector<std::string> args) {
  Step next{std::move(primitive), std::move(args)};
  reads_.reset();
  state_.apply(next);
  schedule_.steps.push_back(std::move(next));
}

const Stage& Builder::stage(const std::string& name) const {
  const int index = state_.find_stage(name);
  TM_CHECK(index >= 0, "no stage " + name);
  return state_.stages()[static_cast<size_t>(index)];
}

std::vector<std::string> Builder::stage_names() const {
  std::vector<std::string> names;
  for (int index : state_.order()) names.push_back(state_.stages()[static_cast<size_t>(index)].name);
  return names;
}

std::optional<int64_t> Builder::known_extent(const std::string& name, const std::string& axis) const {
  const Stage& self = stage(name);
  const int index = self.find_axis(axis);
  TM_CHECK(index >= 0, "no axis " + axis + " in " + name);
  const Extent& own = self.axes[static_cast<size_t>(index)].extent;
  return own.is_known() ? std::optional<int64_t>(own) : std::nullopt;
}

int64_t Builder::extent(const std::string& name, const std::string& axis) const {
  const std::optional<int64_t> known = known_extent(name, axis);
  TM_CHECK(known, "the extent of " + axis + " in " + name + " is not known");
  return *known;
}

std::string Builder::fuse(const std::string& name, const std::vector<std::string>& axes) {
  if (axes.empty()) return "";
  std::string fused = axes[0];
  for (size_t i = 1; i < axes.size(); ++i) {
    step("fuse", {name, fused, axes[i]});
    fused += "+" + axes[i];
  }
  return fused;
}

namespace {

// The extents that an axis runs over, outermost first: those of the axes that were fused into it, and what is
// left of them where a split cuts between them or divides one. The axis's own extent where it does neither.
std::vector<int64_t> extents_of(const Stage& stage, int axis);

// Of `extents`, the `inner` last iterations, or (with `outer`) what counts those groups.
std::optional<std::vector<int64_t>> cut_extents(std::vector<int64_t> extents, int64_t inner, bool outer) {
  std::vector<int64_t> tail;
  while (inner > 1) {
    if (extents.empty()) return std::nullopt;
    int64_t& last = extents.back();
    if (last % inner != 0 && inner % last != 0) return std::nullopt;
    const int64_t taken = std::min(last, inner);
    tail.insert(tail.begin(), taken);
    inner /= taken;
    last /= taken;
    if (last == 1) extents.pop_back();
  }
  return outer ? extents : tail;
}

std::vector<int64_t> extents_of(const Stage& stage, int axis) {
  for (const AxisRelation& relation : stage.relations) {
    if (!relation.is_split && relation.parent == axis) {
      std::vector<int64_t> extents = extents_of(stage, relation.first);
      const std::vector<int64_t> inner = extents_of(stage, relation.second);
      extents.insert(extents.end(), inner.begin(), inner.end());
      return extents;
    }
    if (relation.is_split && (relation.first == axis || relation.second == axis)) {
      const auto cut =
          cut_extents(extents_of(stage, relation.parent), relation.factor, relation.first == axis);
      if (cut) return *cut;
    }
  }
  return {stage.axes[static_cast<size_t>(axis)].extent};
}

// The length of a task's part of an axis that was fused from `extents`: about `wanted`, and such that the
// cores get equal shares as nearly as can be. A part that holds whole inner axes, or divides the innermost
// that it cuts, has no tail, and its indices stay linear inside of a task.
int64_t task_length(const std::vector<int64_t>& extents, int64_t wanted, int64_t cores) {
  const int64_t total = num_elements(extents);
  int64_t best = 0, least = 0, inner = 1;
  for (size_t i = extents.size(); i-- > 0; inner *= extents[i]) {
    for (int64_t divisor = 1; divisor <= extents[i]; ++divisor) {
      const int64_t length = inner * divisor;
      if (extents[i] % divisor != 0 || length * 2 < wanted || length > 2 * wanted) continue;
      const int64_t longest = (total / length + cores - 1) / cores * length;
      if (best != 0 && (longest > least || (longest == least && length < best))) continue;
      best = length;
      least = longest;
    }
  }
  return best != 0 ? best : wanted;
}

}  // namespace

std::string Builder::parallelize(const std::string& name, const std::string& axis, double work) {
  const int64_t extent_now = extent(name, axis);
  if (extent_now <= 1 || work < kParallelWork || target_.facts.num_cores <= 1) return axis;
  const int64_t tasks =
      knob(name + "_tasks_per_core", kTasksPerCore, {1, 2, 4, 8, 16, 32}) * target_.facts.num_cores;
  if (extent_now <= tasks * 2) {
    step("parallel", {name, axis});
    return axis;
  }
  const std::vector<int64_t> extents = extents_of(stage(name), stage(name).find_axis(axis));
  step("split",
       {name, axis,
        std::to_string(task_length(extents, (extent_now + tasks - 1) / tasks, target_.facts.num_cores))});
  step("parallel", {name, axis + ".o"});
  return axis + ".i";
}

void Builder::guard(const std::string& name) {
  if (has_conditions(stage(name))) step("guard", {name});
}

void Builder::inline_injective(const std::vector<std::string>& keep) {
  std::map<std::string, size_t> inlined;
  for (const std::string& name : stage_names()) {
    const int index = state_.find_stage(name);
    const Stage& self = state_.stages()[static_cast<size_t>(index)];
    if (self.reduction || self.is_output || contains(keep, name) || self.attach != AttachKind::kRoot)
      continue;
    size_t nodes = 0;
    bool math = false;
    for (const Expr& expr : self.body) {
      nodes += count_nodes(expr, inlined, state_);
      math = math || has_vector_math(expr);
    }
    const std::vector<int> users = state_.consumers(index);
    bool reduced = false;
    for (int user : users)
      reduced = reduced || state_.stages()[static_cast<size_t>(user)].reduction != nullptr;
    if (nodes > kMaxInlineNodes || (math && (reduced || users.size() > 1))) continue;
    inlined[name] = nodes;
    step("compute_inline", {name});
  }
}

std::vector<Access> Builder::accesses(const std::string& name) const {
  te::BoundsContext ranges;
  const Plan plan(state_, ranges);
  const Stage& self = stage(name);
  const int index = state_.find_stage(name);
  std::vector<te::Var> vars = self.data_vars;
  std::vector<int64_t> extents = self.shape;
  if (self.reduction) {
    for (const te::Axis& axis : self.reduction->axes) {
      vars.push_back(axis.var);
      extents.push_back(*te::as_int(axis.extent));
    }
  }
  for (size_t i = 0; i < vars.size(); ++i) ranges.bind(vars[i], {0, std::max<int64_t>(extents[i] - 1, 0)});
  std::vector<Access> result;
  std::vector<const te::ExprNode*> seen;
  const auto visit = [&](const auto& visit_again, const Expr& expr) -> void {
    if (std::find(seen.begin(), seen.end(), expr.get()) != seen.end()) return;
    seen.push_back(expr.get());
    for (const Expr& arg : expr->args) visit_again(visit_again, arg);
    if (expr->op != ExprOp::kRead) return;
    const Shape strides = row_major_strides(expr->tensor->constant_shape());
    te::Linear flat;
    for (size_t d = 0; d < expr->args.size(); ++d) flat.add(te::to_affine(expr->args[d], ranges), strides[d]);
    flat = te::fold_mods(flat, ranges);
    Access access{expr->tensor.get(), {}, {}};
    for (const te::Var& var : vars) {
      access.stride.push_back(flat.coefficient_of(Expr(var)));
      bool irregular = false;
      for (const te::Term& term : flat.terms) {
        irregular = irregular || (term.atom->op != ExprOp::kVar && te::mentions(term.atom, var));
      }
      access.irregular.push_back(irregular);
    }
    result.push_back(std::move(access));
  };
  for (const Expr& expr : plan[index].definition) visit(visit, expr);
  return result;
}

const std::vector<Builder::Reads>& Builder::reads() const {
  if (reads_) return *reads_;
  te::BoundsContext ranges;
  const Plan plan(state_, ranges);
  reads_.emplace();
  for (int index : plan.order()) {
    reads_->push_back({index, {}});
    for (const Expr& expr : plan[index].definition) collect_reads(expr, reads_->back().tensors);
  }
  return *reads_;
}

std::vector<std::string> Builder::readers(const std::string& name) const {
  const te::TensorNode* tensor = stage(name).tensor.get();
  std::vector<std::string> result;
  for (const Reads& reader : reads()) {
    if (std::find(reader.tensors.begin(), reader.tensors.end(), tensor) == reader.tensors.end()) continue;
    result.push_back(state_.stages()[static_cast<size_t>(reader.stage)].name);
  }
  return result;
}

namespace {

// Whether all of `accesses` of a stage with `dims` data axes move along reduction axis `outer` as `length`
// steps of `inner` do.
bool walks_as_one(const std::vector<Access>& accesses, size_t dims, int outer, int inner, int64_t length) {
  const size_t at = dims + static_cast<size_t>(outer), lane = dims + static_cast<size_t>(inner);
  return std::none_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.irregular[at] || access.stride[at] != access.stride[lane] * length;
  });
}

}  // namespace

bool Builder::joins(const std::string& name, int axis) const {
  return axis > 0 && walks_as_one(accesses(name), stage(name).shape.size(), axis - 1, axis,
                                  extent(name, "r" + std::to_string(axis)));
}

std::string Builder::join_reduction(const std::string& name, int axis) {
  const std::vector<Access> moves = accesses(name);
  const size_t dims = stage(name).shape.size();
  std::string joined = "r" + std::to_string(axis);
  int64_t length = extent(name, joined);
  for (int r = axis - 1; r >= 0 && walks_as_one(moves, dims, r, axis, length); --r) {
    const std::string outer = "r" + std::to_string(r);
    length *= extent(name, outer);
    step("fuse", {name, outer, joined});
    joined = outer + "+" + joined;
  }
  return joined;
}

int64_t Builder::lanes(const std::string& name) const {
  int bits = 32;
  for (DType dtype : stage(name).dtypes) bits = std::max(bits, dtype_info(dtype).bits);
  return std::max(target_.facts.lanes(bits), 1);
}

bool Builder::is_flat(const std::string& name) const {
  const Stage& self = stage(name);
  const Shape strides = row_major_strides(self.shape);
  for (const Access& access : accesses(name)) {
    bool constant = true, linear = true;
    for (size_t d = 0; d < self.shape.size(); ++d) {
      if (access.irregular[d]) return false;
      if (self.shape[d] == 1) continue;
      constant = constant && access.stride[d] == 0;
      linear = linear && access.stride[d] == strides[d];
    }
    if (!constant && !linear) return false;
  }
  return true;
}

std::vector<std::string> data_axes(const Stage& stage) {
  std::vector<std::string> names;
  for (size_t d = 0; d < stage.shape.size(); ++d) names.push_back("i" + std::to_string(d));
  return names;
}

std::vector<std::string> reduce_axes(const Stage& stage) {
  std::vector<std::string> names;
  const size_t count = stage.reduction ? stage.reduction->axes.size() : 0;
  for (size_t r = 0; r < count; ++r) names.push_back("r" + std::to_string(r));
  return names;
}

bool multiplies_panel(const Builder& builder, const std::string& sums, size_t lane, size_t fixed) {
  const std::vector<Access> accesses = builder.accesses(sums);
  if (accesses.size() != 2 || accesses[0].tensor == accesses[1].tensor) return false;
  return std::any_of(accesses.begin(), accesses.end(), [&](const Access& panel) {
    return !panel.irregular[lane] && panel.stride[lane] == 1 && !panel.irregular[fixed] &&
           panel.stride[fixed] == 0;
  });
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace tensormill::schedule
