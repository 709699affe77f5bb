/// depth_to_space: channels become pixels between the pixels.
#include "compiler/ops/map_layout.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/windows/window.h"

namespace tensormill::ops::depth_to_space_ops {

std::vector<ir::OpDef> family();

namespace {

/// Spatial dimension d is axis d + 2.
struct Blocks {
  ir::Ints sides;
  ir::Ints crops_begin, crops_end;
  int64_t phases = 1;       ///< pixels of a block
  ir::SymInt channels = 0;  ///< of each phase
};

Blocks read_blocks(const ir::Attrs& attrs, const ir::SymShape& x) {
  Blocks blocks;
  const size_t rank = attr_ints(attrs, "blocks").size();
  blocks.sides = attr_ints(attrs, "blocks", rank, 1, 1, kMaxWindow);
  const ir::Ints crops = attr_ints(attrs, "crops", 2 * rank, 0, 0, kMaxTensorBytes);
  const auto middle = crops.begin() + static_cast<std::ptrdiff_t>(rank);
  blocks.crops_begin.assign(crops.begin(), middle);
  blocks.crops_end.assign(middle, crops.end());
  if (x.size() < rank + 2)
    fail("input 0 has rank " + std::to_string(x.size()) + ", expected at least " + std::to_string(rank + 2));
  for (const int64_t side : blocks.sides) {
    if (__builtin_mul_overflow(blocks.phases, side, &blocks.phases)) fail("attribute blocks is too large");
  }
  if (x[1] % blocks.phases != 0) {
    fail(to_string(x[1]) + " channels do not divide into blocks of " + std::to_string(blocks.phases));
  }
  blocks.channels = x[1] / blocks.phases;
  return blocks;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const Blocks blocks = read_blocks(context.attrs, x.shape);
  ir::SymShape out = x.shape;
  if (context.attrs.has("channels"))
    out[1] = attr_int(context.attrs, "channels");
  else
    out[1] = blocks.channels;
  if (out[1] < 0 || out[1] > blocks.channels) {
    fail("attribute channels is " + to_string(out[1]) + ", each phase has " + to_string(blocks.channels));
  }
  for (size_t d = 0; d < blocks.sides.size(); ++d) {
    ir::SymInt& extent = out[d + 2];
    int64_t large = 0;
    if (__builtin_mul_overflow(extent.hint(), blocks.sides[d], &large)) fail("attribute blocks is too large");
    extent *= blocks.sides[d];
    extent -= blocks.crops_begin[d] + blocks.crops_end[d];
    if (extent < 0)
      fail("the crops leave extent " + to_string(extent) + " of spatial dimension " + std::to_string(d));
  }
  return {made_type(x.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  Tensor& out = *context.outputs[0];
  const Blocks blocks = read_blocks(context.attrs, x.shape());
  const Shape strides = row_major_strides(x.shape());
  for_each_index(out.shape(), [&](int64_t to, const Shape& at) {
    Shape source = at;
    int64_t phase = 0;
    for (size_t d = 0; d < blocks.sides.size(); ++d) {
      const int64_t pixel = at[d + 2] + blocks.crops_begin[d];
      phase = phase * blocks.sides[d] + pixel % blocks.sides[d];
      source[d + 2] = pixel / blocks.sides[d];
    }
    source[1] += phase * blocks.channels;
    int64_t from = 0;
    for (size_t d = 0; d < source.size(); ++d) from += source[d] * strides[d];
    copy_element(x, from, out, to);
  });
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& in = context.input_types[0].shape;
  const MapAxes map = map_axes(context.attrs, in.size());
  ir::SymShape first;
  for (const size_t axis : first_from_last(in.size()))
    first.push_back(in[is_channels_last(context.attrs) ? axis : first.size()]);
  const Blocks blocks = read_blocks(context.attrs, first);
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> at = axes;
    Expr phase(0);
    for (size_t d = 0; d < blocks.sides.size(); ++d) {
      const Expr side(blocks.sides[d]);
      const size_t axis = d + map.spatial;
      const Expr pixel = axes[axis] + Expr(blocks.crops_begin[d]);
      phase = phase * side + te::floormod(pixel, side);
      // In bounds in any case: a clamp keeps that provable where a loop is split.
      at[axis] = clamp_index(te::floordiv(pixel, side), in[axis]);
    }
    at[map.channel] = phase * Expr(blocks.channels) + axes[map.channel];
    return te::read(context.inputs[0], at);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "depth_to_space";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer_of_map<&infer>;
  def.reference = &reference_of_map<&reference>;
  def.compute = &compute;
  def.doc =
      "x [N,P*C,spatial...,rest...], P being the product of attribute blocks (ints, required, >= 1, one a "
      "spatial dimension) -> [N,C,spatial[d]*blocks[d]-crops...,rest...]: a pixel at y is channel p*C+c of "
      "(y+crop)/blocks, p being the row-major place in its block; attributes crops (ints, begins then ends, "
      "0), channels (int, C: how many of each phase's are kept), channels_last (bool, 0: the channels stand "
      "last, rest... before them)";
  return {def};
}

}  // namespace tensormill::ops::depth_to_space_ops
