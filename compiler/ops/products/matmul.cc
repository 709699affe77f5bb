/// matmul: matrix product with numpy's batching.
#include "compiler/ops/gemm.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::matmul_ops {

std::vector<ir::OpDef> family();

namespace {

/// How operands of any rank stand as stacks of matrices: a vector is a row on the left, a column on the
/// right.
template <typename Dims>
struct Product {
  using Int = typename Dims::value_type;
  bool a_vector, b_vector, transpose_a, transpose_b;
  Int rows, columns, depth, b_depth;
  Dims a_batch, b_batch, batch;
};

template <typename Dims>
Product<Dims> read_product(const ir::Attrs& attrs, const Dims& a, const Dims& b) {
  using Int = typename Dims::value_type;
  Product<Dims> p;
  p.a_vector = a.size() == 1;
  p.b_vector = b.size() == 1;
  p.transpose_a = attr_bool(attrs, "transpose_a", false) && !p.a_vector;
  p.transpose_b = attr_bool(attrs, "transpose_b", false) && !p.b_vector;
  const Int a_outer = p.a_vector ? Int(1) : a[a.size() - 2];
  const Int b_outer = p.b_vector ? b.back() : b[b.size() - 2];
  const Int b_inner = p.b_vector ? Int(1) : b.back();
  p.rows = p.transpose_a ? a.back() : a_outer;
  p.depth = p.transpose_a ? a_outer : a.back();
  p.b_depth = p.transpose_b ? b_inner : b_outer;
  p.columns = p.transpose_b ? b_outer : b_inner;
  if (!p.a_vector) p.a_batch.assign(a.begin(), a.end() - 2);
  if (!p.b_vector) p.b_batch.assign(b.begin(), b.end() - 2);
  p.batch = broadcast_checked(p.a_batch, p.b_batch);
  return p;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& a = input_of(context, 0, kFloats | kWideInts);
  const ir::ValueType& b = input_like_first(context, 1);
  for (const ir::ValueType* operand : {&a, &b}) {
    if (operand->shape.empty()) fail("an operand has rank 0, expected at least 1");
  }
  const Product<ir::SymShape> p = read_product(context.attrs, a.shape, b.shape);
  if (!demand(ir::Relation::kEqual, p.depth, p.b_depth)) {
    fail("shapes " + to_string(a.shape) + " and " + to_string(b.shape) +
         " do not multiply: " + to_string(p.depth) + " columns and " + to_string(p.b_depth) + " rows");
  }
  ir::SymShape out = p.batch;
  if (!p.a_vector) out.push_back(p.rows);
  if (!p.b_vector) out.push_back(p.columns);
  return {made_type(a.dtype, out)};
}

/// Strides of one matrix of a stack.
struct MatrixView {
  int64_t row_stride, column_stride;
};

/// The product of integers, which wraps.
void multiply_ints(const Product<Shape>& p, MatrixView a, MatrixView b, const int64_t* as, const int64_t* bs,
                   int64_t* out) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < p.depth; ++k) {
        sum = int_add(sum, int_mul(as[i * a.row_stride + k * a.column_stride],
                                   bs[k * b.row_stride + j * b.column_stride]));
      }
      out[i * p.columns + j] = sum;
    }
  }
}

void multiply_doubles(const Product<Shape>& p, MatrixView a, MatrixView b, const double* as, const double* bs,
                      double* out) {
  GemmOperands gemm;
  gemm.rows = p.rows;
  gemm.columns = p.columns;
  gemm.depth = p.depth;
  gemm.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* block) {
    for (int64_t k = 0; k < count; ++k) block[k] = as[row * a.row_stride + (k0 + k) * a.column_stride];
  };
  gemm.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* block) {
    for (int64_t j = 0; j < count; ++j) block[j] = bs[k * b.row_stride + (j0 + j) * b.column_stride];
  };
  if (b.row_stride == 1 && b.column_stride != 1) {
    gemm.fill_column = [&](int64_t column, int64_t k0, int64_t count, double* block) {
      std::copy_n(bs + column * b.column_stride + k0, count, block);
    };
  }
  gemm.take = [&](int64_t row, int64_t j0, int64_t count, const double* sums) {
    std::copy_n(sums, count, out + row * p.columns + j0);
  };
  gemm_double(gemm);
}

/// Calls multiply(a matrix, b matrix, c matrix) for each matrix of the stack.
template <typename T, typename Multiply>
std::vector<T> for_each_matrix(const Product<Shape>& p, const std::vector<T>& as, const std::vector<T>& bs,
                               Multiply&& multiply) {
  const int64_t size = p.rows * p.columns;
  std::vector<T> values(static_cast<size_t>(num_elements(p.batch) * size));
  const std::array<Shape, 2> strides = {broadcast_strides(p.a_batch, p.batch),
                                        broadcast_strides(p.b_batch, p.batch)};
  for_each_strided<2>(p.batch, strides, [&](int64_t matrix, const std::array<int64_t, 2>& from) {
    multiply(as.data() + from[0] * p.rows * p.depth, bs.data() + from[1] * p.depth * p.columns,
             values.data() + matrix * size);
  });
  return values;
}

bool part(ir::PartContext& context) {
  const Shape &a = context.inputs[0]->shape, &b = context.inputs[1]->shape;
  const Product<Shape> p = read_product(context.attrs, a, b);
  ir::Part part = context.wanted;
  if (part.axis < p.batch.size()) {
    const auto take = [&](size_t input, const Shape& batch) {
      const size_t missing = p.batch.size() - batch.size();
      if (part.axis < missing || batch[part.axis - missing] == 1) return;
      context.parts[input] = {part.axis - missing, part.begin, part.end};
    };
    take(0, p.a_batch);
    take(1, p.b_batch);
  } else if (!p.a_vector && part.axis == p.batch.size()) {
    part.axis = a.size() - (p.transpose_a ? 1 : 2);
    context.parts[0] = part;
  } else {
    part.axis = b.size() - (p.transpose_b ? 2 : 1);
    context.parts[1] = part;
  }
  return true;
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& a = *context.inputs[0];
  const Tensor& b = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Product<Shape> p = read_product(context.attrs, a.shape(), b.shape());
  const MatrixView a_view = p.transpose_a ? MatrixView{1, p.rows} : MatrixView{p.depth, 1};
  const MatrixView b_view = p.transpose_b ? MatrixView{1, p.depth} : MatrixView{p.columns, 1};
  if (is_float(a.dtype())) {
    store_doubles(out, for_each_matrix(p, to_doubles(a), to_doubles(b),
                                       [&](const double* as, const double* bs, double* values) {
                                         multiply_doubles(p, a_view, b_view, as, bs, values);
                                       }));
  } else {
    store_ints(out, for_each_matrix(p, to_ints(a), to_ints(b),
                                    [&](const int64_t* as, const int64_t* bs, int64_t* values) {
                                      multiply_ints(p, a_view, b_view, as, bs, values);
                                    }));
  }
}

/// Index into one operand: batch dims under broadcasting, then the two matrix dims in the order of memory.
std::vector<Expr> operand_index(const ir::SymShape& batch, const std::vector<Expr>& axes,
                                const ir::SymShape& out_batch, bool vector, bool transposed, const Expr& row,
                                const Expr& column) {
  if (vector) return {column};
  std::vector<Expr> index;
  for (size_t i = 0; i < batch.size(); ++i) {
    const size_t at = out_batch.size() - batch.size() + i;
    index.push_back(broadcast_index(batch[i], out_batch[at], axes[at]));
  }
  index.push_back(transposed ? column : row);
  index.push_back(transposed ? row : column);
  return index;
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const Product<ir::SymShape> p =
      read_product(context.attrs, context.input_types[0].shape, context.input_types[1].shape);
  const te::Tensor sums = reduce_safe(
      context.name, te::ReduceOp::kSum, out.shape, {p.depth}, compute_dtype(out.dtype),
      [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
        const size_t rank = p.batch.size();
        const Expr row = p.a_vector ? Expr(0) : axes[rank];
        const Expr column = p.b_vector ? Expr(0) : axes.back();
        const std::vector<Expr> a_index =
            operand_index(p.a_batch, axes, p.batch, p.a_vector, p.transpose_a, row, k[0]);
        const std::vector<Expr> b_index =
            p.b_vector ? std::vector<Expr>{k[0]}
                       : operand_index(p.b_batch, axes, p.batch, false, p.transpose_b, k[0], column);
        return widen(te::read(context.inputs[0], a_index)) * widen(te::read(context.inputs[1], b_index));
      });
  return {narrow_stage(context.name + "_out", sums, out.shape, out.dtype)};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "matmul";
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "inputs a, b of rank >= 1: numpy.matmul (a vector is a row on the left, a column on the right; leading "
      "dims broadcast); attributes transpose_a, transpose_b (bool, 0) swap the last two dims of an operand "
      "of rank >= 2; integers wrap";
  return {def};
}

}  // namespace tensormill::ops::matmul_ops
