// com.microsoft MatMulNBits: products by a constant matrix of 2, 4 or 8 bits a number, in blocks of one
// scale.
#include <cmath>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

/// Number `index` of a row of bytes that holds 8 / bits of them a byte, low bits first.
int64_t unpacked(const Tensor& bytes, int64_t row_start, int64_t index, int64_t bits) {
  const int64_t a_byte = 8 / bits;
  const int64_t byte = bytes.element_as_int(row_start + index / a_byte);
  return (byte >> (index % a_byte * bits)) & ((int64_t{1} << bits) - 1);
}

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
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    context.unsupported("bits", std::to_string(blocks.bits) + " bits are not implemented");
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
  Tensor matrix(dtype, {blocks.rows, blocks.columns});
  for (int64_t row = 0; row < blocks.rows; ++row) {
    for (int64_t column = 0; column < blocks.columns; ++column) {
      const int64_t block = column / blocks.size;
      double zero = static_cast<double>(int64_t{1} << (blocks.bits - 1));
      if (packed_zeros) zero = static_cast<double>(unpacked(*zeros, row * zero_bytes, block, blocks.bits));
      if (has_zeros && !packed_zeros) zero = zeros->element_as_double(row * a_row + block);
      const int64_t start = (row * a_row + block) * bytes_a_block;
      const auto code = static_cast<double>(unpacked(codes, start, column % blocks.size, blocks.bits));
      const double scale = scales.element_as_double(row * a_row + block);
      matrix.set_element(row * blocks.columns + column, (code - zero) * scale);
    }
  }
  return matrix;
}

}  // namespace

void convert_matmul_nbits(NodeContext& context) {
  Compose c(context);
  if (context.has_input(4)) context.unsupported("g_idx", "an order of the columns is not implemented");
  const ir::ValueId a = context.input(0);
  const Blocks blocks = blocks_of(context);
  const ir::ValueId matrix = context.constant(dequantized_matrix(context, blocks, c.dtype(a)));
  const ir::ValueId product = c.matmul(a, matrix, true);
  context.set_output(0, context.has_input(5) ? c.add(product, context.input(5)) : product);
}

}  // namespace tensormill::frontend::onnx
