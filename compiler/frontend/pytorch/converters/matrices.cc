// Square matrices: determinants, inverses, triangles, and what is solved with them.
#include "compiler/build/numbers/matrices.h"

#include <algorithm>
#include <limits>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

V matrices_of(NodeContext& node) { return node.tensor(takes(node, "A") ? "A" : "self"); }

/// Results from `first` on are parts of a decomposition, or say where it failed.
void leave_rest(NodeContext& node, size_t first) {
  for (size_t i = first; i < node.num_outputs(); ++i)
    if (node.is_used(i)) node.unsupported("output " + std::to_string(i), "it is not implemented");
  if (takes(node, "check_errors")) static_cast<void>(node.flag("check_errors"));
}

V turned(NodeContext& node, V x) { return build::matrix_transpose(node, x); }

/// Whether b is a vector for each of the matrices a, as torch decides it.
bool is_vector(const NodeContext& node, V a, V b) {
  const ir::SymShape shape = node.shape(a);
  if (node.rank(b) == 1) return true;
  return node.rank(b) == node.rank(a) - 1 &&
         ir::demand_equal(node.shape(b), ir::SymShape(shape.begin(), shape.end() - 1));
}

}  // namespace

void convert_determinant(NodeContext& node) {
  Compose c(node);
  const V x = matrices_of(node);
  const std::string& op = node.op();
  if (op.find("logdet") == std::string::npos) {
    node.set_output(0, build::determinants(node, x));
    return leave_rest(node, 1);
  }
  const build::LogDeterminants made = build::log_determinants(node, x);
  if (op == "logdet") {
    const V nan = c.number(made.log, std::numeric_limits<double>::quiet_NaN());
    return node.set_output(0, c.where(is_negative(node, made.sign), nan, made.log));
  }
  node.set_output(0, made.sign);
  node.set_output(1, made.log);
  leave_rest(node, 2);
}

void convert_inverse(NodeContext& node) {
  node.set_output(0, build::inverses(node, matrices_of(node)));
  leave_rest(node, 1);
}

// The x of ax = b, or of xa = b.
void convert_solve(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("A"), b = node.tensor("B");
  const bool is_left = node.flag("left");
  if (is_vector(node, a, b)) {
    if (!is_left) node.invalid("a vector on the right");
    const V x = build::solutions(node, a, c.unsqueeze(b, node.rank(b)));
    node.set_output(0, c.squeeze(x, node.rank(x) - 1));
  } else {
    node.set_output(0, is_left ? build::solutions(node, a, b)
                               : turned(node, build::solutions(node, turned(node, a), turned(node, b))));
  }
  leave_rest(node, 1);
}

// An upper triangle is that of the upper part of the matrix.
void convert_cholesky(NodeContext& node) {
  const V x = node.tensor("self");
  const bool is_upper = node.flag("upper");
  node.set_output(0,
                  is_upper ? turned(node, build::cholesky(node, turned(node, x))) : build::cholesky(node, x));
  leave_rest(node, 1);
}

void convert_solve_triangular(NodeContext& node) {
  const V a = node.tensor("self"), b = node.tensor("B");
  const bool is_lower = !node.flag("upper"), is_unit = node.flag("unitriangular");
  if (node.flag("left"))
    return node.set_output(0, build::triangular_solutions(node, a, b, {is_lower, is_unit}));
  const V x = build::triangular_solutions(node, turned(node, a), turned(node, b), {!is_lower, is_unit});
  node.set_output(0, turned(node, x));
}

// By the triangle of a.
void convert_cholesky_solve(NodeContext& node) {
  const V b = node.tensor("self"), given = node.tensor("input2");
  const bool is_upper = node.flag("upper");
  const V lower = is_upper ? turned(node, given) : given, upper = is_upper ? given : turned(node, given);
  const V y = build::triangular_solutions(node, lower, b, {true});
  node.set_output(0, build::triangular_solutions(node, upper, y, {false}));
}

// Places of a map's elements, -1 to 1 along each axis, the last axis first, moved by matrices theta
// [N,axes,axes + 1].
void convert_affine_grid(NodeContext& node) {
  Compose c(node);
  const V theta = node.tensor("theta");
  const ir::SymShape size = node.syms("size"), shape = node.shape(theta);
  const bool is_aligned = node.flag("align_corners");
  if (size.size() < 4 || shape.size() != 3) node.invalid("matrices of shape " + to_string(shape));
  const size_t axes = size.size() - 2;
  const ir::SymShape space(size.begin() + 2, size.end());
  ir::SymShape column = space, moved = space;
  column.push_back(1);
  std::vector<V> columns;
  for (size_t k = 0; k < axes; ++k) {
    const size_t axis = axes - 1 - k;
    const V places = c.cast(c.positions(space[axis], axis, axes), node.dtype(theta));
    const V count = c.extent(places, space[axis]), one = c.number(places, 1);
    V line = c.times(places, 2);
    if (is_aligned) {
      const V is_one = c.binary("equal", count, one);
      const V steps = c.where(is_one, one, c.sub(count, one));
      line = c.where(is_one, c.number(places, 0), c.minus(c.div(line, steps), 1));
    } else {
      line = c.minus(c.div(c.plus(line, 1), count), 1);
    }
    columns.push_back(c.reshape(c.expand(line, space), column));
  }
  columns.push_back(c.filled(node.dtype(theta), column, 1));
  const V base = c.reshape(c.concat(columns, static_cast<int64_t>(axes)),
                           {1, num_elements(space), static_cast<int64_t>(axes) + 1});
  moved.insert(moved.begin(), size[0]);
  moved.emplace_back(static_cast<int64_t>(axes));
  node.set_output(0, c.reshape(c.matmul(base, theta, true), moved));
}

}  // namespace tensormill::frontend::pytorch
