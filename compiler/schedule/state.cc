#include "compiler/schedule/state.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/te/rewrite_args.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

using te::Expr;
using te::ExprOp;

void reject(const std::string& message) { throw Error(ErrorCode::kInvalidRecords, message); }

int Stage::find_axis(std::string_view axis_name) const {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].name == axis_name) return static_cast<int>(i);
  }
  return -1;
}

int Stage::leaf_position(int axis) const {
  const auto found = std::find(leaves.begin(), leaves.end(), axis);
  return found == leaves.end() ? -1 : static_cast<int>(found - leaves.begin());
}

const std::vector<Expr>& definition(const Stage& stage) {
  return stage.reduction ? stage.reduction->source : stage.body;
}

namespace {

Stage stage_from(const te::Tensor& tensor, std::string name) {
  Stage stage;
  stage.name = std::move(name);
  stage.tensor = tensor;
  stage.dtypes = tensor->dtypes;
  for (const te::Axis& axis : tensor->axes) stage.data_vars.push_back(axis.var);
  for (const Expr& extent : tensor->shape) {
    stage.axes.push_back({"", {}, Extent(extent)});
    stage.shape.push_back(stage.axes.back().extent.is_known() ? *te::as_int(extent) : kUnknown);
  }
  stage.body = tensor->body;
  stage.reduction = tensor->reduction;
  reset_axes(stage);
  return stage;
}

}  // namespace

Extent::Extent(const Expr& expr) {
  if (const int64_t* number = te::as_int(expr)) {
    number_ = *number;
  } else {
    expr_ = expr;
  }
}

Extent::operator int64_t() const {
  TM_CHECK(is_known(), "an extent is not known");
  return number_;
}

Extent divided(const Extent& extent, int64_t factor) {
  if (extent.is_known()) return (extent + factor - 1) / factor;
  return Extent(te::simplify(te::floordiv(extent.expr() + Expr(factor - 1), Expr(factor))));
}

Extent product(const Extent& a, const Extent& b) {
  return a.is_known() && b.is_known() ? Extent(int64_t{a} * int64_t{b}) : Extent(a.expr() * b.expr());
}

std::vector<Expr> Stage::extents() const {
  std::vector<Expr> result;
  for (size_t d = 0; d < shape.size(); ++d) result.push_back(axes[d].extent.expr());
  return result;
}

void reset_axes(Stage& stage) {
  const std::vector<StageAxis> before = std::move(stage.axes);
  stage.axes.clear();
  stage.relations.clear();
  stage.leaves.clear();
  for (size_t d = 0; d < stage.shape.size(); ++d) {
    std::string name = "i" + std::to_string(d);
    const Extent extent = stage.shape[d] == kUnknown ? before[d].extent : Extent(stage.shape[d]);
    stage.axes.push_back({name, te::make_var(name), extent, false, te::ForKind::kSerial});
  }
  const size_t reduce_axes = stage.reduction ? stage.reduction->axes.size() : 0;
  for (size_t r = 0; r < reduce_axes; ++r) {
    std::string name = "r" + std::to_string(r);
    const Extent extent(stage.reduction->axes[r].extent);
    stage.axes.push_back({name, te::make_var(name), extent, true, te::ForKind::kSerial});
  }
  stage.num_roots = static_cast<int>(stage.axes.size());
  for (int i = 0; i < stage.num_roots; ++i) stage.leaves.push_back(i);
}

State::State(const te::Program& program, Arguments arguments)
    : program_(program), arguments_(std::move(arguments)) {
  const std::vector<te::Tensor> tensors = te::stages_of(program);
  for (size_t i = 0; i < tensors.size(); ++i) add_stage(stage_from(tensors[i], "s" + std::to_string(i)));
  for (const te::Tensor& output : program.outputs) {
    const bool repeated =
        std::find(output_tensors_.begin(), output_tensors_.end(), output) != output_tensors_.end();
    te::Tensor target = output;
    if (repeated || output->is_placeholder()) {
      target = te::compute("copy", output->shape,
                           [&](const std::vector<Expr>& axes) { return te::read(output, axes); });
      add_stage(stage_from(target, "s" + std::to_string(stages_.size())));
    }
    output_tensors_.push_back(target);
    stages_[static_cast<size_t>(stage_of(target.get()))].is_output = true;
  }
}

int State::add_stage(Stage stage) {
  stages_.push_back(std::move(stage));
  return static_cast<int>(stages_.size()) - 1;
}

bool State::knows_extents() const {
  const auto is_known = [](const Expr& extent) { return te::as_int(extent) != nullptr; };
  for (const te::Tensor& input : program_.inputs) {
    if (!std::all_of(input->shape.begin(), input->shape.end(), is_known)) return false;
  }
  return std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
    return std::all_of(stage.axes.begin(), stage.axes.end(),
                       [](const StageAxis& axis) { return axis.extent.is_known(); });
  });
}

int State::find_stage(std::string_view name) const {
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Stage& State::stage(std::string_view name) {
  const int index = find_stage(name);
  if (index < 0) reject("no stage '" + std::string(name) + "'");
  return stages_[static_cast<size_t>(index)];
}

int State::stage_of(const te::TensorNode* tensor) const {
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i].tensor.get() == tensor) return static_cast<int>(i);
  }
  return -1;
}

int State::input_of(const te::TensorNode* tensor) const {
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    if (program_.inputs[i].get() == tensor) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> State::order() const {
  std::vector<int> result;
  std::vector<char> visited(stages_.size(), 0);
  const auto visit = [&](const auto& self, int index) -> void {
    if (visited[static_cast<size_t>(index)]) return;
    visited[static_cast<size_t>(index)] = 1;
    std::vector<const te::TensorNode*> reads;
    for (const Expr& expr : definition(stages_[static_cast<size_t>(index)])) collect_reads(expr, reads);
    for (const te::TensorNode* read : reads) {
      if (const int producer = stage_of(read); producer >= 0) self(self, producer);
    }
    result.push_back(index);
  };
  for (const te::Tensor& output : output_tensors_) visit(visit, stage_of(output.get()));
  return result;
}

std::vector<int> State::consumers(int stage) const {
  std::vector<int> result;
  for (int index : order()) {
    std::vector<const te::TensorNode*> reads;
    for (const Expr& expr : definition(stages_[static_cast<size_t>(index)])) collect_reads(expr, reads);
    const te::TensorNode* tensor = stages_[static_cast<size_t>(stage)].tensor.get();
    if (std::find(reads.begin(), reads.end(), tensor) != reads.end()) result.push_back(index);
  }
  return result;
}

void State::apply(const Step& step) {
  for (const Primitive& primitive : primitives()) {
    if (primitive.name != step.primitive) continue;
    const int count = static_cast<int>(step.args.size());
    if (count < primitive.min_args || count > primitive.max_args)
      reject("expected '" + std::string(primitive.form) + "'");
    primitive.apply(*this, step.args);
    return;
  }
  reject("no primitive '" + step.primitive + "'");
}

size_t innermost_leaves(const Stage& stage, int dimension) {
  std::vector<char> own(stage.axes.size(), 0);
  own[static_cast<size_t>(dimension)] = 1;
  for (const AxisRelation& relation : stage.relations) {
    if (relation.is_split && own[static_cast<size_t>(relation.parent)])
      own[static_cast<size_t>(relation.first)] = own[static_cast<size_t>(relation.second)] = 1;
  }
  const auto is_part = [&](int leaf) { return own[static_cast<size_t>(leaf)] != 0; };
  const auto count = std::count_if(stage.leaves.begin(), stage.leaves.end(), is_part);
  if (count == 0 || !std::all_of(stage.leaves.end() - count, stage.leaves.end(), is_part))
    reject("the loops of dimension " + std::to_string(dimension) + " of " + stage.name +
           " are not the innermost");
  return static_cast<size_t>(count);
}

void collect_reads(const Expr& expr, std::vector<const te::TensorNode*>& reads) {
  te::for_each_expr(expr, [&](const Expr& part) {
    if (part->op != ExprOp::kRead) return;
    if (std::find(reads.begin(), reads.end(), part->tensor.get()) == reads.end())
      reads.push_back(part->tensor.get());
  });
}

namespace {

class Substitution {
public:
  Substitution(const std::vector<te::Var>& vars, const std::vector<Expr>& values) {
    for (size_t i = 0; i < vars.size(); ++i) values_.emplace(vars[i].get(), values[i]);
  }
  Expr run(const Expr& expr) {
    if (expr->op == ExprOp::kVar) {
      const auto found = values_.find(expr->var.get());
      return found == values_.end() ? expr : found->second;
    }
    if (expr->args.empty() && !expr->mask) return expr;
    if (const auto done = done_.find(expr.get()); done != done_.end()) return done->second;
    Expr result = te::rewrite_args(expr, [this](const Expr& part) { return run(part); }).of(expr);
    done_.emplace(expr.get(), result);
    return result;
  }

private:
  std::unordered_map<const te::VarNode*, Expr> values_;
  std::unordered_map<const te::ExprNode*, Expr> done_;
};

}  // namespace

Expr substitute_all(const Expr& expr, const std::vector<te::Var>& vars, const std::vector<Expr>& values) {
  return Substitution(vars, values).run(expr);
}

}  // namespace tensormill::schedule
