#include "compiler/build/numbers/matrices.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/build/moves/places.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

ir::SymShape checked_matrices(const OpBuilder& builder, V x) {
  const ir::SymShape shape = builder.type(x).shape;
  if (shape.size() < 2) builder.invalid("X has shape " + to_string(shape) + ", expected matrices");
  return shape;
}

ir::SymShape checked_square(const OpBuilder& builder, V x) {
  const ir::SymShape shape = checked_matrices(builder, x);
  if (!ir::demand(ir::Relation::kEqual, shape.back(), shape[shape.size() - 2]))
    builder.invalid("X has shape " + to_string(shape) + ", expected square matrices");
  return shape;
}

/// The dims in front of those of the matrices.
ir::SymShape batch_of(const ir::SymShape& shape) { return {shape.begin(), shape.end() - 2}; }

/// As [n,rows,columns] of float64.
V stacked(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape shape = checked_matrices(builder, x);
  return c.cast(c.reshape(x, {num_elements(batch_of(shape)), shape[shape.size() - 2], shape.back()}),
                DType::kFloat64);
}

/// What a step made of the matrices x [...,n,m], with their dims in front and of their type.
V unstacked(OpBuilder& builder, V made, V x) {
  Compose c(builder);
  ir::SymShape shape = batch_of(c.shape(x));
  const ir::SymShape own = c.shape(made);
  shape.insert(shape.end(), own.begin() + 1, own.end());
  return c.cast(c.reshape(made, shape), c.dtype(x));
}

/// What the step makes of a and b, whose dims in front are broadcast.
V solved(OpBuilder& builder, const char* op, V a, V b, const ir::Attrs& attrs) {
  Compose c(builder);
  const ir::SymShape left = checked_square(builder, a), right = checked_matrices(builder, b);
  if (!ir::demand(ir::Relation::kEqual, left.back(), right[right.size() - 2]))
    builder.invalid("matrices of shape " + to_string(left) + ", a right side of " + to_string(right));
  const ir::SymShape batch = broadcast_shapes(batch_of(left), batch_of(right));
  const auto widened = [&](V x) {
    const ir::SymShape shape = c.shape(x);
    ir::SymShape to = batch;
    to.insert(to.end(), shape.end() - 2, shape.end());
    return c.expand(x, to);
  };
  const V wide = widened(b);
  return unstacked(builder, builder.add(op, {stacked(builder, widened(a)), stacked(builder, wide)}, attrs),
                   wide);
}

}  // namespace

V determinants(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape shape = checked_square(builder, x);
  const ir::SymShape batch = batch_of(shape);
  const V matrices = c.reshape(x, {num_elements(batch), shape.back(), shape.back()});
  return c.reshape(builder.add("determinants", {matrices}), batch);
}

LogDeterminants log_determinants(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape batch = batch_of(checked_square(builder, x));
  const std::vector<V> made = builder.add_many("log_determinants", {stacked(builder, x)});
  const auto result = [&](V value) { return c.cast(c.reshape(value, batch), c.dtype(x)); };
  return {result(made[0]), result(made[1])};
}

V inverses(OpBuilder& builder, V x) {
  Compose c(builder);
  const ir::SymShape shape = checked_square(builder, x);
  const V one = c.number(c.cast(x, DType::kFloat64), 1), none = c.number(one, 0);
  return c.cast(
      solutions(builder, c.cast(x, DType::kFloat64), c.where(on_diagonal(builder, shape), one, none)),
      c.dtype(x));
}

V solutions(OpBuilder& builder, V a, V b) { return solved(builder, "solve_matrices", a, b, {}); }

V cholesky(OpBuilder& builder, V x) {
  static_cast<void>(checked_square(builder, x));
  return unstacked(builder, builder.add("cholesky_factors", {stacked(builder, x)}), x);
}

V triangular_solutions(OpBuilder& builder, V a, V b, Triangle form) {
  return solved(builder, "solve_triangles", a, b,
                {{"lower", int64_t{form.is_lower}}, {"unit", int64_t{form.is_unit}}});
}

QrFactors qr_factors(OpBuilder& builder, V x, bool is_full) {
  const std::vector<V> made =
      builder.add_many("qr_factors", {stacked(builder, x)}, {{"full", int64_t{is_full}}});
  return {unstacked(builder, made[0], x), unstacked(builder, made[1], x)};
}

Eigenvectors symmetric_eigenvectors(OpBuilder& builder, V x) {
  static_cast<void>(checked_square(builder, x));
  const std::vector<V> made = builder.add_many("symmetric_eigenvectors", {stacked(builder, x)});
  return {unstacked(builder, made[0], x), unstacked(builder, made[1], x)};
}

ComplexEigenvectors eigenvectors(OpBuilder& builder, const Complex& x) {
  static_cast<void>(checked_square(builder, x.real));
  const std::vector<V> made =
      builder.add_many("eigenvectors", {stacked(builder, x.real), stacked(builder, x.imaginary)});
  const auto result = [&](size_t index) { return unstacked(builder, made[index], x.real); };
  return {{result(0), result(1)}, {result(2), result(3)}};
}

SingularValues singular_values(OpBuilder& builder, V x, bool is_full) {
  const std::vector<V> made =
      builder.add_many("singular_values", {stacked(builder, x)}, {{"full", int64_t{is_full}}});
  return {unstacked(builder, made[0], x), unstacked(builder, made[1], x), unstacked(builder, made[2], x)};
}

namespace {

/// A row [...,k] of numbers for each matrix, as a stack of matrices of one row.
V stacked_rows(OpBuilder& builder, V row) {
  if (builder.rank(row) == 0) builder.invalid("numbers of matrices have no dims");
  return stacked(builder, Compose(builder).unsqueeze(row, builder.rank(row) - 1));
}

}  // namespace

PivotedTriangles pivoted_triangles(OpBuilder& builder, V x) {
  Compose c(builder);
  const std::vector<V> made = builder.add_many("pivoted_triangles", {stacked(builder, x)});
  ir::SymShape row = batch_of(c.shape(x));
  row.push_back(c.shape(made[1]).back());
  return {unstacked(builder, made[0], x), c.cast(c.reshape(made[1], row), DType::kInt32)};
}

namespace {

/// Which row of x each row of p x is: i64 [...,1,n].
V exchanged_rows(OpBuilder& builder, const PivotedTriangles& of) {
  Compose c(builder);
  const ir::SymShape shape = checked_matrices(builder, of.triangles);
  ir::SymShape as_row = batch_of(shape);
  as_row.insert(as_row.end(), {1, shape[shape.size() - 2]});
  const V rows =
      builder.add("pivoted_rows", {stacked_rows(builder, of.pivots), stacked(builder, of.triangles)});
  return c.cast(c.reshape(rows, as_row), DType::kInt64);
}

}  // namespace

V permutations(OpBuilder& builder, const PivotedTriangles& of) {
  Compose c(builder);
  const V standing = exchanged_rows(builder, of);
  const ir::SymShape shape = c.shape(of.triangles);
  const V places = c.positions(shape[shape.size() - 2], shape.size() - 2, shape.size());
  return c.cast(c.binary("equal", places, standing), c.dtype(of.triangles));
}

LuFactors lu_factors(OpBuilder& builder, V x) {
  static_cast<void>(checked_square(builder, x));
  const PivotedTriangles made = pivoted_triangles(builder, x);
  return {made.triangles, Compose(builder).squeeze(exchanged_rows(builder, made), builder.rank(x) - 2)};
}

V matrix_exponentials(OpBuilder& builder, V x) {
  static_cast<void>(checked_square(builder, x));
  return unstacked(builder, builder.add("matrix_exponentials", {stacked(builder, x)}), x);
}

Reflections qr_reflections(OpBuilder& builder, V x) {
  Compose c(builder);
  const std::vector<V> made = builder.add_many("qr_reflections", {stacked(builder, x)});
  const V factors = unstacked(builder, made[1], x);
  return {unstacked(builder, made[0], x), c.squeeze(factors, builder.rank(factors) - 1)};
}

V product_of_reflections(OpBuilder& builder, const Reflections& of) {
  const V made = builder.add("product_of_reflections",
                             {stacked(builder, of.vectors), stacked_rows(builder, of.factors)});
  return unstacked(builder, made, of.vectors);
}

V matrix_transpose(OpBuilder& builder, V x) {
  Compose c(builder);
  if (builder.rank(x) < 2) builder.invalid("an operand of shape " + to_string(c.shape(x)));
  ir::Ints perm = c.count_to(builder.rank(x));
  std::swap(perm.back(), perm[perm.size() - 2]);
  return c.transpose(x, perm);
}

}  // namespace tensormill::build
