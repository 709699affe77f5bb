/// pad: elements added around a tensor, or (negative pads) cut off.
#include <algorithm>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/narrow.h"

namespace tensormill::ops::pad_ops {

std::vector<ir::OpDef> family();

namespace {

enum class Mode : uint8_t { kConstant, kReflect, kEdge, kWrap };

Mode read_mode(const ir::Attrs& attrs) {
  const std::string name = attr_string(attrs, "mode", "constant");
  if (name == "constant") return Mode::kConstant;
  if (name == "reflect") return Mode::kReflect;
  if (name == "edge") return Mode::kEdge;
  if (name == "wrap") return Mode::kWrap;
  fail("attribute mode is \"" + name + "\", expected constant, reflect, edge or wrap");
}

ir::SymShape read_pads(const ir::Attrs& attrs, size_t rank) {
  static_cast<void>(attr_dims(attrs, "pads"));
  return attr_dims(attrs, "pads", 2 * rank, 0, -kMaxTensorBytes, kMaxTensorBytes);
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const size_t rank = x.shape.size();
  const ir::SymShape pads = read_pads(context.attrs, rank);
  const Mode mode = read_mode(context.attrs);
  static_cast<void>(attr_float(context.attrs, "value", 0));
  if (has_input(context, 1) && num_elements(input_like_first(context, 1).shape) != 1) {
    fail("input 1 has shape " + to_string(input(context, 1).shape) + ", expected 1 element");
  }
  ir::SymShape out = x.shape;
  for (size_t d = 0; d < rank; ++d) {
    out[d] += pads[d] + pads[d + rank];
    if (out[d] < 0) {
      fail("pads " + to_string(pads[d]) + " and " + to_string(pads[d + rank]) + " cut more than the extent " +
           to_string(x.shape[d]) + " of dimension " + std::to_string(d));
    }
    if (mode != Mode::kConstant && x.shape[d] == 0 && out[d] > 0) {
      fail("dimension " + std::to_string(d) + " has extent 0, and there is nothing to fill " +
           to_string(out[d]) + " elements with");
    }
    if (mode == Mode::kReflect && max(pads[d], pads[d + rank]) >= max(x.shape[d], 1)) {
      fail("a reflecting pad of " + to_string(max(pads[d], pads[d + rank])) + " needs a larger extent than " +
           to_string(x.shape[d]) + " in dimension " + std::to_string(d));
    }
  }
  return {made_type(x.dtype, out)};
}

/// Where output position `at` (relative to the input's first element) comes from.
int64_t source(Mode mode, int64_t at, int64_t extent) {
  if (mode == Mode::kEdge) return std::clamp<int64_t>(at, 0, extent - 1);
  if (mode == Mode::kWrap) return (at % extent + extent) % extent;
  if (at < 0) return -at;
  return at >= extent ? 2 * (extent - 1) - at : at;
}

Expr source(Mode mode, const Expr& at, const ir::SymInt& extent) {
  if (mode == Mode::kWrap) return te::floormod(at, Expr(extent));
  if (mode == Mode::kEdge) return clamp_index(at, extent);
  const Expr up = te::max(at, -at);
  return clamp_index(te::min(up, Expr(2 * (extent - 1)) - up), extent);
}

/// The fill of attribute value in the dtype of the output.
Tensor fill_value(const ir::Attrs& attrs, DType dtype) {
  Tensor fill(dtype, {1});
  const double value = attr_float(attrs, "value", 0);
  if (is_float(dtype)) {
    fill.set_element(0, value);
  } else {
    fill.set_element_int(0, dtype == DType::kBool ? value != 0 : saturate_to(dtype, value));
  }
  return fill;
}

void set_fill(const ir::ReferenceContext& context, int64_t position) {
  Tensor& out = *context.outputs[0];
  if (context.inputs.size() > 1 && context.inputs[1] != nullptr) {
    copy_element(*context.inputs[1], 0, out, position);
  } else {
    copy_element(fill_value(context.attrs, out.dtype()), 0, out, position);
  }
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Shape& in = x.shape();
  const std::vector<int64_t> pads = read_pads(context.attrs, in.size());
  const Mode mode = read_mode(context.attrs);
  const Shape strides = row_major_strides(in);
  for_each_index(context.outputs[0]->shape(), [&](int64_t position, const Shape& index) {
    int64_t from = 0;
    bool inside = true;
    for (size_t d = 0; d < in.size(); ++d) {
      int64_t at = index[d] - pads[d];
      if (mode != Mode::kConstant) at = source(mode, at, in[d]);
      inside = inside && at >= 0 && at < in[d];
      from += at * strides[d];
    }
    if (inside) {
      copy_element(x, from, *context.outputs[0], position);
    } else {
      set_fill(context, position);
    }
  });
}

Expr fill_expr(const ir::ComputeContext& context, DType dtype) {
  if (context.inputs.size() > 1 && context.inputs[1] != nullptr) {
    return te::read(context.inputs[1], std::vector<Expr>(context.input_types[1].shape.size(), Expr(0)));
  }
  const double value = attr_float(context.attrs, "value", 0);
  if (is_narrow(dtype)) {
    const Tensor fill = fill_value(context.attrs, dtype);
    return te::int_imm(storage_dtype(dtype), static_cast<const uint8_t*>(fill.data())[0]);
  }
  if (is_float(dtype)) return te::float_imm(dtype, value);
  return dtype == DType::kBool ? te::bool_imm(value != 0) : te::int_imm(dtype, saturate_to(dtype, value));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& in = context.input_types[0].shape;
  const size_t rank = in.size();
  const ir::SymShape pads = read_pads(context.attrs, rank);
  const Mode mode = read_mode(context.attrs);
  const ir::SymShape before(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  const ir::SymShape after(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  if (mode == Mode::kConstant) {
    const te::Tensor padded =
        padded_stage(context.name, context.inputs[0], in, before, after, fill_expr(context, out.dtype));
    if (padded != context.inputs[0]) return {padded};
  }
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> index = axes;
    for (size_t d = 0; d < rank; ++d) {
      if (!is_proven(ir::Relation::kEqual, before[d], 0) || !is_proven(ir::Relation::kEqual, after[d], 0))
        index[d] = source(mode, axes[d] - Expr(before[d]), in[d]);
    }
    return te::read(context.inputs[0], index);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "pad";
  def.max_inputs = 2;
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "inputs x, value (optional, 1 element); attributes pads (ints, required: begins of all dims, then "
      "ends; negative ones cut), mode (string: constant, reflect, edge, wrap; constant), value (float, 0: "
      "when input 1 is not given)";
  return {def};
}

}  // namespace tensormill::ops::pad_ops
