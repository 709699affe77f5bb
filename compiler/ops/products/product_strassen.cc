/// product_strassen: a product with a constant matrix in halves of rows, depth and columns (strassen.h), of
/// the pixels of a blocked tensor or of the rows of a plain one.
#include <algorithm>

#include "compiler/ops/gemm.h"
#include "compiler/ops/products/strassen.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::product_strassen_ops {

std::vector<ir::OpDef> family();

namespace {

constexpr DTypeSet kDtypes = set_of(DType::kFloat32) | set_of(DType::kFloat64);
constexpr int64_t kProducts = kStrassenProducts;

using Values = std::vector<Expr>;

/// Sizes by name; blocks are of `lanes` channels or columns.
struct Geometry {
  bool is_blocked = false;  ///< x is [batch, blocks, rows..., lanes], else [batch, rows..., columns]
  int64_t batch = 0, rows = 0, lanes = 0;
  Shape row_axes;                            ///< extents whose product is `rows`
  int64_t first = 0;                         ///< column of a plain x that is multiplied first
  int64_t half = 0;                          ///< rows of a half; the second one may have fewer
  int64_t depth_blocks = 0, out_blocks = 0;  ///< of a half
  int64_t columns = 0;                       ///< of the result that are no zeros
  int64_t groups = 0, width = 0;             ///< of u [groups, 7, depth of a half, width]
};

Geometry read_geometry(const ir::Attrs& attrs, const Shape& x, const Shape& u) {
  Geometry g;
  const int64_t block = attr_int(attrs, "block", 0);
  g.is_blocked = block == 0;
  g.lanes = g.is_blocked ? x.back() : block;
  g.batch = x[0];
  g.row_axes = Shape(x.begin() + (g.is_blocked ? 2 : 1), x.end() - 1);
  g.rows = num_elements(g.row_axes);
  g.first = attr_int(attrs, "first", 0);
  g.half = attr_int(attrs, "half");
  g.groups = u[0], g.width = u[3];
  g.depth_blocks = u[2] / g.lanes;
  g.out_blocks = u[0] * u[3] / g.lanes;
  g.columns = attr_int(attrs, "columns", 2 * g.out_blocks * g.lanes);
  return g;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& input = input_of(context, 0, kDtypes);
  const ir::SymShape& factors = input_like_first(context, 1).shape;
  const int64_t block = attr_int(context.attrs, "block", 0);
  if (block < 0) fail("attribute block is " + std::to_string(block));
  const size_t least = block == 0 ? 4 : 3;
  if (input.shape.size() < least)
    fail("input 0 has rank " + std::to_string(input.shape.size()) + ", expected at least " +
         std::to_string(least));
  if (factors.size() != 4) fail("input 1 has rank " + std::to_string(factors.size()) + ", expected 4");
  const Shape x = input.shape, u = factors;
  const int64_t lanes = block == 0 ? x.back() : block;
  if (lanes < 1 || u[1] != kProducts || u[2] % lanes != 0 || u[3] < 1 || u[3] % lanes != 0 ||
      u[0] > kMaxWindow || u[3] > kMaxWindow) {
    fail("the factors have shape " + to_string(u) + ", expected [groups," + std::to_string(kProducts) +
         ",n*" + std::to_string(lanes) + ",k*" + std::to_string(lanes) + "]");
  }
  const Geometry g = read_geometry(context.attrs, x, u);
  const int64_t depth = g.is_blocked ? x[1] * lanes : x.back() - g.first;
  if (g.first < 0 || (g.is_blocked ? depth != 2 * u[2] || g.first != 0 : depth < 2 * u[2])) {
    fail("shapes " + to_string(x) + " and " + to_string(u) + " do not multiply: " + std::to_string(depth) +
         " columns and " + std::to_string(2 * u[2]) + " rows");
  }
  if (g.rows > 0 && (g.half < (g.rows + 1) / 2 || g.half > g.rows + kMaxWindow)) {
    fail("attribute half is " + std::to_string(g.half) + ", expected at least half of " +
         std::to_string(g.rows) + " rows");
  }
  const int64_t columns = 2 * g.out_blocks * lanes;
  if (g.columns < 0 || g.columns > columns || (!g.is_blocked && g.columns != columns))
    fail("attribute columns is " + std::to_string(g.columns) + ", the factors have " +
         std::to_string(columns));
  if (has_input(context, 2)) {
    const ir::SymShape& bias = input_like_first(context, 2).shape;
    if (bias != ir::SymShape{columns})
      fail("the bias has shape " + to_string(bias) + ", expected [" + std::to_string(columns) + "]");
  }
  ir::SymShape out = input.shape;
  if (g.is_blocked) out[1] = 2 * g.out_blocks;
  if (!g.is_blocked) out.back() = columns;
  return {made_type(input.dtype, out)};
}

/// Where the element of a row and a column of x (or, of `blocks` blocks, of the result) is.
struct Places {
  const Geometry& g;
  int64_t columns;  ///< of x, or of the result
  size_t at(int64_t batch, int64_t row, int64_t column) const {
    if (!g.is_blocked) return static_cast<size_t>((batch * g.rows + row) * columns + column);
    const int64_t blocks = columns / g.lanes;
    return static_cast<size_t>(((batch * blocks + column / g.lanes) * g.rows + row) * g.lanes +
                               column % g.lanes);
  }
};

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& u = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Geometry g = read_geometry(context.attrs, x.shape(), u.shape());
  const int64_t depth = g.depth_blocks * g.lanes, side = g.out_blocks * g.lanes, rows = g.batch * g.half;
  const Places from{g, g.is_blocked ? 2 * depth : x.shape().back()}, to{g, 2 * side};
  const std::vector<double> xs = to_doubles(x), us = to_doubles(u);
  std::vector<double> values(static_cast<size_t>(out.num_elements()));
  if (context.inputs.size() > 2 && context.inputs[2] != nullptr) {
    const std::vector<double> bias = to_doubles(*context.inputs[2]);
    for (int64_t i = 0; i < g.batch * g.rows * 2 * side; ++i)
      values[to.at(i / (2 * side) / g.rows, i / (2 * side) % g.rows, i % (2 * side))] =
          bias[static_cast<size_t>(i % (2 * side))];
  }
  const auto row_of = [&](int64_t row, size_t block) { return row % g.half + (block >= 2 ? g.half : 0); };
  for (size_t p = 0; p < kStrassenProducts; ++p) {
    GemmOperands gemm;
    gemm.rows = rows, gemm.columns = side, gemm.depth = depth;
    gemm.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* block) {
      for (int64_t k = 0; k < count; ++k) {
        double sum = 0;
        for (size_t q = 0; q < kStrassenBlocks; ++q) {
          if (kStrassenLeft[p][q] == 0) continue;
          const int64_t source = std::min(row_of(row, q), g.rows - 1);
          sum += kStrassenLeft[p][q] *
                 xs[from.at(row / g.half, source, g.first + k0 + k + (q % 2 == 1 ? depth : 0))];
        }
        block[k] = sum;
      }
    };
    gemm.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* block) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t column = j0 + j, panel = column / g.width * kProducts + static_cast<int64_t>(p);
        block[j] = us[static_cast<size_t>((panel * depth + k) * g.width + column % g.width)];
      }
    };
    gemm.take = [&](int64_t row, int64_t j0, int64_t count, const double* sums) {
      for (size_t q = 0; q < kStrassenBlocks; ++q) {
        const int64_t target = row_of(row, q);
        if (kStrassenResult[q][p] == 0 || target >= g.rows) continue;
        const int64_t first = q % 2 == 1 ? side : 0;
        for (int64_t j = 0; j < std::min(count, g.columns - j0 - first); ++j)
          values[to.at(row / g.half, target, j0 + j + first)] += kStrassenResult[q][p] * sums[j];
      }
    };
    gemm_double(gemm);
  }
  store_doubles(out, values);
}

/// The sum of `terms` by coefficients -1, 0 and 1, of which the first that is not 0 is 1 in one term at
/// least.
template <size_t kCount>
Expr combined(const std::array<int, kCount>& coefficients, const Values& terms) {
  Expr sum;
  for (size_t i = 0; i < kCount; ++i) {
    if (coefficients[i] == 1) sum = sum ? sum + terms[i] : terms[i];
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (coefficients[i] == -1) sum = sum - terms[i];
  }
  return sum;
}

/// A stage [coefficients, batch, blocks, rows, lanes] whose elements are sums of those of `from` at the same
/// place. Where the first index is a number, that sum alone is left.
template <size_t kCount, size_t kSums>
te::Tensor combining_stage(const std::string& name, const te::Tensor& from,
                           const std::array<std::array<int, kCount>, kSums>& coefficients) {
  std::vector<Expr> shape = from->shape;
  shape[0] = Expr(static_cast<int64_t>(kSums));
  return te::compute(name, shape, [&](const Values& axes) {
    Values terms;
    for (size_t q = 0; q < kCount; ++q)
      terms.push_back(te::read(from, replaced(axes, 0, Expr(static_cast<int64_t>(q)))));
    Expr value = combined(coefficients[kSums - 1], terms);
    for (size_t p = kSums - 1; p-- > 0;)
      value = te::select(axes[0] == Expr(static_cast<int64_t>(p)), combined(coefficients[p], terms), value);
    return value;
  });
}

/// The index along the rows' axes of row `row`.
Values row_index(const Geometry& g, Expr row) {
  Values index(g.row_axes.size(), Expr(0));
  int64_t behind = g.rows;
  for (size_t d = 0; d < index.size(); ++d) {
    behind /= g.row_axes[d];
    if (g.row_axes[d] == 1) continue;
    index[d] = behind == 1 ? row : te::floordiv(row, Expr(behind));
    if (behind > 1) row = te::floormod(row, Expr(behind));
  }
  return index;
}

/// The blocks of x: [4, batch, depth blocks, rows, lanes], of rows past the last one those of the last.
te::Tensor block_stage(const std::string& name, const te::Tensor& x, const Geometry& g) {
  const ir::SymShape shape = {static_cast<int64_t>(kStrassenBlocks), g.batch, g.depth_blocks, g.half,
                              g.lanes};
  return te::compute(name, shape.exprs(), [&](const Values& axes) {
    Expr row = te::floordiv(axes[0], Expr(2)) * Expr(g.half) + axes[3];
    if (2 * g.half > g.rows) row = te::min(row, Expr(g.rows - 1));
    const Expr block = te::floormod(axes[0], Expr(2)) * Expr(g.depth_blocks) + axes[2];
    Values index = row_index(g, row);
    index.insert(index.begin(), axes[1]);
    if (g.is_blocked) index.insert(index.begin() + 1, block);
    index.push_back(g.is_blocked ? axes[4] : block * Expr(g.lanes) + axes[4] + Expr(g.first));
    return te::read(x, index);
  });
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const Shape x = context.input_types[0].shape, u = context.input_types[1].shape;
  const Geometry g = read_geometry(context.attrs, x, u);
  const std::string& name = context.name;
  const bool has_bias = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const auto column_of = [&](const Values& axes) {
    return g.is_blocked ? axes[1] * Expr(g.lanes) + axes.back() : axes.back();
  };
  if (is_empty(out.shape) || g.depth_blocks == 0) {
    return {compute_safe(name, out.shape, out.dtype, [&](const Values& axes) {
      return has_bias ? te::read(context.inputs[2], {column_of(axes)}) : te::imm_like({out.dtype, 1}, 0);
    })};
  }
  const te::Tensor blocks = block_stage(name + "_blocks", context.inputs[0], g);
  const te::Tensor left = combining_stage(name + "_left", blocks, kStrassenLeft);
  const te::Tensor products = te::reduce(
      name, te::ReduceOp::kSum, ir::SymShape{kProducts, g.batch, g.out_blocks, g.half, g.lanes}.exprs(),
      {Expr(g.depth_blocks), Expr(g.lanes)}, [&](const Values& axes, const Values& k) {
        const Expr group(g.width / g.lanes);
        return te::read(left, {axes[0], axes[1], k[0], axes[3], k[1]}) *
               te::read(context.inputs[1],
                        {te::floordiv(axes[2], group), axes[0], k[0] * Expr(g.lanes) + k[1],
                         te::floormod(axes[2], group) * Expr(g.lanes) + axes[4]});
      });
  const te::Tensor results = combining_stage(name + "_results", products, kStrassenResult);
  return {te::compute(name + "_out", out.shape.exprs(), [&](const Values& axes) {
    const Values row_axes(axes.begin() + (g.is_blocked ? 2 : 1), axes.end() - 1);
    const Expr row = flatten_index(row_axes, g.row_axes), half(g.half), side(g.out_blocks);
    const Expr block = g.is_blocked ? axes[1] : te::floordiv(axes.back(), Expr(g.lanes));
    const Expr lane = g.is_blocked ? axes.back() : te::floormod(axes.back(), Expr(g.lanes));
    const Expr value = te::read(results, {te::floordiv(row, half) * Expr(2) + te::floordiv(block, side),
                                          axes[0], te::floormod(block, side), te::floormod(row, half), lane});
    const Expr shown = g.columns == 2 * g.out_blocks * g.lanes
                           ? value
                           : te::select(column_of(axes) < Expr(g.columns), value, constant_like(value, 0));
    return has_bias ? shown + te::read(context.inputs[2], {column_of(axes)}) : shown;
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "product_strassen";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  // Sums of blocks before the products and after them cost some bits more than a direct sum.
  def.tolerance = 2e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.compute = &compute;
  def.doc =
      "x times a matrix by Strassen's algorithm, plus bias [K] where given: x [N,C/b,rows...,b], or, with "
      "block, [N,rows...,C]; u [K/2/w,7,C/2,w], the factors that strassen_weights makes of the matrix; "
      "attributes half (int, required: rows of an item's first half, half of them at least), block (int, 0: "
      "columns of a plain x side by side), first (int, 0: column of a plain x from which on it is "
      "multiplied), columns (int, K: of a blocked result those from this one on are 0, but for the bias); "
      "gives [N,K/b,rows...,b] or [N,rows...,K]";
  return {def};
}

}  // namespace tensormill::ops::product_strassen_ops
