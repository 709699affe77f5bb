/// matmul_packed: product with a constant matrix that is stored in blocks of columns, as the kernel reads it.
#include "compiler/ops/gemm.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/ops/windows/blocked.h"
#include "compiler/ops/words.h"

namespace tensormill::ops::matmul_packed_ops {

std::vector<ir::OpDef> family();

namespace {

/// Columns [first, first + depth) of x [..., width] as rows x depth, w as blocks x depth x block.
struct PackedProduct {
  ir::SymShape leading;
  ir::SymInt rows;
  int64_t width, first, depth, columns, blocks, block;
};

PackedProduct read_product(const ir::Attrs& attrs, const ir::SymShape& x, const ir::SymShape& w) {
  PackedProduct p;
  p.leading = ir::SymShape(x.begin(), x.end() - 1);
  p.rows = num_elements(p.leading);
  p.width = x.back();
  p.first = attr_int(attrs, "first", 0);
  p.depth = w[1];
  p.columns = attr_int(attrs, "columns");
  p.blocks = w[0];
  p.block = w[2];
  return p;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloatsOrWords);
  static_cast<void>(read_words(context.attrs, x.dtype));
  const ir::ValueType& w = input_like_first(context, 1);
  if (x.shape.empty()) fail("input 0 has rank 0, expected at least 1");
  if (w.shape.size() != 3)
    fail("input 1 has rank " + std::to_string(w.shape.size()) + ", expected 3: blocks, rows, lanes");
  const int64_t first = attr_int(context.attrs, "first", 0), end = x.shape.back() - w.shape[1];
  if (context.attrs.has("first") ? first < 0 || first > end : end != 0) {
    fail("shapes " + to_string(x.shape) + " and " + to_string(w.shape) +
         " do not multiply: " + std::to_string(x.shape.back()) + " columns from " + std::to_string(first) +
         " on and " + std::to_string(w.shape[1]) + " rows");
  }
  const int64_t columns = attr_int(context.attrs, "columns");
  const int64_t block = w.shape[2];
  if (columns < 0 || block < 1 || columns / block + (columns % block != 0 ? 1 : 0) != w.shape[0]) {
    fail("attribute columns is " + std::to_string(columns) + ", which does not fill " +
         std::to_string(w.shape[0]) + " blocks of " + std::to_string(block));
  }
  if (has_input(context, 2)) {
    const ir::ValueType& bias = input_like_first(context, 2);
    if (bias.shape != ir::SymShape{columns})
      fail("bias has shape " + to_string(bias.shape) + ", expected [" + std::to_string(columns) + "]");
  }
  ir::SymShape out = x.shape;
  out.back() = columns;
  return {made_type(x.dtype, out)};
}

/// The words' bytes along x's last dimension and the depth.
void reference_of_words(const ir::ReferenceContext& context, void (*evaluate)(const ir::ReferenceContext&)) {
  const Tensor &x = *context.inputs[0], &w = *context.inputs[1];
  ir::Attrs attrs = context.attrs;
  if (attrs.has("first")) attrs.set("first", kBytesPerWord * attr_int(attrs, "first"));
  Shape wide = x.shape();
  wide.back() *= kBytesPerWord;
  const Shape& packed = w.shape();
  const Tensor rows =
      permuted(bytes_of_words(w, true), {0, 1, 3, 2}, {packed[0], packed[1] * kBytesPerWord, packed[2]});
  evaluate_as_integers({attrs, context.inputs, context.outputs}, bytes_of_words(x, false).reshaped(wide),
                       rows, evaluate);
}

void reference(const ir::ReferenceContext& context) {
  if (attr_bool(context.attrs, "words", false)) return reference_of_words(context, &reference);
  const Tensor& x = *context.inputs[0];
  const Tensor& w = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const PackedProduct p = read_product(context.attrs, x.shape(), w.shape());
  const std::vector<double> xs = to_doubles(x), ws = to_doubles(w);
  const bool has_bias = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const std::vector<double> bias = has_bias ? to_doubles(*context.inputs[2]) : std::vector<double>();
  std::vector<double> values(static_cast<size_t>(p.rows * p.columns));
  GemmOperands gemm;
  gemm.rows = p.rows;
  gemm.columns = p.columns;
  gemm.depth = p.depth;
  gemm.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* block) {
    std::copy_n(xs.data() + row * p.width + p.first + k0, count, block);
  };
  gemm.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* block) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t column = j0 + j;
      block[j] = ws[static_cast<size_t>((column / p.block * p.depth + k) * p.block + column % p.block)];
    }
  };
  gemm.take = [&](int64_t row, int64_t j0, int64_t count, const double* sums) {
    for (int64_t j = 0; j < count; ++j) {
      values[static_cast<size_t>(row * p.columns + j0 + j)] =
          sums[j] + (has_bias ? bias[static_cast<size_t>(j0 + j)] : 0.0);
    }
  };
  gemm_double(gemm);
  store_doubles(out, values);
}

/// The index into dimensions `shape` of the row-major position `position`.
std::vector<Expr> unflatten(Expr position, const ir::SymShape& shape) {
  std::vector<Expr> index(shape.size(), Expr(0));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (same(shape[d], 1)) continue;
    // What is divided by is a number; the first axis may be free.
    const int64_t behind =
        num_elements(ir::SymShape(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, shape.end()));
    index[d] = behind == 1 ? position : te::floordiv(position, Expr(behind));
    if (behind > 1) position = te::floormod(position, Expr(behind));
  }
  return index;
}

bool part(ir::PartContext& context) {
  return context.wanted.axis + 1 < context.output.shape.size() && part_of_first(context);
}

/// Of rows of any extents: the blocks of columns first, each of which is read for all rows.
te::Tensor block_sums(const ir::ComputeContext& context, const PackedProduct& p, bool words) {
  ir::SymShape shape = p.leading;
  shape.insert(shape.begin(), p.blocks);
  shape.push_back(p.block);
  return reduce_safe(context.name + "_sums", te::ReduceOp::kSum, shape, {p.depth},
                     compute_dtype(context.output_types[0].dtype),
                     [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
                       std::vector<Expr> at(axes.begin() + 1, axes.end() - 1);
                       at.push_back(p.first == 0 ? k[0] : k[0] + Expr(p.first));
                       return product_of(words, te::read(context.inputs[0], at),
                                         te::read(context.inputs[1], {axes[0], k[0], axes.back()}));
                     });
}

/// Sums of whole blocks, pad lanes included, so that a schedule keeps whole vectors in registers; then the
/// columns, with the bias.
TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const PackedProduct p =
      read_product(context.attrs, context.input_types[0].shape, context.input_types[1].shape);
  const bool has_bias = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const auto finished = [&](const Expr& sum, const Expr& column) {
    return narrow(has_bias ? sum + widen(te::read(context.inputs[2], {column})) : sum, out.dtype);
  };
  const bool words = attr_bool(context.attrs, "words", false);
  if (!p.leading.is_constant()) {
    const te::Tensor sums = block_sums(context, p, words);
    return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
      std::vector<Expr> at(axes.begin(), axes.end() - 1);
      at.insert(at.begin(), te::floordiv(axes.back(), Expr(p.block)));
      at.push_back(te::floormod(axes.back(), Expr(p.block)));
      return finished(te::read(sums, at), axes.back());
    })};
  }
  const ir::SymShape blocked = {p.rows, p.blocks, p.block};
  const te::Tensor sums =
      reduce_safe(context.name + "_sums", te::ReduceOp::kSum, blocked, {p.depth}, compute_dtype(out.dtype),
                  [&](const std::vector<Expr>& axes, const std::vector<Expr>& k) {
                    std::vector<Expr> at = unflatten(axes[0], p.leading);
                    at.push_back(p.first == 0 ? k[0] : k[0] + Expr(p.first));
                    return product_of(words, te::read(context.inputs[0], at),
                                      te::read(context.inputs[1], {axes[1], k[0], axes[2]}));
                  });
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    const std::vector<Expr> row(axes.begin(), axes.end() - 1);
    const Expr& column = axes.back();
    const Expr block(p.block);
    const Expr sum = te::read(
        sums, {flatten_index(row, p.leading), te::floordiv(column, block), te::floormod(column, block)});
    return finished(sum, column);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "matmul_packed";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  def.tolerance = 1e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "x [..., K] times a matrix of K rows, plus bias [columns] where given: column j of the matrix is lane "
      "j mod b of block j / b of w [ceil(columns/b), K, b], lanes past the last column are 0; attributes "
      "columns (int, required), first (int: the product is of K columns of x from there on; without it of "
      "all), words (bool, 0: x, w, bias and the result are int32; x and w are words of four bytes along K, "
      "unsigned in x, signed in w)";
  return {def};
}

}  // namespace tensormill::ops::matmul_packed_ops
