/// gather, gather_elements: elements at indices that are data.
#include <cstring>

#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::gather_ops {

std::vector<ir::OpDef> family();

namespace {

/// Where something is gathered from an axis, that axis needs an element: no index could be in range.
void require_elements(const ir::ValueType& x, size_t axis, const ir::SymShape& out) {
  // 0 where there is nothing to gather; the number of all elements may be a long formula.
  ir::SymInt some = 1;
  for (const ir::SymInt& extent : out) some = min(some, extent);
  if (!demand(ir::Relation::kLessEqual, some, x.shape[axis])) {
    fail("axis " + std::to_string(axis) + " has extent 0, and " + to_string(num_elements(out)) +
         " elements are gathered from it");
  }
}

std::vector<ir::ValueType> infer_gather(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType& indices = input_of(context, 1, kIndexTypes);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.shape.size());
  ir::SymShape out(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices.shape.begin(), indices.shape.end());
  out.insert(out.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  const ir::ValueType type = made_type(x.dtype, out);
  require_elements(x, axis, out);
  return {type};
}

std::vector<ir::ValueType> infer_elements(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType& indices = input_of(context, 1, kIndexTypes);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.shape.size());
  bool fits = indices.shape.size() == x.shape.size();
  for (size_t d = 0; fits && d < x.shape.size(); ++d) fits = d == axis || indices.shape[d] <= x.shape[d];
  if (!fits) {
    fail("the indices have shape " + to_string(indices.shape) + ", the data " + to_string(x.shape) +
         "; only axis " + std::to_string(axis) + " may be larger");
  }
  require_elements(x, axis, indices.shape);
  return {made_type(x.dtype, indices.shape)};
}

void reference_gather(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& indices = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const AxisView view =
      view_axis(x.shape(), normal_axis(attr_int(context.attrs, "axis", 0), x.shape().size()));
  const int64_t count = indices.num_elements();
  const std::vector<int64_t> wanted = to_ints(indices);
  const size_t bytes = static_cast<size_t>(view.inner) * dtype_bytes(x.dtype());
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = checked_index(wanted[static_cast<size_t>(k)], view.extent);
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      std::memcpy(
          static_cast<std::byte*>(out.data()) + static_cast<size_t>(outer * count + k) * bytes,
          static_cast<const std::byte*>(x.data()) + static_cast<size_t>(outer * view.extent + at) * bytes,
          bytes);
    }
  }
}

template <typename Unit>
void gather_units(const Tensor& x, const std::vector<int64_t>& wanted, size_t axis, Tensor& out) {
  const int64_t extent = x.shape()[axis], step = row_major_strides(x.shape())[axis];
  Shape strides = row_major_strides(x.shape());
  strides[axis] = 0;
  const Unit* source = static_cast<const Unit*>(x.data());
  Unit* target = static_cast<Unit*>(out.data());
  for_each_strided<1>(out.shape(), {strides}, [&](int64_t position, const std::array<int64_t, 1>& from) {
    target[position] = source[from[0] + checked_index(wanted[static_cast<size_t>(position)], extent) * step];
  });
}

void reference_elements(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& indices = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.shape().size());
  const std::vector<int64_t> wanted = to_ints(indices);
  switch (dtype_bytes(x.dtype())) {
    case 1:
      return gather_units<uint8_t>(x, wanted, axis, out);
    case 2:
      return gather_units<uint16_t>(x, wanted, axis, out);
    case 4:
      return gather_units<uint32_t>(x, wanted, axis, out);
    default:
      return gather_units<uint64_t>(x, wanted, axis, out);
  }
}

bool part_of_elements(ir::PartContext& context) {
  return part_beside_axis(context,
                          normal_axis(attr_int(context.attrs, "axis", 0), context.output.shape.size()));
}

bool part_of_gather(ir::PartContext& context) {
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), context.inputs[0]->shape.size());
  const size_t index_rank = context.inputs[1]->shape.size();
  ir::Part part = context.wanted;
  const bool of_indices = part.axis >= axis && part.axis < axis + index_rank;
  if (of_indices) {
    part.axis -= axis;
  } else if (part.axis >= axis) {
    part.axis = part.axis - index_rank + 1;
  }
  context.parts[of_indices ? 1 : 0] = part;
  return true;
}

TeOutputs compute_gather(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& x = context.input_types[0].shape;
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.size());
  const auto first = static_cast<std::ptrdiff_t>(axis);
  const auto last = first + static_cast<std::ptrdiff_t>(context.input_types[1].shape.size());
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const std::vector<Expr> at(axes.begin() + first, axes.begin() + last);
    std::vector<Expr> index(axes.begin(), axes.begin() + first);
    index.push_back(checked_index(te::read(context.inputs[1], at), x[axis]));
    index.insert(index.end(), axes.begin() + last, axes.end());
    return te::read(context.inputs[0], index);
  })};
}

TeOutputs compute_elements(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& x = context.input_types[0].shape;
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.size());
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr at = checked_index(te::read(context.inputs[1], axes), x[axis]);
    return te::read(context.inputs[0], replaced(axes, axis, at));
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef gather;
  gather.name = "gather";
  gather.min_inputs = 2;
  gather.max_inputs = 2;
  gather.pattern = ir::Pattern::kInjective;
  gather.infer = &infer_gather;
  gather.reference = &reference_gather;
  gather.part = &part_of_gather;
  gather.compute = &compute_gather;
  gather.doc =
      "inputs x, indices (i32 or i64, negative ones count from the end): slices of x along attribute axis "
      "(int, 0) at the indices; an index out of range is an error of the run";
  ir::OpDef elements = gather;
  elements.name = "gather_elements";
  elements.infer = &infer_elements;
  elements.reference = &reference_elements;
  elements.part = &part_of_elements;
  elements.compute = &compute_elements;
  elements.doc =
      "inputs x, indices (i32 or i64, x's rank): out[i,j,..] = x[i,..indices[i,j,..]..] with the index at "
      "attribute axis (int, 0)";
  return {gather, elements};
}

}  // namespace tensormill::ops::gather_ops
