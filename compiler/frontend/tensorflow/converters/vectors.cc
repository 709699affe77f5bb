// Vectors and matrices, diagonals of tensors, and places among others.
#include <algorithm>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/matrices.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

// Of vectors of three numbers along the last axis.
void convert_cross(NodeContext& node) {
  Compose c(node);
  const V a = node.input(0), b = node.input(1);
  const ir::SymShape shape = node.shape(a);
  if (shape.empty() || !ir::demand_equal(shape, node.shape(b)) ||
      !ir::demand(ir::Relation::kEqual, shape.back(), 3))
    node.invalid("vectors of shape " + to_string(shape) + " and " + to_string(node.shape(b)));
  const int64_t last = node.rank(a) - 1;
  const auto part = [&](V x, int64_t i) { return c.slice(x, last, i % 3, 1); };
  std::vector<V> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(c.sub(c.mul(part(a, i + 1), part(b, i + 2)), c.mul(part(a, i + 2), part(b, i + 1))));
  node.set_output(0, c.concat(parts, last));
}

void convert_determinant(NodeContext& node) { node.set_output(0, build::determinants(node, node.input(0))); }

namespace {

/// The square matrices of the first operand, or the transposed ones.
V square_operand(NodeContext& node) {
  const V x = node.input(0);
  return node.flag("adjoint", false) ? build::matrix_transpose(node, x) : x;
}

constexpr const char* kNoInverse = "a matrix has no inverse";

/// Matrices of which a run says so where elimination leaves a pivot of 0.
V invertible(NodeContext& node, V x) {
  Compose c(node);
  const V sign = build::log_determinants(node, x).sign;
  return build::required(node, x, c.unary("not", c.binary("equal", sign, c.number(sign, 0))), kNoInverse);
}

}  // namespace

void convert_matrix_inverse(NodeContext& node) {
  node.set_output(0, build::inverses(node, invertible(node, square_operand(node))));
}

// Operands: square matrices a, b: the x of ax = b.
void convert_matrix_solve(NodeContext& node) {
  const V a = invertible(node, square_operand(node));
  node.set_output(0, build::solutions(node, a, node.input(1)));
}

// The factors of square matrices, and which row each row of their product is.
void convert_lu(NodeContext& node) {
  Compose c(node);
  const build::LuFactors made = build::lu_factors(node, node.input(0));
  const V off_diagonal = c.unary("not", build::on_diagonal(node, node.shape(made.both)));
  const V is_none = c.binary("equal", made.both, c.number(made.both, 0));
  const V stays = c.binary("or", off_diagonal, c.unary("not", is_none));
  node.set_output(0, build::required(node, made.both, stays, kNoInverse));
  node.set_output(1, c.cast(made.order, node.dtype_attr("output_idx_type", DataType::kInt32)));
}

// Of square matrices of real or complex numbers.
void convert_eig(NodeContext& node) {
  Compose c(node);
  const auto* given = std::get_if<Complex>(&node.item(0).value);
  const Complex x =
      given != nullptr
          ? *given
          : Complex{node.input(0), c.filled(node.dtype(node.input(0)), node.shape(node.input(0)), 0)};
  const build::ComplexEigenvectors made = build::eigenvectors(node, x);
  const V values = made.values.real;
  const V found = build::required(node, values, c.binary("equal", values, values), "it has no eigenvalues");
  node.set_item(0, {Complex{found, made.values.imaginary}, {}});
  if (node.flag("compute_v", true)) node.set_item(1, {made.vectors, {}});
}

// Operands: matrices a, b, a number: the x for which ax comes nearest to b, of a size that counts by that
// number, or, where it is not "fast", the smallest such x.
void convert_least_squares(NodeContext& node) {
  Compose c(node);
  const V given = node.input(1), a = c.cast(node.input(0), DType::kFloat64),
          b = c.cast(given, DType::kFloat64);
  const ir::SymShape shape = node.shape(a);
  if (shape.size() < 2 || node.rank(b) != node.rank(a)) node.invalid("matrices of shape " + to_string(shape));
  const V turned = build::matrix_transpose(node, a);
  V x = ir::kAbsent;
  if (node.flag("fast", true)) {
    const ir::SymInt &rows = shape[shape.size() - 2], &columns = shape.back();
    const bool is_wide = is_proven(ir::Relation::kLess, rows, columns);
    if (!is_wide && !is_proven(ir::Relation::kLessEqual, columns, rows))
      node.unsupported("matrix", "it may be wide or tall");
    const V square = is_wide ? c.matmul(a, turned) : c.matmul(turned, a);
    const V more = c.where(build::on_diagonal(node, node.shape(square)),
                           c.reshape(c.cast(node.input(2), DType::kFloat64), {}), c.number(square, 0));
    const V whole = invertible(node, c.add(square, more));
    x = is_wide ? c.matmul(turned, build::solutions(node, whole, b))
                : build::solutions(node, whole, c.matmul(turned, b));
  } else {
    const build::SingularValues made = build::singular_values(node, a, false);
    const double least = node.dtype(given) == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                              : std::numeric_limits<float>::epsilon();
    const V most = c.reduce("reduce_max", made.values, {node.rank(made.values) - 1}, true);
    const V counts = c.binary("greater", made.values, c.times(most, least));
    const V share = c.where(counts, c.div(c.number(most, 1), made.values), c.number(most, 0));
    const V along =
        c.mul(c.matmul(build::matrix_transpose(node, made.left), b), c.unsqueeze(share, node.rank(share)));
    x = c.matmul(made.right, along);
  }
  node.set_output(0, c.cast(x, node.dtype(given)));
}

namespace {

/// Of three diagonals [...,n] of matrices the rows [...,n,1] of one of them.
V diagonal_rows(NodeContext& node, V diagonal) {
  return Compose(node).unsqueeze(diagonal, node.rank(diagonal));
}

}  // namespace

// Operands: the diagonals above, at and below the main one, of which the last element of the first and the
// first one of the last count for nothing; what the matrix is multiplied by.
void convert_tridiagonal_product(NodeContext& node) {
  Compose c(node);
  const V x = node.input(3);
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2) node.invalid("a right side of shape " + to_string(shape));
  const int64_t axis = node.rank(x) - 2;
  const ir::SymInt& count = shape[static_cast<size_t>(axis)];
  const auto rows = [&](size_t operand) {
    const V diagonal = node.input(operand);
    const ir::SymShape own = node.shape(diagonal);
    if (own.size() != shape.size() || !ir::demand(ir::Relation::kEqual, own.back(), count) ||
        !ir::demand(ir::Relation::kEqual, own[static_cast<size_t>(axis)], 1))
      node.invalid("a diagonal of shape " + to_string(own));
    return build::matrix_transpose(node, diagonal);
  };
  const V place = c.reshape(c.iota(count), {count, 1}), last = c.dims({count - 1}, {});
  const auto moved = [&](int64_t by) {
    const V from = c.add(c.iota(count), c.ints({by}, {}));
    const V within = c.binary("max", c.binary("min", from, last), c.ints({0}, {}));
    const V at_end = c.binary("equal", place, by > 0 ? last : c.ints({0}, {}));
    return c.where(at_end, c.number(x, 0), c.gather(x, within, axis));
  };
  const V below = c.where(c.binary("equal", place, c.ints({0}, {})), c.number(x, 0), rows(2));
  const V above = c.where(c.binary("equal", place, last), c.number(x, 0), rows(0));
  node.set_output(0, c.add(c.add(c.mul(above, moved(1)), c.mul(rows(1), x)), c.mul(below, moved(-1))));
}

// Operands: those diagonals as rows [...,3,n], b: the x of ax = b.
void convert_tridiagonal_solve(NodeContext& node) {
  Compose c(node);
  constexpr int64_t kMostRows = 1 << 12;
  const V given = node.input(0);
  const ir::SymShape shape = node.shape(given);
  if (node.flag("perturb_singular", false))
    node.unsupported("perturb_singular", "matrices that are changed a little are not implemented");
  if (shape.size() < 2 || !ir::demand(ir::Relation::kEqual, shape[shape.size() - 2], 3))
    node.invalid("diagonals of shape " + to_string(shape));
  if (shape.back().is_constant() && shape.back().hint() > kMostRows)
    node.unsupported("diagonals", "more than " + std::to_string(kMostRows) + " rows are not implemented");
  ir::SymShape square = shape;
  square[square.size() - 2] = square.back();
  const auto row = [&](int64_t index) {
    return diagonal_rows(node,
                         c.squeeze(c.slice(given, node.rank(given) - 2, index, 1), node.rank(given) - 2));
  };
  V a = c.expand(c.number(given, 0), square);
  for (int64_t index = 0; index < 3; ++index)
    a = c.where(build::on_diagonal(node, {square.back(), square.back()}, 1 - index), row(index), a);
  node.set_output(0, build::solutions(node, a, node.input(1)));
}

void convert_log_determinant(NodeContext& node) {
  const build::LogDeterminants made = build::log_determinants(node, node.input(0));
  node.set_output(0, made.sign);
  node.set_output(1, made.log);
}

void convert_cholesky(NodeContext& node) { node.set_output(0, build::cholesky(node, node.input(0))); }

void convert_qr(NodeContext& node) {
  const build::QrFactors made = build::qr_factors(node, node.input(0), node.flag("full_matrices", false));
  node.set_output(0, made.q);
  node.set_output(1, made.r);
}

void convert_eigenvectors(NodeContext& node) {
  const build::Eigenvectors made = build::symmetric_eigenvectors(node, node.input(0));
  node.set_output(0, made.values);
  if (node.flag("compute_v", true)) node.set_output(1, made.vectors);
}

void convert_svd(NodeContext& node) {
  const build::SingularValues made =
      build::singular_values(node, node.input(0), node.flag("full_matrices", false));
  node.set_output(0, made.values);
  if (!node.flag("compute_uv", true)) return;
  node.set_output(1, made.left);
  node.set_output(2, made.right);
}

// Operands: square matrices a, of which a triangle counts, b: the x of ax = b, or of the transposed a.
void convert_triangular_solve(NodeContext& node) {
  const bool is_lower = node.flag("lower", true), is_turned = node.flag("adjoint", false);
  const V given = node.input(0), a = is_turned ? build::matrix_transpose(node, given) : given;
  node.set_output(0, build::triangular_solutions(node, a, node.input(1), {is_lower != is_turned}));
}

// Of x [a,b,...] the tensor [a,b,...,a,b,...] with x where both places are one, else 0.
void convert_diag(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  const ir::SymInt count = num_elements(shape);
  const V row = c.reshape(x, {1, count});
  const V table = c.where(build::on_diagonal(node, {count, count}), row, c.number(x, 0));
  ir::SymShape to = shape;
  to.insert(to.end(), shape.begin(), shape.end());
  node.set_output(0, c.reshape(table, to));
}

void convert_diag_part(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const ir::SymShape shape = node.shape(x);
  const auto half = static_cast<std::ptrdiff_t>(shape.size() / 2);
  const ir::SymShape to(shape.begin(), shape.begin() + half);
  if (shape.size() % 2 != 0 || !ir::demand_equal(to, ir::SymShape(shape.begin() + half, shape.end())))
    node.invalid("an operand of shape " + to_string(shape));
  const ir::SymInt count = num_elements(to);
  const V flat = c.reshape(x, {count * count});
  const V places = c.mul(c.iota(count), c.dims({count + 1}, {}));
  node.set_output(0, c.reshape(c.gather(flat, places, 0), to));
}

// Whether fewer than k of the predictions [rows,classes] are above that of the row's target; of a row with
// numbers that are not finite it is not.
void convert_in_top_k(NodeContext& node) {
  Compose c(node);
  const V predictions = node.input(0), targets = node.input(1);
  const ir::SymShape shape = node.shape(predictions);
  if (shape.size() != 2 || node.rank(targets) != 1) node.invalid("predictions of shape " + to_string(shape));
  const V k = node.op() == "InTopK" ? c.ints({node.integer("k")}, {1})
                                    : c.reshape(c.cast(node.input(2), DType::kInt64), {1});
  const V target = c.unsqueeze(c.cast(targets, DType::kInt64), 1), zero = c.ints({0}, {});
  const V high = c.dims({shape[1] - 1}, {});
  const V within = c.binary("max", c.binary("min", target, high), zero);
  const V own = c.gather_elements(predictions, within, 1);
  const V above = c.cast(c.binary("greater", predictions, own), DType::kInt64);
  const V rank = c.reduce("reduce_sum", above, {1}, false);
  const V difference = c.sub(predictions, predictions);  // NaN for what is not finite
  const V is_finite = c.cast(c.binary("equal", difference, c.number(difference, 0)), DType::kUInt8);
  const V all_finite = c.cast(c.reduce("reduce_min", is_finite, {1}, false), DType::kBool);
  const V is_place = c.binary("and", c.squeeze(c.binary("equal", within, target), 1), all_finite);
  node.set_output(0, c.binary("and", c.binary("less", rank, k), is_place));
}

// Places in an axis as places along the axes that it was: [axes,...].
void convert_unravel_index(NodeContext& node) {
  Compose c(node);
  const V given = node.input(0);
  V rest = c.cast(given, DType::kInt64);
  const ir::SymShape dims = node.extents_at(1, "dims");
  std::vector<V> places(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    const V extent = c.dims({dims[d]}, {});
    places[d] = c.unsqueeze(c.binary("mod", rest, extent), 0);
    rest = c.binary("div", rest, extent);
  }
  if (places.empty()) node.invalid("dims is empty");
  node.set_output(0, c.cast(c.concat(places, 0), node.dtype(given)));
}

// The element that stands at place n of the sorted last axis.
void convert_nth_element(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  const int64_t axis = node.rank(x) - 1, n = node.known_int(1, "n");
  if (axis < 0 || n < 0 || !ir::demand(ir::Relation::kLess, n, node.shape(x).back()))
    node.invalid("n is " + std::to_string(n));
  const V order = node.add("sort_positions", {x},
                           {{"axis", axis}, {"k", n + 1}, {"largest", int64_t{node.flag("reverse", false)}}});
  node.set_output(0, c.squeeze(c.gather_elements(x, c.slice(order, axis, n, 1), axis), axis));
}

// Operands: x, and of its channels the mean, variance, offset and scale.
void convert_global_norm(NodeContext& node) {
  Compose c(node);
  const V x = node.input(0);
  V factor = c.unary("rsqrt", c.plus(node.input(2), node.real("variance_epsilon")));
  if (node.flag("scale_after_normalization")) factor = c.mul(factor, node.input(4));
  const V offset = c.sub(node.input(3), c.mul(node.input(1), factor));
  node.set_output(0, node.binary("add", node.binary("mul", x, factor), offset));
}

}  // namespace tensormill::frontend::tensorflow
