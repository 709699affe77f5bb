#include "compiler/plan/in_place.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/schedule/conditions.h"
#include "compiler/te/stmt.h"

namespace tensormill::plan {

namespace {

/// The read is at the reader's own index.
bool is_same_index(const te::Expr& read, const te::TensorNode& reader) {
  const Shape shape = reader.constant_shape();
  if (read->tensor->constant_shape() != shape) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const te::Expr& index = read->args[d];
    if (shape[d] == 1 && te::is_int(index, 0)) continue;
    if (index->op != te::ExprOp::kVar || index->var != reader.axes[d].var) return false;
  }
  return true;
}

}  // namespace

std::vector<size_t> find_in_place(const te::Program& program) {
  if (program.outputs.size() != 1) return {};
  // Whether every path from the output to a tensor keeps the index; readers come before what they read.
  std::map<const te::TensorNode*, bool> same;
  const std::vector<te::Tensor> stages = te::stages_of(program);
  same[program.outputs[0].get()] = true;
  for (size_t i = stages.size(); i-- > 0;) {
    const te::TensorNode& stage = *stages[i];
    const bool kept = same.count(&stage) != 0 && same.at(&stage) && stage.reduction == nullptr;
    const auto visit = [&](const te::Expr& expr) {
      if (expr->op != te::ExprOp::kRead) return;
      const bool ok = kept && is_same_index(expr, stage);
      const auto [found, is_new] = same.emplace(expr->tensor.get(), ok);
      if (!is_new) found->second = found->second && ok;
    };
    for (const te::Expr& body : stage.body) te::for_each_expr(body, visit);
    if (stage.reduction == nullptr) continue;
    for (const te::Expr& source : stage.reduction->source) te::for_each_expr(source, visit);
  }
  const te::TensorNode& output = *program.outputs[0];
  std::vector<size_t> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const te::TensorNode& input = *program.inputs[i];
    const auto found = same.find(&input);
    if (found != same.end() && found->second && input.dtypes == output.dtypes &&
        input.constant_shape() == output.constant_shape()) {
      inputs.push_back(i);
    }
  }
  return inputs;
}

std::vector<size_t> find_in_place(const Nest& nest) {
  const te::TensorNode& tensor = *nest.tensor;
  if (!nest.places.empty() || tensor.dtypes.size() != 1) return {};
  const te::TensorNode& output = nest.epilogue ? *nest.epilogue->target->tensor : tensor;
  std::vector<te::Expr> own;
  for (const te::Axis& axis : tensor.axes) own.emplace_back(axis.var);
  if (nest.epilogue) own = nest.epilogue->target->args;
  // Where a read is not at the place of the element that it is read for.
  std::set<const te::TensorNode*> elsewhere;
  const auto visit = [&](const te::Expr& body, bool is_summed) {
    te::for_each_expr(body, [&](const te::Expr& part) {
      if (part->op == te::ExprOp::kRead && (is_summed || !schedule::are_equal(part->args, own)))
        elsewhere.insert(part->tensor.get());
    });
  };
  for (const te::Expr& body : tensor.body) visit(body, false);
  if (tensor.reduction) {
    for (const te::Expr& source : tensor.reduction->source) visit(source, true);
  }
  if (nest.epilogue) visit(nest.epilogue->body, false);
  std::vector<size_t> inputs;
  for (size_t i = 0; i < nest.inputs.size(); ++i) {
    const te::TensorNode& input = *nest.inputs[i];
    if (elsewhere.count(&input) == 0 && input.dtypes == output.dtypes &&
        schedule::are_equal(input.shape, output.shape))
      inputs.push_back(i);
  }
  return inputs;
}

std::vector<int> alias_classes(size_t inputs, size_t outputs, const std::vector<size_t>& in_place) {
  std::vector<int> classes(inputs + outputs, -1);
  if (in_place.empty()) return classes;
  classes[inputs] = 0;
  for (const size_t input : in_place) classes[input] = 0;
  return classes;
}

}  // namespace tensormill::plan
