/// scatter_elements: a copy in which elements at indices that are data are replaced or combined.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::scatter_elements_ops {

std::vector<ir::OpDef> family();

namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMin, kMax };

Reduction reduction_of(const ir::Attrs& attrs) {
  const std::string name = attr_string(attrs, "reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  fail("attribute reduction is \"" + name + "\", expected none, add, mul, min or max");
}

/// `spreads`: indices of an extent of one along another axis hold for all of it.
template <bool spreads>
std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const bool replaces = reduction_of(context.attrs) == Reduction::kNone;
  const ir::ValueType& x = input_of(context, 0, replaces ? kAnyType : kNumeric);
  const ir::ValueType& indices = input_of(context, 1, kIndexTypes);
  const ir::ValueType& updates = input(context, 2);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), x.shape.size());
  ir::SymShape each = indices.shape;
  if (spreads && updates.shape.size() == each.size()) {
    for (size_t d = 0; d < each.size(); ++d) {
      if (d == axis || is_proven(ir::Relation::kEqual, each[d], updates.shape[d])) continue;
      if (each[d] == 1) each[d] = updates.shape[d];
    }
  }
  if (updates.dtype != x.dtype || !demand_equal(updates.shape, each))
    fail("the updates are " + to_string(updates) + ", expected " + to_string(ir::ValueType{x.dtype, each}));
  bool fits = each.size() == x.shape.size();
  for (size_t d = 0; fits && d < x.shape.size(); ++d)
    fits = d == axis || demand(ir::Relation::kLessEqual, each[d], x.shape[d]);
  if (!fits) {
    fail("the indices have shape " + to_string(each) + ", the data " + to_string(x.shape) + "; only axis " +
         std::to_string(axis) + " may be larger");
  }
  // In one relation: of extents that only a run knows both may be 0.
  const ir::SymInt &extent = x.shape[axis], count = num_elements(indices.shape);
  const bool may_be_none = !extent.is_constant() || extent.hint() == 0;
  if (may_be_none && !demand(ir::Relation::kLessEqual, count, count * extent))
    fail("axis " + std::to_string(axis) + " has extent 0, and elements are scattered to it");
  return {made_type(x.dtype, x.shape)};
}

/// Calls f(element of x, element of the updates) for each update in row-major order.
template <typename F>
void for_each_update(const ir::ReferenceContext& context, F&& f) {
  const Tensor& indices = *context.inputs[1];
  const Shape& shape = context.inputs[0]->shape();
  const size_t axis = normal_axis(attr_int(context.attrs, "axis", 0), shape.size());
  const Shape strides = row_major_strides(shape);
  for_each_index(indices.shape(), [&](int64_t position, const Shape& index) {
    int64_t to = checked_index(indices.element_as_int(position), shape[axis]) * strides[axis];
    for (size_t d = 0; d < index.size(); ++d) to += d == axis ? 0 : index[d] * strides[d];
    f(to, position);
  });
}

double combined(Reduction reduction, double a, double b) {
  if (reduction == Reduction::kAdd) return a + b;
  if (reduction == Reduction::kMul) return a * b;
  return reduction == Reduction::kMin ? min_double(a, b) : max_double(a, b);
}

int64_t combined(Reduction reduction, int64_t a, int64_t b, bool u) {
  if (reduction == Reduction::kAdd) return int_add(a, b);
  if (reduction == Reduction::kMul) return int_mul(a, b);
  return int_less(a, b, u) == (reduction == Reduction::kMin) ? a : b;
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& updates = *context.inputs[2];
  Tensor& out = *context.outputs[0];
  const Reduction reduction = reduction_of(context.attrs);
  if (reduction == Reduction::kNone) {
    for (int64_t i = 0; i < x.num_elements(); ++i) copy_element(x, i, out, i);
    for_each_update(context, [&](int64_t to, int64_t from) { copy_element(updates, from, out, to); });
  } else if (is_float(x.dtype())) {
    std::vector<double> values = to_doubles(x);
    const std::vector<double> news = to_doubles(updates);
    for_each_update(context, [&](int64_t to, int64_t from) {
      double& value = values[static_cast<size_t>(to)];
      value = combined(reduction, value, news[static_cast<size_t>(from)]);
    });
    store_doubles(out, values);
  } else {
    std::vector<int64_t> values = to_ints(x);
    const std::vector<int64_t> news = to_ints(updates);
    for_each_update(context, [&](int64_t to, int64_t from) {
      int64_t& value = values[static_cast<size_t>(to)];
      value = combined(reduction, value, news[static_cast<size_t>(from)], is_unsigned(x.dtype()));
    });
    store_ints(out, values);
  }
}

/// What the two stages share: where update k of the output's row stands, and whether it goes to the output.
class Updates {
public:
  Updates(const ir::ComputeContext& context, size_t axis)
      : context_(context),
        axis_(axis),
        shape_(context.input_types[1].shape),
        extent_(context.input_types[0].shape[axis]) {}

  std::vector<Expr> position(const std::vector<Expr>& axes, const Expr& k) const {
    std::vector<Expr> at = axes;
    for (size_t d = 0; d < at.size(); ++d) at[d] = d == axis_ ? k : clamp_index(axes[d], shape_[d]);
    return at;
  }

  Expr hits(const std::vector<Expr>& axes, const Expr& k) const {
    const Expr index = checked_index(te::read(context_.inputs[1], position(axes, k)), extent_);
    Expr hit = index == axes[axis_];
    for (size_t d = 0; d < axes.size(); ++d) {
      if (d != axis_) hit = te::logical_and(hit, axes[d] < Expr(shape_[d]));
    }
    return hit;
  }

  Expr value(const std::vector<Expr>& axes, const Expr& k) const {
    return te::read(context_.inputs[2], position(axes, k));
  }

  ir::SymShape extents() const { return {shape_[axis_]}; }

private:
  const ir::ComputeContext& context_;
  size_t axis_;
  ir::SymShape shape_;
  ir::SymInt extent_;
};

/// The last update that goes to an element wins.
te::Tensor replace(const ir::ComputeContext& context, const Updates& updates) {
  const ir::ValueType& out = context.output_types[0];
  const te::Tensor last =
      reduce_safe(context.name + "_last", te::ReduceOp::kMax, out.shape, updates.extents(), DType::kInt64,
                  [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
                    return te::select(updates.hits(axes, k[0]), k[0], Expr(-1));
                  });
  return compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr k = te::read(last, axes);
    const Expr from = te::check_index(te::max(k, Expr(0)), Expr(updates.extents()[0]));
    return te::select(k < Expr(0), te::read(context.inputs[0], axes), updates.value(axes, from));
  });
}

te::ReduceOp reduce_op(Reduction reduction) {
  if (reduction == Reduction::kAdd) return te::ReduceOp::kSum;
  if (reduction == Reduction::kMul) return te::ReduceOp::kProduct;
  return reduction == Reduction::kMin ? te::ReduceOp::kMin : te::ReduceOp::kMax;
}

Expr identity_of(Reduction reduction, const Expr& like) {
  if (reduction == Reduction::kMin) return largest_of(like->type.dtype);
  if (reduction == Reduction::kMax) return lowest_of(like->type.dtype);
  return constant_like(like, reduction == Reduction::kMul ? 1 : 0);
}

Expr combined(Reduction reduction, const Expr& a, const Expr& b) {
  if (reduction == Reduction::kAdd) return a + b;
  if (reduction == Reduction::kMul) return a * b;
  return reduction == Reduction::kMin ? te::min(a, b) : te::max(a, b);
}

te::Tensor combine(const ir::ComputeContext& context, const Updates& updates, Reduction reduction) {
  const ir::ValueType& out = context.output_types[0];
  const te::Tensor change =
      reduce_safe(context.name + "_change", reduce_op(reduction), out.shape, updates.extents(),
                  compute_dtype(out.dtype), [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
                    const Expr value = widen(updates.value(axes, k[0]));
                    return te::select(updates.hits(axes, k[0]), value, identity_of(reduction, value));
                  });
  return compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const Expr value = combined(reduction, widen(te::read(context.inputs[0], axes)), te::read(change, axes));
    return narrow(value, out.dtype);
  });
}

/// Each output element looks at all updates of its row: independent elements, quadratic in the extent.
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const Reduction reduction = reduction_of(context.attrs);
  if (is_empty(context.input_types[1].shape)) return compute_copy(context);
  const Updates updates(context, normal_axis(attr_int(context.attrs, "axis", 0), out.shape.size()));
  return {reduction == Reduction::kNone ? replace(context, updates) : combine(context, updates, reduction)};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "scatter_elements";
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kOpaque;
  def.tolerance = 1e-5;
  def.infer = &infer<false>;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "inputs x, indices (i32 or i64, x's rank, negative ones count from the end), updates (the indices' "
      "shape): x with out[i,..indices[i,j,..],..] = updates[i,j,..] along attribute axis (int, 0); attribute "
      "reduction (string: none, add, mul, min, max; none: the last update wins)";
  ir::OpDef host;
  host.name = "scatter";
  host.min_inputs = host.max_inputs = 3;
  host.infer = &infer<true>;
  host.reference = [](const ir::ReferenceContext& each) {
    run_host(host_ops::find_host_op("scatter"), each);
  };
  host.doc =
      "scatter_elements, on the host: linear, where the kernel is quadratic; indices of an extent of one "
      "along another axis hold for all of it";
  return {def, host};
}

}  // namespace tensormill::ops::scatter_elements_ops
