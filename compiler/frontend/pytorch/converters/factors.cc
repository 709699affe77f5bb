// Factors of matrices, orthonormal ones, eigenvectors and singular values, and what is made of them: inverses
// of matrices that have none, ranks and norms.
#include <algorithm>
#include <limits>

#include "compiler/build/moves/places.h"
#include "compiler/build/numbers/matrices.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// What stands for vectors that are not asked for.
V no_vectors(NodeContext& node, V x) { return Compose(node).filled(node.dtype(x), {0}, 0); }

/// Square matrices [...,n,n] of zeros, n the extent of x's axis.
V zeros_by(NodeContext& node, V x, int64_t axis) {
  ir::SymShape shape = node.shape(x);
  shape[shape.size() - 1] = shape[shape.size() - 2] = node.shape(x)[static_cast<size_t>(axis)];
  return Compose(node).filled(node.dtype(x), shape, 0);
}

}  // namespace

void convert_qr(NodeContext& node) {
  const V x = node.tensor("A");
  const std::string mode = node.text("mode");
  if (mode != "reduced" && mode != "complete" && mode != "r") node.invalid("mode is \"" + mode + "\"");
  const build::QrFactors made = build::qr_factors(node, x, mode == "complete");
  node.set_output(0, mode == "r" ? no_vectors(node, x) : made.q);
  node.set_output(1, made.r);
}

// The third result is the right vectors' transpose, but of svd itself.
void convert_svd(NodeContext& node) {
  const bool is_old = node.op() == "svd";
  const V x = node.tensor(is_old ? "self" : "A");
  const bool is_full = is_old ? !node.flag("some") : node.flag("full_matrices");
  const bool has_vectors = !takes(node, "compute_uv") || node.flag("compute_uv");
  const build::SingularValues made = build::singular_values(node, x, is_full && has_vectors);
  node.set_output(1, made.values);
  if (has_vectors) {
    node.set_output(0, made.left);
    return node.set_output(2, is_old ? made.right : build::matrix_transpose(node, made.right));
  }
  node.set_output(0, is_old ? zeros_by(node, x, node.rank(x) - 2) : no_vectors(node, x));
  node.set_output(2, is_old ? zeros_by(node, x, node.rank(x) - 1) : no_vectors(node, x));
}

void convert_svdvals(NodeContext& node) {
  node.set_output(0, build::singular_values(node, node.tensor("A"), false).values);
}

// Of one triangle of each matrix.
void convert_eigh(NodeContext& node) {
  const V x = node.tensor(takes(node, "A") ? "A" : "self");
  const std::string triangle = node.text("UPLO");
  const bool is_lower = triangle == "L" || triangle == "l";
  if (!is_lower && triangle != "U" && triangle != "u") node.invalid("UPLO is \"" + triangle + "\"");
  const build::Eigenvectors made =
      build::symmetric_eigenvectors(node, is_lower ? x : build::matrix_transpose(node, x));
  node.set_output(0, made.values);
  if (node.op() == "linalg_eigvalsh") return;
  const bool has_vectors = !takes(node, "compute_v") || node.flag("compute_v");
  node.set_output(1, has_vectors ? made.vectors : no_vectors(node, x));
}

namespace {

/// x = left diag(values) right^T of float64, the values' sizes [...,k].
struct Spectrum {
  V values, sizes, left, right;
};

Spectrum spectrum_of(NodeContext& node, V x) {
  Compose c(node);
  const V wide = c.cast(x, DType::kFloat64);
  if (takes(node, "hermitian") && node.flag("hermitian")) {
    const build::Eigenvectors made = build::symmetric_eigenvectors(node, wide);
    return {made.values, c.unary("abs", made.values), made.vectors, made.vectors};
  }
  const build::SingularValues made = build::singular_values(node, wide, false);
  return {made.values, made.values, made.left, made.right};
}

/// Up to which size of values they count as 0, beside [...,k]: an absolute limit, or one by the largest of
/// them, which is by default so many rounding errors of x as it has rows or columns.
V limit_of(NodeContext& node, V sizes, V x) {
  Compose c(node);
  const V largest = c.reduce("reduce_max", sizes, {node.rank(sizes) - 1}, true);
  const auto given = [&](const char* name) {
    const V limit = node.as(node.operand(name), DType::kFloat64);
    return c.unsqueeze(limit, node.rank(limit));
  };
  if (takes(node, "rcond")) return c.mul(given("rcond"), largest);
  if (takes(node, "tol")) return given("tol");
  const bool has_absolute = node.has("atol");
  const V zero = c.number(largest, 0), absolute = has_absolute ? given("atol") : zero;
  if (node.has("rtol")) return c.binary("max", absolute, c.mul(given("rtol"), largest));
  const double step = node.dtype(x) == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                       : std::numeric_limits<float>::epsilon();
  const ir::SymInt rows = node.shape(x)[static_cast<size_t>(node.rank(x) - 2)],
                   columns = node.shape(x).back();
  V relative = c.times(c.extent(largest, max(rows, columns)), step);
  if (has_absolute) relative = c.where(c.binary("greater", absolute, zero), zero, relative);
  return c.binary("max", absolute, c.mul(relative, largest));
}

}  // namespace

// By the values that do not count as 0, each in place of its reciprocal.
void convert_pinv(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  const Spectrum made = spectrum_of(node, x);
  const V counts = c.binary("greater", made.sizes, limit_of(node, made.sizes, x));
  const V one = c.number(made.values, 1), zero = c.number(made.values, 0);
  const V factors = c.where(counts, c.div(one, c.where(counts, made.values, one)), zero);
  const V scaled = c.mul(made.right, c.unsqueeze(factors, node.rank(factors) - 1));
  node.set_output(0, c.cast(c.matmul(scaled, made.left, true), node.dtype(x)));
}

// How many values do not count as 0.
void convert_matrix_rank(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor(takes(node, "input") ? "input" : "self");
  const V sizes = spectrum_of(node, x).sizes;
  const V counts = c.cast(c.binary("greater", sizes, limit_of(node, sizes, x)), DType::kInt64);
  node.set_output(0, c.reduce("reduce_sum", counts, {node.rank(counts) - 1}, false));
}

// Powers are products of squares, of the inverse where they are below 0.
void convert_matrix_power(NodeContext& node) {
  constexpr int64_t kMostPower = int64_t{1} << 20;
  Compose c(node);
  const V x = node.tensor("self");
  const DType dtype = node.dtype(x);
  int64_t power = node.integer("n");
  if (std::abs(power) > kMostPower) node.unsupported("n", std::to_string(power) + " is not implemented");
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < 2 || !ir::demand(ir::Relation::kEqual, shape.back(), shape[shape.size() - 2]))
    node.invalid("matrices of shape " + to_string(shape));
  V square = c.cast(power < 0 ? build::inverses(node, x) : x, summed_in(dtype)), y = ir::kAbsent;
  if (power == 0) {
    const V is_on = c.expand(build::on_diagonal(node, shape), shape);
    y = c.where(is_on, c.number(square, 1), c.number(square, 0));
  }
  for (power = std::abs(power); power > 0; power /= 2) {
    if (power % 2 == 1) y = y == ir::kAbsent ? square : c.matmul(y, square);
    if (power > 1) square = c.matmul(square, square);
  }
  node.set_output(0, y == x ? node.add("identity", {y}) : c.cast(y, dtype));
}

// Of matrices along two axes: by all elements, by sums of rows or of columns, or by their singular values.
void convert_matrix_norm(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const V x = c.cast(node.tensor("self"), node.output_dtype());
  const std::vector<int64_t> axes =
      node.has("dim") ? node.axes("dim", node.rank(x)) : c.count_to(node.rank(x));
  if (axes.size() != 2) node.invalid("norms of matrices along " + std::to_string(axes.size()) + " axes");
  const bool is_named = node.row().overload.find("str") != std::string::npos, keepdim = node.flag("keepdim");
  const std::string name = is_named ? node.text("ord") : "";
  const double order = is_named ? 0 : node.real("ord"), size = std::fabs(order);
  const bool is_known =
      is_named ? name == "fro" || name == "nuc" : size == 1 || size == 2 || std::isinf(size);
  if (!is_known) node.invalid("ord is " + (is_named ? "\"" + name + "\"" : std::to_string(order)));
  if (name == "fro") return node.set_output(0, c.reduce("reduce_l2", x, axes, keepdim));
  const char* best = order < 0 ? "reduce_min" : "reduce_max";
  V y = x;
  if (name == "nuc" || size == 2) {
    std::vector<int64_t> perm;
    for (int64_t axis = 0; axis < node.rank(x); ++axis)
      if (axis != axes[0] && axis != axes[1]) perm.push_back(axis);
    perm.insert(perm.end(), axes.begin(), axes.end());
    const V values =
        build::singular_values(node, c.cast(c.transpose(x, perm), DType::kFloat64), false).values;
    y = c.reduce(name == "nuc" ? "reduce_sum" : best, values, {node.rank(values) - 1}, false);
  } else {
    const bool is_of_columns = size == 1;
    const V sums = c.reduce("reduce_sum", c.unary("abs", x), {axes[is_of_columns ? 0 : 1]}, true);
    y = c.reduce(best, sums, {axes[is_of_columns ? 1 : 0]}, true);
  }
  ir::SymShape shape = node.shape(x);
  for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
  for (const int64_t axis : {std::max(axes[0], axes[1]), std::min(axes[0], axes[1])})
    if (!keepdim) shape.erase(shape.begin() + axis);
  node.set_output(0, c.cast(c.reshape(y, shape), node.dtype(x)));
}

// Of l l^T, or of u^T u.
void convert_cholesky_inverse(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("self"), x = c.cast(given, DType::kFloat64);
  const bool is_upper = node.flag("upper");
  const V lower = is_upper ? build::matrix_transpose(node, x) : x,
          upper = is_upper ? x : build::matrix_transpose(node, x);
  const V one = c.number(x, 1), zero = c.number(x, 0);
  const V identity = c.where(c.expand(build::on_diagonal(node, node.shape(x)), node.shape(x)), one, zero);
  const V y = build::triangular_solutions(node, lower, identity, {true});
  node.set_output(0, c.cast(build::triangular_solutions(node, upper, y, {false}), node.dtype(given)));
}

// Each element of the first operand times all of the second, where it stands.
void convert_kron(NodeContext& node) {
  Compose c(node);
  const Operand first = node.operand("self"), second = node.operand("other");
  const DType dtype = node.common_type({first, second});
  const V a = numeric(node, node.as(first, dtype)), b = numeric(node, node.as(second, dtype));
  const auto rank = static_cast<size_t>(std::max(node.rank(a), node.rank(b)));
  const ir::SymShape left = node.shape(a), right = node.shape(b);
  ir::SymShape of_a(2 * rank, 1), of_b(2 * rank, 1), whole(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from_a = rank - left.size(), from_b = rank - right.size();
    if (i >= from_a) of_a[2 * i] = left[i - from_a];
    if (i >= from_b) of_b[2 * i + 1] = right[i - from_b];
    whole[i] = node.product(of_a[2 * i], of_b[2 * i + 1]);
  }
  const V y = c.mul(c.reshape(a, of_a), c.reshape(b, of_b));
  node.set_output(0, c.cast(c.reshape(y, whole), dtype));
}

// Rows of powers of each element, from 0 on, or down to 0.
void convert_vander(NodeContext& node) {
  Compose c(node);
  const V given = node.tensor("x");
  const V x = is_float(node.dtype(given)) ? given : c.cast(given, DType::kInt64);
  const bool is_falling = node.op() == "vander" && !node.flag("increasing");
  if (node.op() == "vander") check_rank(node, x, 1);
  const int64_t rank = node.rank(x);
  const ir::SymInt count = node.has("N") ? node.sym("N") : node.shape(x)[static_cast<size_t>(rank - 1)];
  if (!ir::demand(ir::Relation::kLessEqual, 0, count)) node.invalid(to_string(count) + " powers");
  ir::SymShape wide = node.shape(x);
  wide.push_back(count);
  V y = node.add("cumprod", {c.expand(c.unsqueeze(x, rank), wide)},
                 {{"axis", rank}, {"exclusive", int64_t{1}}});
  if (is_falling) y = c.gather(y, c.sub(c.dims({count - 1}, {}), c.iota(count)), rank);
  node.set_output(0, y);
}

}  // namespace tensormill::frontend::pytorch
