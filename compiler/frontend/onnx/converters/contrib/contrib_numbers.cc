// com.microsoft's arithmetic that the standard has no operator for: inverses, integer products, hashes.
#include "compiler/build/compose.h"
#include "compiler/build/numbers/matrices.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/quantize.h"

namespace tensormill::frontend::onnx {

void convert_inverse(NodeContext& context) {
  context.set_output(0, build::inverses(context, context.input(0)));
}

// int16 by int16, summed in int32
void convert_matmul_integer16(NodeContext& context) {
  Compose c(context);
  context.set_output(
      0, c.matmul(c.cast(context.input(0), DType::kInt32), c.cast(context.input(1), DType::kInt32)));
}

// A, its zero point, B, its zero point: the product of the differences, in int32
void convert_mul_integer(NodeContext& context) {
  Compose c(context);
  context.set_output(0, c.mul(centered(c, context.input(0), context.optional_input(1), DType::kInt32),
                              centered(c, context.input(2), context.optional_input(3), DType::kInt32)));
}

namespace {

using V = ir::ValueId;

/// The bits of x as unsigned integers of 32 bits, those of wider elements as two of them, low ones first.
std::vector<V> words_of(NodeContext& context, V x) {
  Compose c(context);
  const DTypeInfo& info = dtype_info(c.dtype(x));
  if (info.bits != 32 && info.bits != 64)
    context.unsupported("X", "elements of type " + std::string(info.name) + " are not implemented");
  const DType whole = info.bits == 32 ? DType::kUInt32 : DType::kUInt64;
  const V bits = c.dtype(x) == whole ? x : context.add("bit_cast", {x}, {{"to", whole}});
  if (info.bits == 32) return {bits};
  const V high = context.add("bit_shift", {bits, c.number(bits, 32)}, {{"direction", std::string("right")}});
  return {c.cast(bits, DType::kUInt32), c.cast(high, DType::kUInt32)};
}

V shifted(NodeContext& context, V x, int64_t by, const char* direction) {
  Compose c(context);
  return context.add("bit_shift", {x, c.number(x, static_cast<double>(by))},
                     {{"direction", std::string(direction)}});
}

V turned_left(NodeContext& context, V x, int64_t by) {
  Compose c(context);
  return c.binary("or", shifted(context, x, by, "left"), shifted(context, x, 32 - by, "right"));
}

}  // namespace

// MurmurHash3_x86_32 (Appleby, 2011) of each element's bytes.
void convert_murmur_hash3(NodeContext& context) {
  Compose c(context);
  const std::vector<V> words = words_of(context, context.input(0));
  const auto seed = static_cast<uint32_t>(context.int_attr("seed", 0));
  V hash = c.filled(DType::kUInt32, {}, seed);
  for (const V word : words) {
    const V mixed = turned_left(context, c.times(word, 0xcc9e2d51U), 15);
    hash = turned_left(context, c.binary("xor", hash, c.times(mixed, 0x1b873593U)), 13);
    hash = c.plus(c.times(hash, 5), 0xe6546b64U);
  }
  const auto folded = [&](V x, int64_t by) { return c.binary("xor", x, shifted(context, x, by, "right")); };
  hash = c.binary("xor", hash, c.number(hash, static_cast<double>(4 * words.size())));
  hash = c.times(folded(hash, 16), 0x85ebca6bU);
  hash = c.times(folded(hash, 13), 0xc2b2ae35U);
  hash = folded(hash, 16);
  const bool positive = context.int_attr("positive", 1) != 0;
  context.set_output(0, positive ? hash : context.add("bit_cast", {hash}, {{"to", DType::kInt32}}));
}

}  // namespace tensormill::frontend::onnx
