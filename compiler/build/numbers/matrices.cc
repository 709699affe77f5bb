#include "compiler/build/numbers/matrices.h"

#include <algorithm>

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

/// How many rows the matrices have.
int64_t checked_rows(const OpBuilder& builder, V x) {
  constexpr int64_t kLargest = 32;
  const ir::SymInt n = checked_square(builder, x).back();
  if (!n.is_constant())
    builder.unsupported("X", "matrices of as many rows as a free dim says are not implemented");
  if (n.hint() > kLargest)
    builder.unsupported("X",
                        "matrices of more than " + std::to_string(kLargest) + " rows are not implemented");
  return n.hint();
}

/// What `make` makes of B matrices x [B,n,n] in f64, in the shape and type of those that are given.
template <typename Make>
V made_of_matrices(OpBuilder& builder, V given, const Make& make) {
  Compose c(builder);
  const ir::SymShape shape = checked_square(builder, given);
  const int64_t n = checked_rows(builder, given);
  if (n == 0) return c.unary("identity", given);
  const ir::SymInt batch = num_elements(ir::SymShape(shape.begin(), shape.end() - 2));
  const V x = c.reshape(c.cast(given, DType::kFloat64), {batch, n, n});
  return c.cast(c.reshape(make(c, x, batch, n), shape), c.dtype(given));
}

}  // namespace

V determinants(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape shape = checked_square(builder, x);
  const ir::SymShape batch(shape.begin(), shape.end() - 2);
  const V matrices = c.reshape(x, {num_elements(batch), shape.back(), shape.back()});
  return c.reshape(builder.add("determinants", {matrices}), batch);
}

LogDeterminants log_determinants(OpBuilder& builder, V x) {
  Compose c(builder);
  const DType dtype = c.dtype(x);
  const V whole = determinants(builder, c.cast(x, DType::kFloat64));
  const V log = c.unary("log", c.unary("abs", whole));
  return {c.cast(c.unary("sign", whole), dtype), c.cast(log, dtype)};
}

V inverses(OpBuilder& builder, V given) {
  return made_of_matrices(builder, given, [&](Compose& c, V x, const ir::SymInt& batch, int64_t n) {
    V cofactors = c.filled(DType::kFloat64, {batch, 1, 1}, 1);
    if (n > 1) {
      std::vector<double> signs;
      for (int64_t i = 0; i < n * n; ++i) signs.push_back((i / n + i % n) % 2 == 0 ? 1 : -1);
      const V sizes = builder.add("determinants", {minors(c, x, n)});
      cofactors = c.mul(c.reshape(sizes, {batch, n, n}), c.doubles(DType::kFloat64, signs, {n, n}));
    }
    const V whole = c.reshape(builder.add("determinants", {x}), {batch, 1, 1});
    return c.div(c.transpose(cofactors, {0, 2, 1}), whole);
  });
}

V solutions(OpBuilder& builder, V a, V b) {
  Compose c(builder);
  const V inverse = inverses(builder, c.cast(a, DType::kFloat64));
  return c.cast(c.matmul(inverse, c.cast(b, DType::kFloat64)), c.dtype(b));
}

// A column after the other, each less what the columns before it make of its row.
V cholesky(OpBuilder& builder, V given) {
  return made_of_matrices(builder, given, [](Compose& c, V x, const ir::SymInt& batch, int64_t n) {
    std::vector<V> columns;
    for (int64_t j = 0; j < n; ++j) {
      V column = c.slice(c.slice(x, 2, j, 1), 1, j, n - j);
      if (j > 0) {
        const V before = c.concat(columns, 2);
        column = c.sub(column, c.matmul(c.slice(before, 1, j, n - j), c.slice(before, 1, j, 1), true));
      }
      column = c.div(column, c.unary("sqrt", c.slice(column, 1, 0, 1)));
      if (j > 0) column = c.concat({c.filled(DType::kFloat64, {batch, j, 1}, 0), column}, 1);
      columns.push_back(column);
    }
    return c.concat(columns, 2);
  });
}

// A row after the other, each less what the rows before it make of it.
V triangular_solutions(OpBuilder& builder, V given, V right, Triangle form) {
  Compose c(builder);
  const int64_t n = checked_rows(builder, given);
  const V a = c.cast(given, DType::kFloat64), b = c.cast(right, DType::kFloat64);
  const int64_t rows = builder.rank(a) - 2, b_rows = builder.rank(b) - 2;
  if (b_rows < 0 || !ir::demand(ir::Relation::kEqual, c.shape(b)[static_cast<size_t>(b_rows)], n))
    builder.invalid("a right side of shape " + to_string(c.shape(b)) + " for " + std::to_string(n) + " rows");
  if (n == 0) return c.unary("identity", right);
  std::vector<V> found;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = form.is_lower ? k : n - 1 - k;
    const V row = c.slice(a, rows, i, 1);
    V value = c.slice(b, b_rows, i, 1);
    if (k > 0) {
      const V known = c.concat(found, builder.rank(found[0]) - 2);
      value = c.sub(value, c.matmul(c.slice(row, rows + 1, form.is_lower ? 0 : i + 1, k), known));
    }
    const V pivot = form.is_unit ? c.number(row, 1) : c.slice(row, rows + 1, i, 1);
    value = c.div(value, pivot);
    found.insert(form.is_lower ? found.end() : found.begin(), value);
  }
  return c.cast(c.concat(found, builder.rank(found[0]) - 2), c.dtype(right));
}

V matrix_transpose(OpBuilder& builder, V x) {
  Compose c(builder);
  if (builder.rank(x) < 2) builder.invalid("an operand of shape " + to_string(c.shape(x)));
  std::vector<int64_t> perm = c.count_to(builder.rank(x));
  std::swap(perm.back(), perm[perm.size() - 2]);
  return c.transpose(x, perm);
}

}  // namespace tensormill::build
