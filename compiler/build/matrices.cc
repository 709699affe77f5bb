#include "compiler/build/matrices.h"

#include "compiler/build/compose.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

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

ir::SymShape checked_square(const OpBuilder& builder, V x) {
  const ir::SymShape shape = builder.type(x).shape;
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2])
    builder.invalid("X has shape " + to_string(shape) + ", expected square matrices");
  return shape;
}

}  // namespace

V determinants(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape shape = checked_square(builder, x);
  const ir::SymShape batch(shape.begin(), shape.end() - 2);
  const V matrices = c.reshape(x, {num_elements(batch), shape.back(), shape.back()});
  return c.reshape(builder.add("determinants", {matrices}), batch);
}

V inverses(OpBuilder& builder, V given) {
  Compose c(builder);
  constexpr int64_t kLargest = 32;
  const ir::SymShape shape = checked_square(builder, given);
  const ir::SymInt n = shape.back();
  if (n > kLargest)
    builder.unsupported("X",
                        "matrices of more than " + std::to_string(kLargest) + " rows are not implemented");
  if (n == 0) return c.unary("identity", given);
  const ir::SymInt batch = num_elements(ir::SymShape(shape.begin(), shape.end() - 2));
  const V x = c.reshape(c.cast(given, DType::kFloat64), {batch, n, n});
  V cofactors = c.filled(DType::kFloat64, {batch, 1, 1}, 1);
  if (n > 1) {
    std::vector<double> signs;
    for (int64_t i = 0; i < n * n; ++i) signs.push_back((i / n + i % n) % 2 == 0 ? 1 : -1);
    const V sizes = builder.add("determinants", {minors(c, x, n)});
    cofactors = c.mul(c.reshape(sizes, {batch, n, n}), c.doubles(DType::kFloat64, signs, {n, n}));
  }
  const V whole = c.reshape(builder.add("determinants", {x}), {batch, 1, 1});
  const V result = c.div(c.transpose(cofactors, {0, 2, 1}), whole);
  return c.cast(c.reshape(result, shape), c.dtype(given));
}

}  // namespace tensormill::build
