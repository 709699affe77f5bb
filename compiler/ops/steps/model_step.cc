/// run_model: a whole model that no plan can bind before a run's values are known
/// (runtime/package/model_step.h).
#include "compiler/ops/steps/model_step.h"

#include <optional>

#include "compiler/ops/steps/executor_step.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/model_step.h"

namespace tensormill::ops::model_step_ops {

std::vector<ir::OpDef> family();

namespace {

/// An extent of a result: a number, kOpenExtent, or the extent of an operand's axis.
ir::SymInt extent_of(const ir::InferContext& context, int64_t said) {
  if (said >= 0) return said;
  if (said == kOpenExtent) return 1;
  const auto [operand, axis] = axis_of_extent(said);
  const ir::SymShape& shape = input(context, operand).shape;
  if (axis >= shape.size()) fail("operand " + std::to_string(operand) + " has shape " + to_string(shape));
  return shape[axis];
}

std::vector<ir::ValueType> infer_model(const ir::InferContext& context) {
  const ir::Ints ranks = attr_ints(context.attrs, "ranks");
  const ir::Ints extents = attr_ints(context.attrs, "extents");
  const auto* dtypes = context.attrs.has("dtypes")
                           ? std::get_if<std::vector<std::string>>(&context.attrs.all().at("dtypes"))
                           : nullptr;
  if (dtypes == nullptr || dtypes->size() != ranks.size()) fail("expected a dtype for each result");
  std::vector<ir::ValueType> results;
  size_t next = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::optional<DType> dtype = dtype_from_name((*dtypes)[i]);
    if (!dtype) fail("\"" + (*dtypes)[i] + "\" is no dtype");
    if (ranks[i] < 0 || static_cast<size_t>(ranks[i]) > extents.size() - next)
      fail("expected an extent for each axis of the results");
    ir::SymShape shape;
    for (int64_t d = 0; d < ranks[i]; ++d) shape.push_back(extent_of(context, extents[next++]));
    results.push_back(made_type(*dtype, std::move(shape)));
  }
  return results;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {executor_step(
      kModelStep, 0, -1, &infer_model,
      "the model's inputs -> its outputs, of attributes dtypes (strings), ranks and, one behind the other, "
      "extents (ints: a number, -1 for what a run makes it, or an operand's axis); open (ints: result, axis, "
      "... of the -1s), reason (string: why it has no nodes)")};
}

}  // namespace tensormill::ops::model_step_ops
