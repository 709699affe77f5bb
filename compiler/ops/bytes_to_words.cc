/// bytes_to_words: four bytes side by side as one word (words.h). Both ends are little-endian.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/words.h"

namespace tensormill::ops::bytes_to_words_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, set_of(DType::kUInt8) | set_of(DType::kInt8));
  if (x.shape.empty() || x.shape.back() % kBytesPerWord != 0)
    fail("shape " + to_string(x.shape) + " does not end with a multiple of four bytes");
  ir::SymShape out = x.shape;
  out.back() /= kBytesPerWord;
  return {made_type(DType::kInt32, out)};
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    Expr word;
    for (int64_t byte = 0; byte < kBytesPerWord; ++byte) {
      std::vector<Expr> at = axes;
      at.back() = axes.back() * Expr(kBytesPerWord) + Expr(byte);
      const Expr value = te::cast(DType::kInt32, te::read(context.inputs[0], at));
      const Expr bits = te::make(te::ExprOp::kBitAnd, {value, te::int_imm(DType::kInt32, 255)});
      const Expr placed = te::make(te::ExprOp::kShl, {bits, te::int_imm(DType::kInt32, 8 * byte)});
      word = word ? te::make(te::ExprOp::kBitOr, {word, placed}) : placed;
    }
    return word;
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "bytes_to_words";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &copy_reference;
  def.compute = &compute;
  def.is_view = true;
  def.doc =
      "x [..., 4n] of int8 or uint8 as int32 [..., n]: the same memory, four bytes a word, the first the "
      "lowest";
  return {def};
}

}  // namespace tensormill::ops::bytes_to_words_ops
