// Triangular factors of matrices and what is solved with them, eigenvalues, exponentials and reflections.
#include <algorithm>

#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/matrices.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// How many pivots the triangles have, and the first so many of their rows or columns.
ir::SymInt pivots_of(const NodeContext& node, V triangles) {
  const ir::SymShape shape = node.shape(triangles);
  if (shape.size() < 2) node.invalid("matrices of shape " + to_string(shape));
  return min(shape[shape.size() - 2], shape.back());
}

V lower_of(NodeContext& node, V triangles) {
  Compose c(node);
  const V columns = c.slice(triangles, node.rank(triangles) - 1, 0, pivots_of(node, triangles));
  const V below = node.add("trilu", {columns}, {{"upper", int64_t{0}}, {"k", int64_t{-1}}});
  const V on = build::on_diagonal(node, node.shape(columns));
  return c.where(on, c.number(columns, 1), below);
}

V upper_of(NodeContext& node, V triangles) {
  Compose c(node);
  const V rows = c.slice(triangles, node.rank(triangles) - 2, 0, pivots_of(node, triangles));
  return node.add("trilu", {rows}, {{"upper", int64_t{1}}, {"k", int64_t{0}}});
}

/// Zeros that say of each matrix that nothing failed.
V no_failures(NodeContext& node, V x) {
  const ir::SymShape shape = node.shape(x);
  return Compose(node).filled(DType::kInt32, ir::SymShape(shape.begin(), shape.end() - 2), 0);
}

/// The x of ax = b by the factors of a, or of a^T x = b.
V solved(NodeContext& node, const build::PivotedTriangles& of, V b, bool is_transposed) {
  Compose c(node);
  const V exchange = build::permutations(node, of);
  if (!is_transposed) {
    const V y = build::triangular_solutions(
        node, of.triangles, c.matmul(build::matrix_transpose(node, exchange), b), {true, true});
    return build::triangular_solutions(node, of.triangles, y, {false});
  }
  const V turned = build::matrix_transpose(node, of.triangles);
  const V y = build::triangular_solutions(node, turned, b, {true});
  return c.matmul(exchange, build::triangular_solutions(node, turned, y, {false, true}));
}

}  // namespace

// Three factors of A, or both triangles in one matrix with their pivots.
void convert_lu(NodeContext& node) {
  if (!node.flag("pivot")) node.unsupported("pivot", "factors without exchanged rows are not implemented");
  const V x = node.tensor(takes(node, "A") ? "A" : "self");
  if (takes(node, "check_errors")) static_cast<void>(node.flag("check_errors"));
  const build::PivotedTriangles made = build::pivoted_triangles(node, x);
  if (node.op() == "linalg_lu") {
    node.set_output(0, build::permutations(node, made));
    node.set_output(1, lower_of(node, made.triangles));
    return node.set_output(2, upper_of(node, made.triangles));
  }
  node.set_output(0, made.triangles);
  node.set_output(1, made.pivots);
  if (node.op() != "linalg_lu_factor") node.set_output(2, no_failures(node, x));
}

// The factors of what convert_lu gave; empty where they are not asked for.
void convert_lu_unpack(NodeContext& node) {
  Compose c(node);
  const V triangles = node.tensor("LU_data"), pivots = node.tensor("LU_pivots");
  const V nothing = c.filled(node.dtype(triangles), {0}, 0);
  const bool has_pivots = node.flag("unpack_pivots"), has_triangles = node.flag("unpack_data");
  node.set_output(0, has_pivots ? build::permutations(node, {triangles, pivots}) : nothing);
  node.set_output(1, has_triangles ? lower_of(node, triangles) : nothing);
  node.set_output(2, has_triangles ? upper_of(node, triangles) : nothing);
}

void convert_lu_solve(NodeContext& node) {
  const bool is_old = node.op() == "lu_solve";
  const build::PivotedTriangles of{node.tensor(is_old ? "LU_data" : "LU"),
                                   node.tensor(is_old ? "LU_pivots" : "pivots")};
  const V b = node.tensor(is_old ? "self" : "B");
  const bool is_left = is_old || node.flag("left"), is_adjoint = !is_old && node.flag("adjoint");
  if (is_left) return node.set_output(0, solved(node, of, b, is_adjoint));
  const V turned = solved(node, of, build::matrix_transpose(node, b), !is_adjoint);
  node.set_output(0, build::matrix_transpose(node, turned));
}

void convert_triangular_solve(NodeContext& node) {
  V a = node.tensor("A");
  bool is_upper = node.flag("upper");
  if (node.flag("transpose")) {
    a = build::matrix_transpose(node, a);
    is_upper = !is_upper;
  }
  node.set_output(
      0, build::triangular_solutions(node, a, node.tensor("self"), {!is_upper, node.flag("unitriangular")}));
  if (node.may_be_used(1)) node.set_output(1, node.add("identity", {node.tensor("A")}));
}

// Complex, whatever the matrix.
void convert_eig(NodeContext& node) {
  const V x = node.tensor("self");
  const V none = Compose(node).filled(node.dtype(x), node.shape(x), 0);
  const build::ComplexEigenvectors made = build::eigenvectors(node, {x, none});
  node.set_complex(0, made.values);
  if (node.op() == "linalg_eig") node.set_complex(1, made.vectors);
}

void convert_matrix_exp(NodeContext& node) {
  node.set_output(0, build::matrix_exponentials(node, node.tensor("self")));
}

void convert_geqrf(NodeContext& node) {
  const build::Reflections made = build::qr_reflections(node, node.tensor("self"));
  node.set_output(0, made.vectors);
  node.set_output(1, made.factors);
}

void convert_householder_product(NodeContext& node) {
  const bool is_old = node.op() == "orgqr";
  const V x = node.tensor(is_old ? "self" : "input"), factors = node.tensor(is_old ? "input2" : "tau");
  node.set_output(0, build::product_of_reflections(node, {x, factors}));
}

// The inverse of x as a matrix of its first `ind` axes and the others.
void convert_tensorinv(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const int64_t first = node.integer("ind");
  const ir::SymShape shape = node.shape(x);
  if (first <= 0 || first >= node.rank(x)) node.invalid("ind is " + std::to_string(first));
  const auto middle = shape.begin() + first;
  const ir::SymInt size = num_elements(ir::SymShape(shape.begin(), middle));
  ir::SymShape turned(middle, shape.end());
  turned.insert(turned.end(), shape.begin(), middle);
  node.set_output(0, c.reshape(build::inverses(node, c.reshape(x, {size, size})), turned));
}

// The x of which the product with the last axes of a, or with the axes `dims`, is b.
void convert_tensorsolve(NodeContext& node) {
  Compose c(node);
  V a = node.tensor("self");
  const V b = node.tensor("other");
  if (node.has("dims")) {
    const ir::Ints moved = node.axes("dims", node.rank(a));
    ir::Ints perm;
    for (int64_t axis = 0; axis < node.rank(a); ++axis)
      if (std::find(moved.begin(), moved.end(), axis) == moved.end()) perm.push_back(axis);
    perm.insert(perm.end(), moved.begin(), moved.end());
    a = c.transpose(a, perm);
  }
  const ir::SymShape shape = node.shape(a);
  if (node.rank(b) > node.rank(a)) node.invalid("a right side of shape " + to_string(node.shape(b)));
  const ir::SymShape made(shape.begin() + node.rank(b), shape.end());
  const ir::SymInt size = num_elements(made);
  const V x = build::solutions(node, c.reshape(a, {size, size}), c.reshape(b, {size, 1}));
  node.set_output(0, c.reshape(x, made));
}

namespace {

/// Of integers in 64 bits.
V common_divisors(NodeContext& node, V x, V y) {
  Compose c(node);
  return node.add("common_divisors", {c.cast(x, DType::kInt64), c.cast(y, DType::kInt64)});
}

}  // namespace

// The largest common divisor, or the least common multiple.
void convert_gcd(NodeContext& node) {
  Compose c(node);
  const Operand first = node.operand("self"), second = node.operand("other");
  const DType dtype = node.common_type({first, second});
  if (!is_integer(dtype)) node.invalid("divisors of " + std::string(dtype_name(dtype)));
  const V a = node.as(first, dtype), b = node.as(second, dtype);
  const ir::SymShape shape = ir::broadcast_shapes(node.shape(a), node.shape(b));
  const V x = c.expand(a, shape), y = c.expand(b, shape),
          divisor = c.cast(common_divisors(node, x, y), dtype);
  if (node.op() == "gcd") return node.set_output(0, divisor);
  // Short ones are multiplied in 32 bits, of which the result is the lowest ones.
  const DType wide = dtype_bytes(dtype) < 4 ? DType::kInt32 : dtype;
  const V none = is_zero(node, divisor), whole = c.where(none, c.number(divisor, 1), divisor);
  const V product = c.mul(c.cast(quotient(node, x, whole), wide), c.cast(y, wide));
  node.set_output(0, c.where(none, divisor, c.cast(c.unary("abs", product), dtype)));
}

}  // namespace tensormill::frontend::pytorch
