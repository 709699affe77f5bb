#include "compiler/build/text/crossing.h"

#include "compiler/build/compose.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/text/text.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

V whole_bits(OpBuilder& builder, uint64_t value) {
  return builder.constant(Tensor::from<uint64_t>({}, std::vector<uint64_t>{value}));
}

/// The mixing steps of MurmurHash64A on two hashes, u64.
V mixed_hashes(OpBuilder& builder, V first, V second) {
  Compose c(builder);
  const V factor = whole_bits(builder, 0xc6a4a7935bd1e995);
  const auto folded = [&](V x) {
    return c.binary("xor", x, right_shift(builder, x, whole_bits(builder, 47)));
  };
  const V moved = c.mul(folded(c.mul(second, factor)), factor);
  const V hash = c.mul(c.binary("xor", c.binary("xor", first, factor), moved), factor);
  return folded(c.mul(folded(hash), factor));
}

}  // namespace

V crossed_tables(OpBuilder& builder, const std::vector<V>& tables, uint64_t key, uint64_t buckets) {
  Compose c(builder);
  if (tables.empty() || buckets == 0) builder.invalid("it has no tables or no buckets");
  V hash = c.reshape(whole_bits(builder, key), {1, 1});
  ir::SymInt columns = 1;
  for (const V table : tables) {
    const ir::SymShape shape = model_shape(builder, table), first = model_shape(builder, tables[0]);
    if (shape.size() != 2 || !ir::demand(ir::Relation::kEqual, shape[0], first[0]))
      builder.invalid("a table of shape " + to_string(shape) + " beside one of " + to_string(first));
    const V own = is_text(builder, table) ? hashed_text(builder, table, 0) : c.cast(table, DType::kInt64);
    const V bits = c.reshape(c.cast(own, DType::kUInt64), {shape[0], 1, shape[1]});
    columns = columns * shape[1];
    hash = c.reshape(mixed_hashes(builder, c.unsqueeze(hash, 2), bits), {shape[0], columns});
  }
  return c.cast(c.binary("mod", hash, whole_bits(builder, buckets)), DType::kInt64);
}

}  // namespace tensormill::build
