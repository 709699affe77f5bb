// Channels in a new order: for each block of the output the few blocks that it comes from are walked pixel by
// pixel, so that which lane comes from where is known while compiling and a pixel is a masked load a piece.
#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

// More blocks than this are too much code; the copies are then chosen by the index at run time.
constexpr int64_t kMaxBlocks = 64;
// Operations that an element counts as: its pieces' loads, and the lines that a core fetches from the others
// when it copies what they wrote.
constexpr double kWork = 4;

// The element is chosen by its block: select(i1 < constant, ...).
bool is_chosen_by_block(const Stage& stage) {
  const te::Expr& body = stage.body[0];
  if (body->op != te::ExprOp::kSelect || body->args[0]->op != te::ExprOp::kLt) return false;
  const te::Expr& index = body->args[0]->args[0];
  return index->op == te::ExprOp::kVar && index->var == stage.data_vars[1];
}

}  // namespace

bool template_channels(Builder& builder) {
  builder.inline_injective();
  std::string root;
  for (const std::string& name : builder.stage_names()) {
    if (builder.stage(name).attach == AttachKind::kInline) continue;
    if (!root.empty() || builder.stage(name).reduction) return false;
    root = name;
  }
  const Shape shape = builder.stage(root).shape;
  const int64_t lanes = builder.lanes(root);
  if (shape.size() < 4 || num_elements(shape) == 0 || shape[1] > kMaxBlocks || shape.back() > lanes ||
      (shape.back() & (shape.back() - 1)) != 0 || !is_chosen_by_block(builder.stage(root))) {
    return false;
  }
  std::vector<std::string> axes = data_axes(builder.stage(root));
  const std::string last = axes.back();
  const std::string pixels = builder.fuse(root, {axes.begin() + 2, axes.end() - 1});
  builder.step("reorder", {root, pixels, "i0", "i1", last});
  const std::string inside =
      builder.parallelize(root, pixels, kWork * static_cast<double>(num_elements(shape)));
  if (inside != pixels) builder.step("reorder", {root, "i0", "i1", inside, last});
  builder.step("unroll", {root, "i1"});
  builder.step("vectorize", {root, last});
  return true;
}

}  // namespace tensormill::schedule
