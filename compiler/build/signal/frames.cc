#include "compiler/build/signal/frames.h"

#include "compiler/build/compose.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

V zeros_around(OpBuilder& builder, V x, const ir::SymShape& pads) {
  return builder.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
}

}  // namespace

V frames_of(OpBuilder& builder, V x, int64_t axis, const ir::SymInt& length, int64_t step) {
  Compose c(builder);
  const ir::SymInt count = floordiv(c.shape(x)[static_cast<size_t>(axis)] - length, step) + 1;
  const V starts = c.mul(c.iota(count, {count, 1}), c.ints({step}, {1, 1}));
  return c.gather(x, c.add(starts, c.iota(length, {1, length})), axis);
}

// Frames in blocks of `step`: block j of frame i lies on block i + j of the signal.
V added_frames(OpBuilder& builder, V x, int64_t step) {
  constexpr int64_t kMostBlocks = 1024;
  Compose c(builder);
  const ir::SymShape shape = c.shape(x);
  const int64_t length = shape[2], blocks = (length + step - 1) / step;
  if (blocks > kMostBlocks)
    builder.unsupported("hop_length", std::to_string(blocks) + " frames at one place are not implemented");
  const ir::SymInt& frames = shape[1];
  if (blocks * step > length) x = zeros_around(builder, x, {0, 0, 0, 0, 0, blocks * step - length});
  V sum = ir::kAbsent;
  for (int64_t j = 0; j < blocks; ++j) {
    const V block = zeros_around(builder, c.slice(x, 2, j * step, step), {0, j, 0, 0, blocks - 1 - j, 0});
    sum = sum == ir::kAbsent ? block : c.add(sum, block);
  }
  const V whole = c.reshape(sum, {shape[0], (frames + (blocks - 1)) * step});
  return c.slice(whole, 1, 0, (frames - 1) * step + length);
}

}  // namespace tensormill::build
