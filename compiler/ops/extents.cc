/// extents, iota: what follows from extents alone, where these are no constants. bind_extents: extents that a
/// run works out.
#include "compiler/ir/run_dims.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::extent_ops {

std::vector<ir::OpDef> family();

namespace extents {

ir::SymShape values_of(const ir::Attrs& attrs) { return attr_dims(attrs, "values"); }

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  return {made_type(DType::kInt64, {values_of(context.attrs).size()})};
}

ir::KnownValue known(const ir::Attrs& attrs) {
  ir::SymShape values = values_of(attrs);
  const auto count = static_cast<int64_t>(values.size());
  if (count > ir::kMaxKnownElements) return {};
  return {DType::kInt64, {count}, std::move(values)};
}

void reference(const ir::ReferenceContext& context) {
  store_ints(*context.outputs[0], attr_ints(context.attrs, "values"));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::SymShape values = values_of(context.attrs);
  return {compute_safe(
      context.name, context.output_types[0].shape, DType::kInt64, [&](const std::vector<Expr>& axes) {
        Expr result(values.back());
        for (size_t i = values.size() - 1; i-- > 0;)
          result = te::select(axes[0] == Expr(static_cast<int64_t>(i)), Expr(values[i]), result);
        return result;
      })};
}

}  // namespace extents

namespace iota {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  return {made_type(DType::kInt64, {attr_dim(context.attrs, "extent")})};
}

void reference(const ir::ReferenceContext& context) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < context.outputs[0]->num_elements(); ++i) places.push_back(i);
  store_ints(*context.outputs[0], places);
}

TeOutputs compute(const ir::ComputeContext& context) {
  return {compute_safe(context.name, context.output_types[0].shape, DType::kInt64,
                       [](const std::vector<Expr>& axes) { return axes[0]; })};
}

}  // namespace iota

namespace bind_extents {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& numbers = input_of(context, 0, set_of(DType::kInt64));
  const auto count = static_cast<int64_t>(attr_dims(context.attrs, "extents").size());
  if (!(numbers.shape == ir::SymShape{count}))
    fail("the numbers have shape " + to_string(numbers.shape) + ", expected [" + std::to_string(count) + "]");
  return {made_type(DType::kInt64, {count})};
}

ir::KnownValue known(const ir::Attrs& attrs) {
  ir::SymShape extents = attr_dims(attrs, "extents");
  const auto count = static_cast<int64_t>(extents.size());
  return {DType::kInt64, {count}, std::move(extents)};
}

void reference(const ir::ReferenceContext& context) {
  run_host(host_ops::find_host_op(ir::kBindExtents), context);
}

}  // namespace bind_extents

std::vector<ir::OpDef> family() {
  ir::OpDef values;
  values.name = "extents";
  values.min_inputs = values.max_inputs = 0;
  values.pattern = ir::Pattern::kInjective;
  values.infer = &extents::infer;
  values.known = &extents::known;
  values.reference = &extents::reference;
  values.compute = &extents::compute;
  values.doc = "i64 [n]: the dims of attribute values (dims, required)";
  ir::OpDef places = values;
  places.name = "iota";
  places.known = nullptr;
  places.infer = &iota::infer;
  places.reference = &iota::reference;
  places.compute = &iota::compute;
  places.doc = "i64 [extent]: 0, 1 ... extent - 1; attribute extent (dim, required)";
  ir::OpDef bound;
  bound.name = ir::kBindExtents;
  bound.min_inputs = bound.max_inputs = 1;
  bound.infer = &bind_extents::infer;
  bound.known = &bind_extents::known;
  bound.reference = &bind_extents::reference;
  bound.doc =
      "the numbers (i64 [n]), which in a run are the dims of attribute extents (dims, required): symbols of "
      "the run (RunSymbol)";
  return {values, places, bound};
}

}  // namespace tensormill::ops::extent_ops
