// com.microsoft's arithmetic that the standard has no operator for: inverses, integer products, hashes.
#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/quantize.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// The matrices x [B,n,n] without row i and column j, for all i and j: [B*n*n,n-1,n-1].
V minors(Compose& c, V x, int64_t n) {
  std::vector<int64_t> from;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t row = 0; row < n; ++row) {
        for (int64_t column = 0; column < n; ++column) {
          if (row != i && column != j) from.push_back(row * n + column);
        }
      }
    }
  }
  const ir::SymInt batch = c.shape(x)[0], count = static_cast<int64_t>(from.size());
  const V taken = c.gather(c.reshape(x, {batch, n * n}), c.ints(from, {count}), 1);
  return c.reshape(taken, {batch * n * n, n - 1, n - 1});
}

}  // namespace

// By the cofactors, in float64: matrices are small where models invert them.
void convert_inverse(NodeContext& context) {
  Compose c(context);
  constexpr int64_t kLargest = 32;
  const V given = context.input(0);
  const ir::SymShape shape = c.shape(given);
  const ir::SymInt n = shape.empty() ? ir::SymInt(0) : shape.back();
  if (shape.size() < 2 || shape[shape.size() - 2] != n)
    context.invalid("X has shape " + to_string(shape) + ", expected square matrices");
  if (n > kLargest)
    context.unsupported("X",
                        "matrices of more than " + std::to_string(kLargest) + " rows are not implemented");
  if (n == 0) return context.set_output(0, c.unary("identity", given));
  const ir::SymInt batch = num_elements(ir::SymShape(shape.begin(), shape.end() - 2));
  const V x = c.reshape(c.cast(given, DType::kFloat64), {batch, n, n});
  V cofactors = c.filled(DType::kFloat64, {batch, 1, 1}, 1);
  if (n > 1) {
    std::vector<double> signs;
    for (int64_t i = 0; i < n * n; ++i) signs.push_back((i / n + i % n) % 2 == 0 ? 1 : -1);
    const V sizes = context.add("determinants", {minors(c, x, n)});
    cofactors = c.mul(c.reshape(sizes, {batch, n, n}), c.doubles(DType::kFloat64, signs, {n, n}));
  }
  const V whole = c.reshape(context.add("determinants", {x}), {batch, 1, 1});
  const V result = c.div(c.transpose(cofactors, {0, 2, 1}), whole);
  context.set_output(0, c.cast(c.reshape(result, shape), c.dtype(given)));
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
