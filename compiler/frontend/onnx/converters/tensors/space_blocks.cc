// DepthToSpace and SpaceToDepth: blocks of space as channels.
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr int64_t kMaxBlock = 1 << 15;

}  // namespace

// [N,C,H,W] -> [N,b,b,C/b²,H,W] (DCR) or [N,C/b²,b,b,H,W] (CRD) -> [N,C/b²,H,b,W,b] -> [N,C/b²,H*b,W*b]
void convert_depth_to_space(NodeContext& context) {
  const ir::SymShape shape = context.type(context.input(0)).shape;
  const int64_t block = context.required_int("blocksize");
  if (shape.size() != 4 || block < 1 || block > kMaxBlock || !demand_divisible(shape[1], block * block)) {
    context.invalid("shape " + to_string(shape) + " does not fit blocksize " + std::to_string(block));
  }
  const bool depth_first = context.string_attr("mode", "DCR") == "DCR";
  const ir::SymInt channels = floordiv(shape[1], block * block);
  const ir::SymShape blocks = depth_first
                                  ? ir::SymShape{shape[0], block, block, channels, shape[2], shape[3]}
                                  : ir::SymShape{shape[0], channels, block, block, shape[2], shape[3]};
  const std::vector<int64_t> perm =
      depth_first ? std::vector<int64_t>{0, 3, 4, 1, 5, 2} : std::vector<int64_t>{0, 1, 4, 2, 5, 3};
  const ir::ValueId moved =
      context.add("transpose", {context.reshape(context.input(0), blocks)}, {{"perm", perm}});
  context.set_output(0, context.reshape(moved, {shape[0], channels, shape[2] * block, shape[3] * block}));
}

void convert_space_to_depth(NodeContext& context) {
  const ir::SymShape shape = context.type(context.input(0)).shape;
  const int64_t block = context.required_int("blocksize");
  if (shape.size() != 4 || block < 1 || block > kMaxBlock || !demand_divisible(shape[2], block) ||
      !demand_divisible(shape[3], block)) {
    context.invalid("shape " + to_string(shape) + " does not fit blocksize " + std::to_string(block));
  }
  const ir::SymInt height = floordiv(shape[2], block);
  const ir::SymInt width = floordiv(shape[3], block);
  const ir::ValueId blocks =
      context.reshape(context.input(0), {shape[0], shape[1], height, block, width, block});
  const ir::ValueId moved =
      context.add("transpose", {blocks}, {{"perm", std::vector<int64_t>{0, 3, 5, 1, 2, 4}}});
  context.set_output(0, context.reshape(moved, {shape[0], shape[1] * block * block, height, width}));
}

}  // namespace tensormill::frontend::onnx
