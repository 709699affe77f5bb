/// choose and enter_branch: where the branches of a flat graph end and begin (ir/branches.h).
#include <cstring>

#include "compiler/ir/branches.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/error.h"

namespace tensormill::ops::branch_step_ops {

std::vector<ir::OpDef> family();

namespace {

void check_condition(const ir::InferContext& context, size_t index) {
  const ir::ValueType& condition = input_of(context, index, kBools);
  if (condition.shape.size() != 1 || !condition.shape.is_constant() || condition.shape[0] != 1)
    fail("the condition has shape " + to_string(condition.shape) + ", expected [1]");
}

/// The shape of attribute shape, which says in the symbols of the outside, or of the branch, what x has.
ir::SymShape said_shape(const ir::InferContext& context, const ir::ValueType& x) {
  ir::SymShape shape = attr_dims(context.attrs, "shape");
  if (shape.size() != x.shape.size()) fail("x has shape " + to_string(x.shape) + " for " + to_string(shape));
  return shape;
}

std::vector<ir::ValueType> infer_choose(const ir::InferContext& context) {
  check_condition(context, 0);
  const ir::ValueType &yes = input(context, 1), &no = input(context, 2);
  if (yes.dtype != no.dtype || yes.shape.size() != no.shape.size())
    fail("the branches give " + to_string(yes) + " and " + to_string(no));
  if (context.attrs.has("shape")) return {made_type(yes.dtype, said_shape(context, yes))};
  if (yes.shape != no.shape) fail("the branches give " + to_string(yes) + " and " + to_string(no));
  return {yes};
}

void reference_choose(const ir::ReferenceContext& context) {
  const Tensor& taken = *context.inputs[context.inputs[0]->element_as_int(0) != 0 ? 1 : 2];
  if (taken.num_bytes() != context.outputs[0]->num_bytes())
    throw Error(ErrorCode::kTensorData, "the branch that is taken does not take these extents");
  if (taken.num_bytes() != 0) std::memcpy(context.outputs[0]->data(), taken.data(), taken.num_bytes());
}

std::vector<ir::ValueType> infer_enter(const ir::InferContext& context) {
  check_condition(context, 1);
  const ir::ValueType& x = input(context, 0);
  return {made_type(x.dtype, said_shape(context, x))};
}

void reference_enter(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  if (x.num_bytes() != context.outputs[0]->num_bytes())
    throw Error(ErrorCode::kTensorData, "a branch does not take these extents");
  copy_reference(context);
}

/// What is known outside is known in the branch, in its own symbols.
ir::KnownValue known_inside(const ir::Attrs& attrs) {
  if (!attrs.has("values")) return {};
  return {attrs.dtype_of("dtype"), attr_dims(attrs, "shape").hints(), attr_dims(attrs, "values")};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef choose;
  choose.name = ir::kChoose;
  choose.min_inputs = choose.max_inputs = 3;
  choose.infer = &infer_choose;
  choose.reference = &reference_choose;
  choose.doc =
      "input 1 where the condition (input 0, bool [1]) holds, else input 2: what is computed for the other "
      "one alone does not run; attributes shape (dims, optional: of the result, for extents that differ), "
      "then_branch, else_branch (ints, optional: the numbers of branches with symbols of their own)";
  ir::OpDef enter;
  enter.name = ir::kEnterBranch;
  enter.min_inputs = enter.max_inputs = 2;
  enter.infer = &infer_enter;
  enter.reference = &reference_enter;
  enter.known = &known_inside;
  enter.compute = &compute_copy;
  enter.is_view = true;
  enter.doc =
      "x as a branch of the condition (input 1, bool [1]) sees it: attributes shape (dims, in the branch's "
      "symbols), values, dtype (dims and a type, optional: its elements, where they are known)";
  return {choose, enter};
}

}  // namespace tensormill::ops::branch_step_ops
