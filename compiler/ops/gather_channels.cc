/// gather_channels: channels of blocked tensors in a new order, in blocks again.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::gather_channels_ops {

std::vector<ir::OpDef> family();

namespace {

/// One channel's source: an operand and the block and lane in it.
struct Source {
  size_t operand = 0;
  int64_t block = 0;
  int64_t lane = 0;
};

/// `lane` counts through all lanes of all operands; operand i has blocks[i] blocks.
Source find_source(int64_t lane, int64_t width, const std::vector<int64_t>& blocks) {
  int64_t block = lane / width;
  size_t operand = 0;
  while (block >= blocks[operand]) block -= blocks[operand++];
  return {operand, block, lane % width};
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& first = input_of(context, 0, kNumeric);
  if (first.shape.size() < 3) {
    fail("input 0 has rank " + std::to_string(first.shape.size()) + ", expected at least 3");
  }
  const int64_t width = first.shape.back();
  int64_t blocks = 0;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    ir::SymShape shape = input_like_first(context, i).shape;
    if (shape.size() != first.shape.size()) {
      fail("input " + std::to_string(i) + " has rank " + std::to_string(shape.size()) + ", input 0 has " +
           std::to_string(first.shape.size()));
    }
    blocks += shape[1];
    shape[1] = first.shape[1];
    if (shape != first.shape) {
      fail("inputs 0 and " + std::to_string(i) + " differ outside of axis 1");
    }
  }
  static_cast<void>(made_type(first.dtype, {blocks, std::max<int64_t>(width, 1)}));
  const ir::Ints channels = attr_ints(context.attrs, "channels");
  for (const int64_t lane : channels) {
    if (lane < 0 || lane >= blocks * width) {
      fail("attribute channels has the value " + std::to_string(lane) + ", the inputs have " +
           std::to_string(blocks * width) + " lanes");
    }
  }
  ir::SymShape out = first.shape;
  const int64_t count = static_cast<int64_t>(channels.size());
  out[1] = count == 0 ? 0 : (count + width - 1) / width;
  return {made_type(first.dtype, out)};
}

void reference(const ir::ReferenceContext& context) {
  Tensor& out = *context.outputs[0];
  const ir::Ints channels = attr_ints(context.attrs, "channels");
  std::vector<int64_t> blocks;
  std::vector<Shape> strides;
  for (const Tensor* input : context.inputs) {
    blocks.push_back(input->shape()[1]);
    strides.push_back(row_major_strides(input->shape()));
  }
  const int64_t width = out.shape().back();
  for_each_index(out.shape(), [&](int64_t to, const Shape& at) {
    const size_t channel = static_cast<size_t>(at[1] * width + at.back());
    if (channel >= channels.size()) {
      out.set_element(to, 0.0);
      return;
    }
    const Source source = find_source(channels[channel], width, blocks);
    const Shape& stride = strides[source.operand];
    int64_t from = source.block * stride[1] + source.lane;
    for (size_t d = 0; d + 1 < at.size(); ++d) from += d == 1 ? 0 : at[d] * stride[d];
    copy_element(*context.inputs[source.operand], from, out, to);
  });
}

/// Lanes [first, end) of one output block that come from one block, each from lane + shift.
struct Piece {
  int64_t end = 0;
  Source from;
  int64_t shift = 0;
};

std::vector<Piece> pieces_of(const std::vector<int64_t>& channels, int64_t block, int64_t width,
                             const std::vector<int64_t>& blocks) {
  std::vector<Piece> pieces;
  const int64_t count = std::min(static_cast<int64_t>(channels.size()) - block * width, width);
  for (int64_t lane = 0; lane < count; ++lane) {
    const Source from = find_source(channels[static_cast<size_t>(block * width + lane)], width, blocks);
    const int64_t shift = from.lane - lane;
    const bool goes_on = !pieces.empty() && pieces.back().from.operand == from.operand &&
                         pieces.back().from.block == from.block && pieces.back().shift == shift;
    if (!goes_on) pieces.push_back({0, from, shift});
    pieces.back().end = lane + 1;
  }
  return pieces;
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::Ints channels = attr_ints(context.attrs, "channels");
  std::vector<int64_t> blocks;
  for (const ir::ValueType& type : context.input_types) blocks.push_back(type.shape[1]);
  const int64_t width = out.shape.back();
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const auto block_value = [&](int64_t block) {
      const std::vector<Piece> pieces = pieces_of(channels, block, width, blocks);
      Expr value = pieces.back().end < width ? te::imm_like({out.dtype, 1}, 0) : Expr();
      for (size_t i = pieces.size(); i-- > 0;) {
        const Piece& piece = pieces[i];
        std::vector<Expr> at = axes;
        at[1] = Expr(piece.from.block);
        at.back() = piece.shift == 0 ? axes.back() : clamp_index(axes.back() + Expr(piece.shift), width);
        const Expr read = te::read(context.inputs[piece.from.operand], at);
        value = value ? te::select(axes.back() < Expr(piece.end), read, value) : read;
      }
      return value;
    };
    // A balanced tree over the output's blocks.
    const std::function<Expr(int64_t, int64_t)> tree = [&](int64_t first, int64_t end) -> Expr {
      if (end - first == 1) return block_value(first);
      const int64_t middle = (first + end) / 2;
      return te::select(axes[1] < Expr(middle), tree(first, middle), tree(middle, end));
    };
    return tree(0, out.shape[1]);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "gather_channels";
  def.max_inputs = -1;
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "inputs (one or more) [N,blocks,rest...,block] that differ in their blocks at most; channel c of the "
      "output is lane channels[c], counted through all blocks of all inputs; lanes past the last channel are "
      "0; attribute channels (ints, required)";
  return {def};
}

}  // namespace tensormill::ops::gather_channels_ops
