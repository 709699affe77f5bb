/// determinants, log_determinants, solve_matrices, solve_triangles, cholesky_factors, qr_factors,
/// symmetric_eigenvectors, eigenvectors, singular_values, pivoted_triangles, pivoted_rows,
/// matrix_exponentials, qr_reflections, product_of_reflections, common_divisors, special_function: numbers
/// and matrices, by host steps.
#include "runtime/host_ops/matrix_steps.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/type_rules.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/special.h"

namespace tensormill::ops::matrix_step_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer_determinants(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  if (x.shape.size() != 3 || x.shape[1] != x.shape[2])
    fail("x is " + to_string(x.shape) + ", expected square matrices [n,m,m]");
  return {made_type(x.dtype, {x.shape[0]})};
}

/// Input `index`, matrices [n,rows,columns] of float64.
const ir::SymShape& matrices_of(const ir::InferContext& context, size_t index) {
  const ir::SymShape& shape = input_of(context, index, set_of(DType::kFloat64)).shape;
  if (shape.size() != 3) fail("matrices of shape " + to_string(shape) + ", expected [n,rows,columns]");
  return shape;
}

const ir::SymShape& square_matrices(const ir::InferContext& context) {
  const ir::SymShape& shape = matrices_of(context, 0);
  if (!demand(ir::Relation::kEqual, shape[1], shape[2]))
    fail("matrices of shape " + to_string(shape) + " are not square");
  return shape;
}

std::vector<ir::ValueType> infer_log_determinants(const ir::InferContext& context) {
  const ir::ValueType each = made_type(DType::kFloat64, {square_matrices(context)[0]});
  return {each, each};
}

std::vector<ir::ValueType> infer_solved(const ir::InferContext& context) {
  const ir::SymShape &a = square_matrices(context), &b = matrices_of(context, 1);
  if (!demand(ir::Relation::kEqual, a[0], b[0]) || !demand(ir::Relation::kEqual, a[1], b[1]))
    fail("matrices of shape " + to_string(a) + ", right sides of " + to_string(b));
  return {input(context, 1)};
}

std::vector<ir::ValueType> infer_triangle(const ir::InferContext& context) {
  for (const char* flag : {"lower", "unit"}) static_cast<void>(attr_int(context.attrs, flag));
  return infer_solved(context);
}

std::vector<ir::ValueType> infer_cholesky(const ir::InferContext& context) {
  static_cast<void>(square_matrices(context));
  return {input(context, 0)};
}

ir::ValueType doubles_of(ir::SymShape shape) { return made_type(DType::kFloat64, std::move(shape)); }

/// Whether factors have all rows, and not as many as there are pivots.
bool is_full(const ir::InferContext& context) { return attr_int(context.attrs, "full") != 0; }

std::vector<ir::ValueType> infer_qr(const ir::InferContext& context) {
  const ir::SymShape& x = matrices_of(context, 0);
  const ir::SymInt kept = is_full(context) ? x[1] : min(x[1], x[2]);
  return {doubles_of({x[0], x[1], kept}), doubles_of({x[0], kept, x[2]})};
}

std::vector<ir::ValueType> infer_eigenvectors(const ir::InferContext& context) {
  const ir::SymShape& x = square_matrices(context);
  return {doubles_of({x[0], x[1]}), doubles_of(x)};
}

std::vector<ir::ValueType> infer_any_eigenvectors(const ir::InferContext& context) {
  const ir::SymShape &x = square_matrices(context), &other = matrices_of(context, 1);
  if (!demand_equal(x, other)) fail("parts of shapes " + to_string(x) + " and " + to_string(other));
  const ir::ValueType values = doubles_of({x[0], x[1]}), vectors = doubles_of(x);
  return {values, values, vectors, vectors};
}

std::vector<ir::ValueType> infer_singular(const ir::InferContext& context) {
  const ir::SymShape& x = matrices_of(context, 0);
  const ir::SymInt least = min(x[1], x[2]);
  const bool full = is_full(context);
  return {doubles_of({x[0], least}), doubles_of({x[0], x[1], full ? x[1] : least}),
          doubles_of({x[0], x[2], full ? x[2] : least})};
}

std::vector<ir::ValueType> infer_triangles(const ir::InferContext& context) {
  const ir::SymShape& x = matrices_of(context, 0);
  return {doubles_of(x), doubles_of({x[0], 1, min(x[1], x[2])})};
}

std::vector<ir::ValueType> infer_pivoted(const ir::InferContext& context) {
  const ir::SymShape &pivots = matrices_of(context, 0), &x = matrices_of(context, 1);
  if (!demand(ir::Relation::kEqual, pivots[0], x[0]) || !demand(ir::Relation::kEqual, pivots[1], 1))
    fail("pivots of shape " + to_string(pivots) + " for matrices of " + to_string(x));
  return {doubles_of({x[0], 1, x[1]})};
}

std::vector<ir::ValueType> infer_reflections(const ir::InferContext& context) {
  const ir::SymShape& x = matrices_of(context, 0);
  return {doubles_of(x), doubles_of({x[0], min(x[1], x[2]), 1})};
}

std::vector<ir::ValueType> infer_reflected(const ir::InferContext& context) {
  const ir::SymShape &x = matrices_of(context, 0), &factors = matrices_of(context, 1);
  const bool fits = demand(ir::Relation::kEqual, factors[0], x[0]) &&
                    demand(ir::Relation::kEqual, factors[1], 1) &&
                    demand(ir::Relation::kLessEqual, factors[2], min(x[1], x[2]));
  if (!fits) fail("factors of shape " + to_string(factors) + " of reflections in " + to_string(x));
  return {doubles_of(x)};
}

std::vector<ir::ValueType> infer_divisors(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, set_of(DType::kInt64));
  if (!demand_equal(input_of(context, 1, set_of(DType::kInt64)).shape, x.shape))
    fail("operands of shapes " + to_string(x.shape) + " and " + to_string(input(context, 1).shape));
  return {x};
}

std::vector<ir::ValueType> infer_special(const ir::InferContext& context) {
  const std::string name = attr_string(context.attrs, "name", "");
  if (host_ops::special_operands(name) != context.inputs.size())
    fail("no function \"" + name + "\" of " + std::to_string(context.inputs.size()) + " operands");
  const ir::ValueType& x = input_of(context, 0, set_of(DType::kFloat64));
  for (size_t i = 1; i < context.inputs.size(); ++i) static_cast<void>(input_like_first(context, i));
  for (size_t i = 1; i < context.inputs.size(); ++i)
    if (!demand_equal(input(context, i).shape, x.shape))
      fail("operands of shapes " + to_string(x.shape) + " and " + to_string(input(context, i).shape));
  return {x};
}

template <host_ops::HostFunction function>
ir::OpDef step_of(std::string_view name, int inputs,
                  std::vector<ir::ValueType> (*infer)(const ir::InferContext&), std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.min_inputs = def.max_inputs = inputs;
  def.infer = infer;
  def.reference = [](const ir::ReferenceContext& context) { run_host(function, context); };
  def.doc = doc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  std::vector<ir::OpDef> defs = {
      step_of<&host_ops::determinants>("determinants", 1, &infer_determinants,
                                       "the determinant of each matrix of x [n,m,m]"),
      step_of<&host_ops::log_determinants>(
          "log_determinants", 1, &infer_log_determinants,
          "the sign of the determinant of each matrix of x [n,m,m] (f64), and the logarithm of its size"),
      step_of<&host_ops::solve_matrices>("solve_matrices", 2, &infer_solved,
                                         "the x [n,m,k] of ax = b for matrices a [n,m,m], b [n,m,k] (f64)"),
      step_of<&host_ops::solve_triangles>(
          "solve_triangles", 2, &infer_triangle,
          "the same by a triangle of a, the lower one with attribute lower (int), whose diagonal counts as "
          "ones with attribute unit (int)"),
      step_of<&host_ops::cholesky_factors>(
          "cholesky_factors", 1, &infer_cholesky,
          "the lower triangles l of x = l l^T, by the lower triangles of x [n,m,m] (f64); NaN for what is "
          "not positive definite"),
      step_of<&host_ops::qr_factors>(
          "qr_factors", 1, &infer_qr,
          "q [n,r,k] and r [n,k,c] of x [n,r,c] (f64); k is r with attribute full (int), else the smaller "
          "one of r and c"),
      step_of<&host_ops::symmetric_eigenvectors>(
          "symmetric_eigenvectors", 1, &infer_eigenvectors,
          "eigenvalues [n,m], in rising order, and eigenvectors [n,m,m], as columns, by the lower triangles "
          "of x [n,m,m] (f64)"),
      step_of<&host_ops::eigenvectors>(
          "eigenvectors", 2, &infer_any_eigenvectors,
          "both parts of the eigenvalues [n,m], in rising order of their sizes, and of the eigenvectors "
          "[n,m,m], as columns, by both parts of x [n,m,m] (f64)"),
      step_of<&host_ops::singular_values>(
          "singular_values", 1, &infer_singular,
          "singular values [n,k] of x [n,r,c] (f64) in falling order, u [n,r,i], v [n,c,j]; k is the smaller "
          "one of r and c, i and j are r and c with attribute full (int), else k"),
      step_of<&host_ops::pivoted_triangles>(
          "pivoted_triangles", 1, &infer_triangles,
          "both triangles [n,r,c] of the rows of x [n,r,c] (f64), which were exchanged as the pivots "
          "[n,1,k], counted from 1, say"),
      step_of<&host_ops::pivoted_rows>(
          "pivoted_rows", 2, &infer_pivoted,
          "the rows [n,1,r] of x [n,r,c] (f64) in the order in which pivots [n,1,k] leave them"),
      step_of<&host_ops::matrix_exponentials>("matrix_exponentials", 1, &infer_cholesky,
                                              "e^x of matrices x [n,m,m] (f64)"),
      step_of<&host_ops::qr_reflections>(
          "qr_reflections", 1, &infer_reflections,
          "the upper triangle of x [n,r,c] (f64) that reflections leave, whose vectors stand below it, and "
          "their factors [n,k,1]"),
      step_of<&host_ops::product_of_reflections_step>(
          "product_of_reflections", 2, &infer_reflected,
          "the first c columns of the product of the reflections in x [n,r,c], factors [n,1,k] (f64)"),
      step_of<&host_ops::common_divisors>("common_divisors", 2, &infer_divisors,
                                          "the largest common divisor of x and y (i64) at each place"),
      step_of<&host_ops::special_function>(
          "special_function", 3, &infer_special,
          "of each place of operands (f64) of one shape what the function of attribute name (string) makes: "
          "gamma_lower, gamma_upper, beta, zeta, polygamma, bessel_i0 ... (runtime/host_ops/special.h)")};
  defs.back().min_inputs = 1;
  return defs;
}

}  // namespace tensormill::ops::matrix_step_ops
