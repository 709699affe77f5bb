// Operators on the bits of elements.
#include <algorithm>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

DType unsigned_of(size_t bytes) {
  if (bytes == 1) return DType::kUInt8;
  if (bytes == 2) return DType::kUInt16;
  return bytes == 4 ? DType::kUInt32 : DType::kUInt64;
}

V as_bits(NodeContext& node, V x, DType to) {
  return node.type(x).dtype == to ? x : node.add("bit_cast", {x}, {{"to", to}});
}

V shifted(NodeContext& node, V x, V by, const char* direction) {
  return node.add("bit_shift", {x, by}, {{"direction", std::string(direction)}});
}

void check_integers(const NodeContext& node, V x) {
  if (!is_integer(node.type(x).dtype))
    node.invalid("elements of type " + std::string(dtype_long_name(node.type(x).dtype)));
}

}  // namespace

// The sign moves in from the left; a shift is at least 0 and less than the width.
void convert_right_shift(NodeContext& node) {
  Compose c(node);
  const V x = node.stored(0);
  check_integers(node, x);
  check_integers(node, node.stored(1));
  const DType dtype = c.dtype(x), bits = unsigned_of(dtype_bytes(dtype));
  const auto most = static_cast<double>(dtype_bytes(dtype) * 8 - 1);
  const V by = c.cast(c.clip(c.cast(node.stored(1), DType::kInt64), 0, most), bits);
  if (dtype == bits) return node.set_stored(0, shifted(node, x, by, "right"));
  const V is_negative = c.binary("less", x, c.number(x, 0));
  const V upright = as_bits(node, c.where(is_negative, c.unary("not", x), x), bits);
  const V moved = as_bits(node, shifted(node, upright, by, "right"), dtype);
  node.set_stored(0, c.where(is_negative, c.unary("not", moved), moved));
}

// By the width or more nothing is left.
void convert_stablehlo_shift_left(NodeContext& node) {
  Compose c(node);
  const V x = node.stored(0), by = node.stored(1);
  check_integers(node, x);
  check_integers(node, by);
  const DType dtype = c.dtype(x), bits = unsigned_of(dtype_bytes(dtype));
  if (c.dtype(by) != dtype) node.invalid("operands of different types");
  node.set_stored(
      0, as_bits(node, shifted(node, as_bits(node, x, bits), as_bits(node, by, bits), "left"), dtype));
}

// Of a wider type a last axis has the parts, the low ones first; of a narrower one it has been that.
void convert_bitcast(NodeContext& node) {
  Compose c(node);
  const V x = node.stored(0);
  const DType from = c.dtype(x), to = node.output_dtype(0);
  const size_t wide = dtype_bytes(from), narrow = dtype_bytes(to);
  if ((from == DType::kBool) != (to == DType::kBool)) node.invalid("bools have no bits of other types");
  if (wide == narrow) return node.set_stored(0, as_bits(node, x, to));
  const DType from_bits = unsigned_of(wide), to_bits = unsigned_of(narrow);
  const V bits = as_bits(node, x, from_bits);
  const int64_t last = node.rank(x);
  if (wide > narrow) {
    std::vector<V> parts;
    for (size_t i = 0; i < wide / narrow; ++i) {
      const V part = shifted(node, bits, c.number(bits, static_cast<double>(8 * narrow * i)), "right");
      parts.push_back(c.unsqueeze(c.cast(part, to_bits), last));
    }
    return node.set_stored(0, as_bits(node, c.concat(parts, last), to));
  }
  const auto count = static_cast<int64_t>(narrow / wide);
  if (last == 0 || !same(c.shape(x).back(), count))
    node.invalid("a last axis of " + to_string(c.shape(x)) + ", expected " + std::to_string(count));
  V whole = ir::kAbsent;
  for (int64_t i = 0; i < count; ++i) {
    const V part = c.cast(c.squeeze(c.slice(bits, last - 1, i, 1), last - 1), to_bits);
    const V moved =
        shifted(node, part, c.number(part, static_cast<double>(8 * static_cast<int64_t>(wide) * i)), "left");
    whole = whole == ir::kAbsent ? moved : c.binary("or", whole, moved);
  }
  node.set_stored(0, as_bits(node, whole, to));
}

}  // namespace tensormill::frontend::tflite
