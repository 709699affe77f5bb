/// append_growing, set_growing, take_growing: values that a loop makes larger in each iteration, in buffers
/// of the executor (runtime/host_ops/growing_steps.h says what they do).
#include "compiler/ops/steps/executor_step.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::growing_step_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer_append(const ir::InferContext& context) {
  attr_int(context.attrs, "buffer");
  if (!(input(context, 0) == ir::ValueType{DType::kInt64, {1}}))
    fail("the row is " + to_string(input(context, 0)));
  return {made_type(DType::kInt64, {1})};
}

std::vector<ir::ValueType> infer_set(const ir::InferContext& context) {
  attr_int(context.attrs, "buffer");
  return {made_type(DType::kInt64, {input(context, 0).shape.size()})};
}

std::vector<ir::ValueType> infer_take(const ir::InferContext& context) {
  attr_int(context.attrs, "buffer");
  const size_t inputs = context.inputs.size();
  if (inputs != 1 && inputs != 3) fail(std::to_string(inputs) + " operands, expected 1 or 3");
  const ir::SymShape shape = attr_dims(context.attrs, "result");
  const DType dtype = attr_dtype(context.attrs, "dtype");
  if (inputs == 3 && (input(context, 2).dtype != dtype || input(context, 2).shape.size() != shape.size()))
    fail("the initial value is " + to_string(input(context, 2)) + ", the result " + to_string(shape));
  return {made_type(dtype, shape)};
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {executor_step(
              "append_growing", 1, -1, &infer_append,
              "row (i64 [1]), parts -> row + 1: part i is row `row` of growing buffer `buffer` + i (int)"),
          executor_step(
              "set_growing", 1, -1, &infer_set,
              "x, values that are computed before -> its extents (i64 [rank]): x is what growing buffer "
              "`buffer` (int) holds from now on"),
          executor_step(
              "take_growing", 1, 3, &infer_take,
              "numbers of the step before (i64 [n]), number of an iteration and initial value (both "
              "optional) -> what growing buffer `buffer` (int) holds, or, where the number is 0, the initial "
              "value; attributes result (its shape: dims), dtype")};
}

}  // namespace tensormill::ops::growing_step_ops
