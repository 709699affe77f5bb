/// attention: softmax(Q K^T * scale + masks) V for heads that stand side by side in the columns of Q, K and V
/// (Vaswani et al., "Attention Is All You Need", 2017, section 3.2).
#include <cmath>
#include <limits>

#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::attention_ops {

std::vector<ir::OpDef> family();

namespace {

constexpr int kMostMasks = 4;

template <typename Dims>
struct Heads {
  typename Dims::value_type batch, queries, keys;
  int64_t heads, width;
  ir::Ints offsets;  ///< first column of q, k and v
  double scale;
  Dims scores() const { return {batch, heads, queries, keys}; }
};

template <typename Dims>
Heads<Dims> read_heads(const ir::Attrs& attrs, const Dims& q, const Dims& k) {
  Heads<Dims> h;
  h.batch = q[0];
  h.queries = q[1];
  h.keys = k[1];
  h.heads = attr_int(attrs, "heads");
  h.width = attr_int(attrs, "width");
  h.offsets = attr_ints(attrs, "offsets", 3, 0, 0, kMaxWindow);
  h.scale = attr_float(attrs, "scale", 1);
  return h;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& q = input_of(context, 0, kFloats);
  for (size_t i = 0; i < 3; ++i) {
    const ir::SymShape& shape = input_like_first(context, i).shape;
    if (shape.size() != 3)
      fail("input " + std::to_string(i) + " has rank " + std::to_string(shape.size()) + ", expected 3");
  }
  const ir::SymShape &k = context.inputs[1]->shape, &v = context.inputs[2]->shape;
  const auto agree = [](const ir::SymInt& a, const ir::SymInt& b) {
    return demand(ir::Relation::kEqual, a, b);
  };
  if (!agree(k[0], q.shape[0]) || !agree(v[0], q.shape[0]) || !agree(k[1], v[1])) {
    fail("shapes " + to_string(q.shape) + ", " + to_string(k) + " and " + to_string(v) +
         " do not agree in batch and keys");
  }
  const Heads<ir::SymShape> h = read_heads(context.attrs, q.shape, k);
  if (h.heads < 0 || h.width < 0 || h.heads > kMaxWindow || h.width > kMaxWindow)
    fail("attributes heads and width are " + std::to_string(h.heads) + " and " + std::to_string(h.width));
  for (size_t i = 0; i < 3; ++i) {
    if (h.offsets[i] + h.heads * h.width > context.inputs[i]->shape[2]) {
      fail("input " + std::to_string(i) + " has " + std::to_string(context.inputs[i]->shape[2]) +
           " columns, " + std::to_string(h.heads) + " heads of " + std::to_string(h.width) + " from column " +
           std::to_string(h.offsets[i]) + " on do not fit");
    }
  }
  for (size_t i = 3; i < context.inputs.size(); ++i) {
    if (!has_input(context, i)) continue;
    const ir::ValueType& mask = *context.inputs[i];
    if (mask.dtype != compute_dtype(q.dtype)) input_like_first(context, i);
    if (broadcast_checked(mask.shape, h.scores()) != h.scores())
      fail("mask has shape " + to_string(mask.shape) + ", which does not broadcast to " +
           to_string(h.scores()));
  }
  return {made_type(q.dtype, {h.batch, h.queries, h.heads * h.width})};
}

/// The inputs of masks that are given.
template <typename Inputs>
std::vector<size_t> masks_of(const Inputs& inputs) {
  std::vector<size_t> masks;
  for (size_t i = 3; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr) masks.push_back(i);
  }
  return masks;
}

void reference(const ir::ReferenceContext& context) {
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Shape &q_shape = context.inputs[0]->shape(), &k_shape = context.inputs[1]->shape(),
              &v_shape = context.inputs[2]->shape();
  const Heads<Shape> h = read_heads(context.attrs, q_shape, k_shape);
  const std::vector<double> q = to_doubles(*context.inputs[0]), k = to_doubles(*context.inputs[1]),
                            v = to_doubles(*context.inputs[2]);
  const std::vector<size_t> masks = masks_of(context.inputs);
  std::vector<Shape> strides;
  for (const size_t mask : masks)
    strides.push_back(broadcast_strides(context.inputs[mask]->shape(), h.scores()));
  std::vector<double> result(static_cast<size_t>(out.num_elements()));
  std::vector<double> scores(static_cast<size_t>(h.keys));
  for_each_index({h.batch, h.heads, h.queries}, [&](int64_t, const Shape& at) {
    const int64_t head = at[1] * h.width, row = at[0] * h.queries + at[2];
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t t = 0; t < h.keys; ++t) {
      double score = 0;
      for (int64_t d = 0; d < h.width; ++d) {
        score += q[static_cast<size_t>(row * q_shape[2] + h.offsets[0] + head + d)] *
                 k[static_cast<size_t>((at[0] * h.keys + t) * k_shape[2] + h.offsets[1] + head + d)];
      }
      score *= h.scale;
      for (size_t i = 0; i < masks.size(); ++i) {
        const Shape& step = strides[i];
        score += context.inputs[masks[i]]->element_as_double(at[0] * step[0] + at[1] * step[1] +
                                                             at[2] * step[2] + t * step[3]);
      }
      scores[static_cast<size_t>(t)] = score;
      most = max_double(most, score);
    }
    for (double& score : scores) sum += score = std::exp(score - most);
    for (int64_t d = 0; d < h.width; ++d) {
      double mix = 0;
      for (int64_t t = 0; t < h.keys; ++t) {
        mix += scores[static_cast<size_t>(t)] *
               v[static_cast<size_t>((at[0] * h.keys + t) * v_shape[2] + h.offsets[2] + head + d)];
      }
      result[static_cast<size_t>(row * h.heads * h.width + head + d)] = mix / sum;
    }
  });
  store_doubles(out, result);
}

/// Keys (transposed) and values of a head as stages of their own, so that a schedule can hold them in cache;
/// scores, their largest, exponentials, their sum, the mix of values; last the quotient, heads side by side
/// again.
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const DType dtype = compute_dtype(out.dtype);
  const Heads<ir::SymShape> h =
      read_heads(context.attrs, context.input_types[0].shape, context.input_types[1].shape);
  const std::string& name = context.name;
  using Index = std::vector<Expr>;
  const auto element = [&](size_t input, const Expr& batch, const Expr& row, const Expr& head,
                           const Expr& d) {
    const Expr column = head * Expr(h.width) + d;
    const int64_t offset = h.offsets[input];
    return widen(te::read(context.inputs[input], {batch, row, offset == 0 ? column : column + Expr(offset)}));
  };
  const te::Tensor keys =
      compute_safe(name + "_keys", {h.batch, h.heads, h.width, h.keys}, dtype,
                   [&](const Index& at) { return element(1, at[0], at[3], at[1], at[2]); });
  const te::Tensor values =
      compute_safe(name + "_values", {h.batch, h.heads, h.keys, h.width}, dtype,
                   [&](const Index& at) { return element(2, at[0], at[2], at[1], at[3]); });
  const te::Tensor scores = reduce_safe(
      name + "_scores", te::ReduceOp::kSum, h.scores(), {h.width}, dtype,
      [&](const Index& at, const Index& d) {
        return element(0, at[0], at[2], at[1], d[0]) * te::read(keys, {at[0], at[1], d[0], at[3]});
      });
  const std::vector<size_t> masks = masks_of(context.inputs);
  const te::Tensor logits = compute_safe(name + "_logits", h.scores(), dtype, [&](const Index& at) {
    Expr sum = te::read(scores, at) * te::imm_like({dtype, 1}, h.scale);
    for (const size_t mask : masks)
      sum =
          sum + widen(read_broadcast(context.inputs[mask], context.input_types[mask].shape, h.scores(), at));
    return sum;
  });
  const ir::SymShape rows = {h.batch, h.heads, h.queries};
  const auto at_key = [](Index row, const Expr& t) {
    row.push_back(t);
    return row;
  };
  const te::Tensor most =
      reduce_safe(name + "_max", te::ReduceOp::kMax, rows, {h.keys}, dtype,
                  [&](const Index& row, const Index& t) { return te::read(logits, at_key(row, t[0])); });
  const te::Tensor powers = compute_safe(name + "_exp", h.scores(), dtype, [&](const Index& at) {
    const Expr difference = te::read(logits, at) - te::read(most, {at[0], at[1], at[2]});
    return masks.empty() ? te::make(te::ExprOp::kExp, {difference}) : weight_exp(difference);
  });
  const te::Tensor sums =
      reduce_safe(name + "_sum", te::ReduceOp::kSum, rows, {h.keys}, dtype,
                  [&](const Index& row, const Index& t) { return te::read(powers, at_key(row, t[0])); });
  const te::Tensor mix = reduce_safe(
      name + "_mix", te::ReduceOp::kSum, {h.batch, h.heads, h.queries, h.width}, {h.keys}, dtype,
      [&](const Index& at, const Index& t) {
        return te::read(powers, {at[0], at[1], at[2], t[0]}) * te::read(values, {at[0], at[1], t[0], at[3]});
      });
  return {compute_safe(name, out.shape, out.dtype, [&](const Index& at) {
    const Expr head = te::floordiv(at[2], Expr(h.width)), d = te::floormod(at[2], Expr(h.width));
    const Expr inverse = te::imm_like({dtype, 1}, 1) / te::read(sums, {at[0], head, at[1]});
    return narrow(te::read(mix, {at[0], head, at[1], d}) * inverse, out.dtype);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "attention";
  def.min_inputs = 3;
  def.max_inputs = 3 + kMostMasks;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 2e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "softmax(Q K^T * scale + masks) V per head, heads side by side: inputs q [N,S,..], k and v [N,T,..], "
      "up to four masks broadcasting to [N,heads,S,T]; head h is columns offsets[i] + h*width on of input i; "
      "attributes heads, width (ints, required), scale (float, 1), offsets (3 ints, 0); result "
      "[N,S,heads*width]";
  return {def};
}

}  // namespace tensormill::ops::attention_ops
