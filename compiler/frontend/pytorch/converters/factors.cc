// Factors of matrices, orthonormal ones, eigenvectors and singular values, and what is made of them: inverses
// of matrices that have none, ranks and norms.
#include <algorithm>
#include <limits>

#include "compiler/build/extents/run_numbers.h"
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
  if (takes(node, "rcond") && node.has("rcond")) return c.mul(given("rcond"), largest);
  if (takes(node, "tol")) return given("tol");
  const bool has_absolute = takes(node, "atol") && node.has("atol");
  const V zero = c.number(largest, 0), absolute = has_absolute ? given("atol") : zero;
  if (takes(node, "rtol") && node.has("rtol"))
    return c.binary("max", absolute, c.mul(given("rtol"), largest));
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

namespace {

/// The sums of squares of b - ax over the rows of each matrix.
V residuals_of(NodeContext& node, V a, V x, V b) {
  Compose c(node);
  const V rest = c.sub(b, c.matmul(c.cast(a, DType::kFloat64), x));
  return c.cast(c.reduce("reduce_sum", c.mul(rest, rest), {node.rank(rest) - 2}, false), node.dtype(a));
}

/// The right side as matrices: of vectors it is one column each.
V right_side(NodeContext& node, V a, V b) {
  Compose c(node);
  const bool is_vector = node.rank(b) + 1 == node.rank(a);
  const ir::SymShape own = node.shape(a), given = node.shape(b);
  const size_t rows = given.size() - (is_vector ? 1 : 2);
  if (own.size() < 2 || (!is_vector && given.size() != own.size()) ||
      !ir::demand(ir::Relation::kEqual, own[own.size() - 2], given[rows]))
    node.invalid("matrices of shape " + to_string(own) + ", a right side of " + to_string(given));
  return c.cast(is_vector ? c.unsqueeze(b, node.rank(b)) : b, DType::kFloat64);
}

}  // namespace

// The least x of all whose ax is nearest to b, by what does not count as 0. What LAPACK's driver leaves out
// of its residuals, the ranks and the singular values is empty. A driver that looks at the ranks has
// residuals of none but full ones.
void convert_lstsq(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("self"), b = node.tensor("b"), wide = right_side(node, a, b);
  const std::string driver = node.has("driver") ? node.text("driver") : "gelsy";
  const bool is_full = driver == "gels", has_values = driver == "gelsd" || driver == "gelss";
  if (!is_full && !has_values && driver != "gelsy") node.invalid("driver is \"" + driver + "\"");
  const Spectrum made = spectrum_of(node, a);
  const V none = c.number(made.values, 0), one = c.number(made.values, 1);
  const V counts = c.binary("greater", made.sizes, is_full ? none : limit_of(node, made.sizes, a));
  const V factors = c.where(counts, c.div(one, c.where(counts, made.values, one)), none);
  const V parts = c.mul(c.unsqueeze(factors, node.rank(factors)),
                        c.matmul(build::matrix_transpose(node, made.left), wide));
  const V x = c.matmul(made.right, parts), own = c.cast(x, node.dtype(a));
  const V nothing = c.filled(node.dtype(a), {0}, 0);
  node.set_output(0, node.rank(b) < node.rank(a) ? c.squeeze(own, node.rank(x) - 1) : own);
  const ir::SymShape shape = node.shape(a);
  const bool is_tall = driver != "gelsy" && shape.back() < shape[shape.size() - 2];
  const V ranks = c.reduce("reduce_sum", c.cast(counts, DType::kInt64), {node.rank(counts) - 1}, false);
  V residuals = is_tall ? residuals_of(node, a, x, wide) : nothing;
  if (is_tall && has_values)
    residuals = build::required(node, residuals, c.binary("equal", ranks, c.extent(ranks, shape.back())),
                                "residuals of matrices of ranks {}", {ranks});
  node.set_output(1, residuals);
  node.set_output(2, is_full ? c.filled(DType::kInt64, {0}, 0) : ranks);
  node.set_output(3, has_values ? c.cast(made.values, node.dtype(a)) : nothing);
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

namespace {

/// Which norm: one with a name, or by a number.
struct MatrixNorm {
  std::string name;
  double order = 0;
};

/// Of matrices along two axes: by all elements, by sums of rows or of columns, or by their singular values.
V matrix_norm(NodeContext& node, V x, const std::vector<int64_t>& axes, const MatrixNorm& norm,
              bool keepdim) {
  Compose c(node);
  const std::string& name = norm.name;
  const double size = std::fabs(norm.order);
  const bool is_known =
      !name.empty() ? name == "fro" || name == "nuc" : size == 1 || size == 2 || std::isinf(size);
  if (!is_known) node.invalid("ord is " + (!name.empty() ? "\"" + name + "\"" : std::to_string(norm.order)));
  if (name == "fro") return c.reduce("reduce_l2", x, axes, keepdim);
  const char* best = norm.order < 0 ? "reduce_min" : "reduce_max";
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
  return c.cast(c.reshape(y, shape), node.dtype(x));
}

}  // namespace

void convert_matrix_norm(NodeContext& node) {
  Compose c(node);
  static_cast<void>(node.optional_dtype("dtype"));
  const V x = c.cast(node.tensor("self"), node.output_dtype());
  const std::vector<int64_t> axes =
      node.has("dim") ? node.axes("dim", node.rank(x)) : c.count_to(node.rank(x));
  if (axes.size() != 2) node.invalid("norms of matrices along " + std::to_string(axes.size()) + " axes");
  const bool is_named = node.row().overload.find("str") != std::string::npos, keepdim = node.flag("keepdim");
  const MatrixNorm norm{is_named ? node.text("ord") : "", is_named ? 0 : node.real("ord")};
  if (is_named && norm.name.empty()) node.invalid("ord is \"\"");
  node.set_output(0, matrix_norm(node, x, axes, norm, keepdim));
}

void convert_nuclear_norm(NodeContext& node) {
  const V x = node.tensor("self");
  const std::vector<int64_t> axes =
      takes(node, "dim") ? node.axes("dim", node.rank(x)) : Compose(node).count_to(node.rank(x));
  if (axes.size() != 2) node.invalid("norms of matrices along " + std::to_string(axes.size()) + " axes");
  node.set_output(0, matrix_norm(node, x, axes, {"nuc"}, node.flag("keepdim")));
}

// The norm of each matrix times that of its inverse, infinite where that is no number, as where there is no
// inverse; by singular values their ratio.
void convert_condition_number(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("self");
  if (node.rank(x) < 2) node.invalid("matrices of shape " + to_string(node.shape(x)));
  const bool is_named = node.row().overload == "p_str";
  const MatrixNorm norm{is_named ? node.text("p") : "", is_named || !node.has("p") ? 2 : node.real("p")};
  if (!is_named && std::fabs(norm.order) == 2) {
    const V values = build::singular_values(node, x, false).values;
    const std::vector<int64_t> last = {node.rank(values) - 1};
    const V most = c.reduce("reduce_max", values, last, false),
            least = c.reduce("reduce_min", values, last, false);
    return node.set_output(0, norm.order > 0 ? c.div(most, least) : c.div(least, most));
  }
  const std::vector<int64_t> axes = {node.rank(x) - 2, node.rank(x) - 1};
  const V y = c.mul(matrix_norm(node, x, axes, norm, false),
                    matrix_norm(node, build::inverses(node, x), axes, norm, false));
  const V infinite = c.number(y, std::numeric_limits<double>::infinity());
  node.set_output(0, c.where(node.add("is_nan", {y}), infinite, y));
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
