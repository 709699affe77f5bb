// com.microsoft's weights in blocks of one scale: products by a constant matrix (MatMulNBits, 2, 4 or 8 bits
// a number; MatMulBnb4, places in a table), and rows of a table (GatherBlockQuantized).
#include <array>
#include <cmath>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/converters/quantized/packed.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

struct Blocks {
  int64_t rows = 0;     ///< N
  int64_t columns = 0;  ///< K
  int64_t size = 0;     ///< columns of one scale
  int64_t bits = 4;
  int64_t a_row() const { return (columns + size - 1) / size; }
};

Blocks blocks_of(const NodeContext& context) {
  Blocks blocks;
  blocks.rows = context.required_int("N");
  blocks.columns = context.required_int("K");
  blocks.size = context.required_int("block_size");
  blocks.bits = context.int_attr("bits", 4);
  const bool is_power = blocks.size >= 16 && (blocks.size & (blocks.size - 1)) == 0;
  if (blocks.rows < 1 || blocks.columns < 1 || !is_power || blocks.size > (int64_t{1} << 20) ||
      context.product(blocks.rows, blocks.columns) > kMaxTensorBytes / 8)
    context.invalid("N " + std::to_string(blocks.rows) + ", K " + std::to_string(blocks.columns) +
                    " and block_size " + std::to_string(blocks.size) + " do not fit");
  return blocks;
}

const Tensor& sized(const NodeContext& context, size_t index, const char* what, int64_t elements) {
  const Tensor& tensor = context.known(index, what);
  if (tensor.num_elements() != elements)
    context.invalid(std::string(what) + " has " + std::to_string(tensor.num_elements()) +
                    " elements, expected " + std::to_string(elements));
  return tensor;
}

/// The block of each column: one after the other, or as operand g_idx says.
std::vector<int64_t> column_blocks(const NodeContext& context, const Blocks& blocks) {
  std::vector<int64_t> block_of;
  for (int64_t column = 0; column < blocks.columns; ++column) block_of.push_back(column / blocks.size);
  if (!context.has_input(4)) return block_of;
  const ir::Ints given = context.known_ints(4, "g_idx");
  if (given.size() < block_of.size())
    context.invalid("g_idx has " + std::to_string(given.size()) + " elements for " +
                    std::to_string(blocks.columns) + " columns");
  for (size_t column = 0; column < block_of.size(); ++column) {
    if (given[column] < 0 || given[column] >= blocks.a_row())
      context.invalid("g_idx names block " + std::to_string(given[column]) + " of " +
                      std::to_string(blocks.a_row()));
    block_of[column] = given[column];
  }
  return block_of;
}

/// The numbers themselves, [N,K].
Tensor dequantized_matrix(const NodeContext& context, const Blocks& blocks, DType dtype) {
  const int64_t a_row = blocks.a_row(), bytes_a_block = blocks.size * blocks.bits / 8;
  const Tensor& codes = sized(context, 1, "B", blocks.rows * a_row * bytes_a_block);
  const Tensor& scales = sized(context, 2, "scales", blocks.rows * a_row);
  const int64_t zero_bytes = (a_row * blocks.bits + 7) / 8;
  const bool has_zeros = context.has_input(3);
  const bool packed_zeros = has_zeros && context.type(context.input(3)).dtype == DType::kUInt8;
  const Tensor* zeros =
      has_zeros ? &sized(context, 3, "zero_points", blocks.rows * (packed_zeros ? zero_bytes : a_row))
                : nullptr;
  const std::vector<int64_t> block_of = column_blocks(context, blocks);
  Tensor matrix(dtype, {blocks.rows, blocks.columns});
  for (int64_t row = 0; row < blocks.rows; ++row) {
    for (int64_t column = 0; column < blocks.columns; ++column) {
      const int64_t block = block_of[static_cast<size_t>(column)];
      double zero = static_cast<double>(int64_t{1} << (blocks.bits - 1));
      if (packed_zeros) zero = static_cast<double>(unpacked(*zeros, row * zero_bytes, block, blocks.bits));
      if (has_zeros && !packed_zeros) zero = zeros->element_as_double(row * a_row + block);
      const int64_t start = row * a_row * bytes_a_block;
      const auto code = static_cast<double>(unpacked(codes, start, column, blocks.bits));
      const double scale = scales.element_as_double(row * a_row + block);
      matrix.set_element(row * blocks.columns + column, (code - zero) * scale);
    }
  }
  return matrix;
}

}  // namespace

void convert_matmul_nbits(NodeContext& context) {
  Compose c(context);
  const ir::ValueId a = context.input(0);
  const Blocks blocks = blocks_of(context);
  const ir::ValueId matrix = context.constant(dequantized_matrix(context, blocks, c.dtype(a)));
  const ir::ValueId product = c.matmul(a, matrix, true);
  context.set_output(0, context.has_input(5) ? c.add(product, context.input(5)) : product);
}

namespace {

/// NormalFloat4: quantiles of a normal distribution (Dettmers et al., "QLoRA", 2023, appendix E).
constexpr std::array<double, 16> kNormalFloat = {-1.0,
                                                 -0.6961928009986877,
                                                 -0.5250730514526367,
                                                 -0.39491748809814453,
                                                 -0.28444138169288635,
                                                 -0.18477343022823334,
                                                 -0.09105003625154495,
                                                 0.0,
                                                 0.07958029955625534,
                                                 0.16093020141124725,
                                                 0.24611230194568634,
                                                 0.33791524171829224,
                                                 0.44070982933044434,
                                                 0.5626170039176941,
                                                 0.7229568362236023,
                                                 1.0};
/// A sign and three bits of an exponent and a fraction, as bitsandbytes has them.
constexpr std::array<double, 16> kFloat4 = {
    0.0,  5.208333333e-03,  0.66666667,  1.0,  0.33333333,  0.5,  0.16666667,  0.25,
    -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25};

}  // namespace

// com.microsoft: A times the transpose of B [N,K], two places in a table a byte, the high one first, in
// blocks of one largest absolute value.
void convert_matmul_bnb4(NodeContext& context) {
  Compose c(context);
  const int64_t rows = context.required_int("N"), columns = context.required_int("K");
  const int64_t size = context.required_int("block_size"), kind = context.required_int("quant_type");
  if (kind != 0 && kind != 1) context.invalid("quant_type is " + std::to_string(kind));
  if (rows < 1 || columns < 1 || size < 1 || context.product(rows, columns) > kMaxTensorBytes / 8)
    context.invalid("N " + std::to_string(rows) + ", K " + std::to_string(columns) + " and block_size " +
                    std::to_string(size) + " do not fit");
  const int64_t count = rows * columns;
  const Tensor& codes = sized(context, 1, "B", (count + 1) / 2);
  const Tensor& largest = sized(context, 2, "absmax", (count + size - 1) / size);
  const std::array<double, 16>& table = kind == 1 ? kNormalFloat : kFloat4;
  const V a = context.input(0);
  Tensor matrix(c.dtype(a), {rows, columns});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t byte = codes.element_as_int(i / 2);
    const auto place = static_cast<size_t>(i % 2 == 0 ? (byte >> 4) & 15 : byte & 15);
    matrix.set_element(i, table[place] * largest.element_as_double(i / size));
  }
  context.set_output(0, c.matmul(a, context.constant(std::move(matrix)), true));
}

namespace {

/// The numbers in the bytes of x along its last axis, two in each, low bits first.
V nibbles(Compose& c, V x) {
  ir::SymShape shape = c.shape(x);
  const auto axis = static_cast<int64_t>(shape.size());
  const V low = c.binary("and", x, c.number(x, 15));
  const V high = c.binary("and", c.div(x, c.number(x, 16)), c.number(x, 15));
  shape.back() *= 2;
  return c.reshape(c.concat({c.unsqueeze(low, axis), c.unsqueeze(high, axis)}, axis), shape);
}

}  // namespace

// com.microsoft: slices of quantized data, whose axis quantize_axis has a scale, and perhaps a zero point,
// for each block. Four-bit numbers may be packed two a byte along the last axis.
void convert_gather_block_quantized(NodeContext& context) {
  Compose c(context);
  V data = context.input(0), scales = context.input(2), zeros = context.optional_input(3);
  const bool is_bytes = c.dtype(data) == DType::kUInt8;
  const int64_t bits = is_bytes ? context.int_attr("bits", 4) : 4, rank = context.rank(data);
  const int64_t size = context.int_attr("block_size", 128);
  const int64_t axis = context.normalize_axis(context.int_attr("quantize_axis", 1), rank);
  const int64_t taken = context.normalize_axis(context.int_attr("gather_axis", 0), rank);
  if (size < 1 || axis == taken || context.rank(scales) != rank ||
      (is_bytes && bits == 4 && axis != rank - 1))
    context.invalid("quantize_axis " + std::to_string(axis) + ", gather_axis " + std::to_string(taken) +
                    " and block_size " + std::to_string(size) + " do not fit");
  const auto slices = [&](V x) {
    return c.gather(is_bytes ? x : c.cast(x, DType::kInt8), context.input(1), taken);
  };
  const int64_t added = context.rank(context.input(1)) - 1, along = axis + (axis > taken ? added : 0);
  V codes = slices(data);
  if (is_bytes && bits == 4) codes = nibbles(c, codes);
  const ir::SymInt extent = c.shape(codes)[static_cast<size_t>(along)];
  ir::Ints block_of = c.count_to(extent);
  for (int64_t& block : block_of) block /= size;
  const auto of_blocks = [&](V x) { return c.gather(x, c.ints(block_of, {extent}), along); };
  const V scale = of_blocks(c.gather(scales, context.input(1), taken));
  const DType dtype = c.dtype(scale);
  const V number = c.cast(codes, dtype);
  V zero = c.number(number, is_bytes ? static_cast<double>(int64_t{1} << (bits - 1)) : 0);
  if (zeros != ir::kAbsent) {
    zero = slices(zeros);
    if (is_bytes && bits == 4) {
      zero = nibbles(c, zero);
      // An odd number of blocks leaves half a byte.
      zero = c.slice(zero, along, 0, c.shape(scales)[static_cast<size_t>(axis)]);
    }
    zero = c.cast(of_blocks(zero), dtype);
  }
  context.set_output(0, c.mul(c.sub(number, zero), scale));
}

}  // namespace tensormill::frontend::onnx
