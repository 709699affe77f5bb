// Weights that a file has in fewer bits: what they stand for is worked out while the graph is built.
#include <bit>

#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

Tensor packed_operand(NodeContext& node, const char* name) {
  std::optional<Tensor> elements = node.constant_of(name);
  if (!elements) node.unsupported(name, "it is worked out by a run");
  return *std::move(elements);
}

/// Of each element what `at` says for its number.
template <typename At>
Tensor made_tensor(DType dtype, const Shape& shape, const At& at) {
  Tensor made(dtype, shape);
  if (dtype == DType::kFloat32) {
    int64_t i = 0;
    for (float& each : made.values<float>()) each = static_cast<float>(at(i++));
  } else {
    for (int64_t i = 0; i < made.num_elements(); ++i) made.set_element(i, static_cast<double>(at(i)));
  }
  return made;
}

/// Which of the equal blocks of a tensor, so many along each axis, an element is in.
class Blocks {
public:
  Blocks(const NodeContext& node, const Shape& shape, const Shape& counts) {
    if (counts.size() != shape.size())
      node.invalid("numbers of shape " + to_string(counts) + " for elements of shape " + to_string(shape));
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (counts[axis] < 1 || shape[axis] % counts[axis] != 0)
        node.invalid("numbers of shape " + to_string(counts) + " for elements of shape " + to_string(shape));
      axes_.push_back({shape[axis], shape[axis] / counts[axis], counts[axis]});
    }
  }

  int64_t of(int64_t element) const {
    int64_t block = 0, stride = 1;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      const Axis& own = axes_[axis];
      block += element % own.extent / own.each * stride;
      element /= own.extent;
      stride *= own.count;
    }
    return block;
  }

private:
  struct Axis {
    int64_t extent, each, count;
  };
  std::vector<Axis> axes_;
};

/// (x - zero) * scale for numbers of blocks; the zeros may be none.
class BlockScale {
public:
  BlockScale(NodeContext& node, const Shape& shape)
      : scale_(packed_operand(node, "scale")), blocks_(node, shape, scale_.shape()) {
    if (!node.has("offset")) return;
    zero_ = packed_operand(node, "offset");
    if (zero_->shape() != scale_.shape())
      node.invalid("offsets of shape " + to_string(zero_->shape()) + " for scales of shape " +
                   to_string(scale_.shape()));
  }
  DType dtype() const { return scale_.dtype(); }
  double of(double x, int64_t element) const {
    const int64_t block = blocks_.of(element);
    return (zero_ ? x - zero_->element_as_double(block) : x) * scale_.element_as_double(block);
  }

private:
  Tensor scale_;
  Blocks blocks_;
  std::optional<Tensor> zero_;
};

Shape given_shape(NodeContext& node) {
  Shape shape;
  for (const int64_t extent : node.ints("shape")) {
    if (extent < 0) node.invalid("an extent of " + std::to_string(extent));
    shape.push_back(extent);
  }
  return shape;
}

/// Numbers of so many bits without gaps, the least significant first.
Tensor unpacked(NodeContext& node, const char* name, int bits, const Shape& shape) {
  const Tensor bytes = packed_operand(node, name);
  Tensor made(DType::kUInt8, shape);
  const int64_t expected = (made.num_elements() * bits + 7) / 8;
  if (bytes.dtype() != DType::kUInt8 || bytes.num_elements() != expected)
    node.invalid("operand " + std::string(name) + " has " + std::to_string(bytes.num_elements()) +
                 " bytes, expected " + std::to_string(expected));
  const auto packed = bytes.values<uint8_t>();
  size_t bit = 0;
  for (uint8_t& each : made.values<uint8_t>()) {
    unsigned value = 0;
    for (int i = 0; i < bits; ++i, ++bit) value |= ((packed[bit / 8] >> (bit % 8)) & 1U) << i;
    each = static_cast<uint8_t>(value);
  }
  return made;
}

/// Where the elements of a tensor come from whose entries along an axis stand for `size` of them each.
struct Vectors {
  int64_t size = 1, inner = 1;
  Shape shape;  ///< of the result

  Vectors(const Shape& of, int64_t given, int64_t axis) : size(given), shape(of) {
    if (size == 1) return;
    shape[static_cast<size_t>(axis)] *= size;
    for (size_t d = static_cast<size_t>(axis) + 1; d < of.size(); ++d) inner *= of[d];
  }
  int64_t place(int64_t element) const { return element / inner % size; }
  int64_t entry(int64_t element) const { return element / (inner * size) * inner + element % inner; }
};

/// A table for each block of the indices: [blocks..., entries, size].
struct Tables {
  Tensor numbers;
  int64_t entries, size;
  Shape counts;

  Tables(const NodeContext& node, Tensor given) : numbers(std::move(given)) {
    const Shape& shape = numbers.shape();
    if (shape.size() < 2) node.invalid("a table of shape " + to_string(shape));
    entries = shape[shape.size() - 2];
    size = shape.back();
    counts.assign(shape.begin(), shape.end() - 2);
    if (size < 1) node.invalid("a table of shape " + to_string(shape));
  }
};

int64_t vector_axis_of(NodeContext& node, const Tables& tables, const Shape& shape) {
  if (!node.has("vector_axis")) {
    if (tables.size != 1) node.invalid("operand vector_axis is missing");
    return 0;
  }
  return node.axis("vector_axis", static_cast<int64_t>(shape.size()));
}

Tensor looked_up(const NodeContext& node, const Tensor& indices, const Tables& tables, int64_t axis) {
  const Blocks blocks(node, indices.shape(), tables.counts);
  const Vectors vectors(indices.shape(), tables.size, axis);
  for (int64_t i = 0; i < indices.num_elements(); ++i)
    if (indices.element_as_int(i) < 0 || indices.element_as_int(i) >= tables.entries)
      node.invalid("index " + std::to_string(indices.element_as_int(i)) + " of a table of " +
                   std::to_string(tables.entries));
  return made_tensor(tables.numbers.dtype(), vectors.shape, [&](int64_t i) {
    const int64_t entry = vectors.entry(i), table = blocks.of(entry);
    const int64_t row = table * tables.entries + indices.element_as_int(entry);
    return tables.numbers.element_as_double(row * tables.size + vectors.place(i));
  });
}

void check_mask(const NodeContext& node, const Tensor& mask, const Tensor& numbers) {
  int64_t set = 0;
  for (int64_t i = 0; i < mask.num_elements(); ++i) set += mask.element_as_int(i) != 0 ? 1 : 0;
  if (set != numbers.num_elements())
    node.invalid(std::to_string(numbers.num_elements()) + " elements for a mask of " + std::to_string(set));
}

/// The numbers where the mask is set, 0 elsewhere.
Tensor spread(const NodeContext& node, const Tensor& mask, const Tensor& numbers) {
  check_mask(node, mask, numbers);
  int64_t next = 0;
  return made_tensor(numbers.dtype(), mask.shape(), [&](int64_t i) {
    return mask.element_as_int(i) == 0 ? 0 : numbers.element_as_double(next++);
  });
}

void set_constants(NodeContext& node, const std::vector<Tensor>& tensors) {
  std::vector<V> values;
  for (const Tensor& each : tensors) values.push_back(node.constant(each));
  node.set_outputs(values);
}

}  // namespace

// One scale and zero point, or one for each place along the axis.
void convert_constexpr_affine_dequantize(NodeContext& node) {
  const Tensor data = packed_operand(node, "quantized_data"), scale = packed_operand(node, "scale"),
               zero = packed_operand(node, "zero_point");
  const auto rank = static_cast<int64_t>(data.shape().size());
  const auto axis = static_cast<size_t>(node.axis("axis", rank));
  const auto along = [&](const Tensor& numbers) {
    Shape counts(static_cast<size_t>(rank), 1);
    counts[axis] = numbers.num_elements();
    if (counts[axis] != 1 && counts[axis] != data.shape()[axis])
      node.invalid(std::to_string(counts[axis]) + " numbers for an axis of " +
                   std::to_string(data.shape()[axis]));
    return Blocks(node, data.shape(), counts);
  };
  const Blocks scales = along(scale), zeros = along(zero);
  set_constants(node, {made_tensor(scale.dtype(), data.shape(), [&](int64_t i) {
                  const double apart = data.element_as_double(i) - zero.element_as_double(zeros.of(i));
                  return apart * scale.element_as_double(scales.of(i));
                })});
}

void convert_constexpr_blockwise_shift_scale(NodeContext& node) {
  const Tensor data = packed_operand(node, "data");
  const BlockScale scale(node, data.shape());
  set_constants(node, {made_tensor(scale.dtype(), data.shape(),
                                   [&](int64_t i) { return scale.of(data.element_as_double(i), i); })});
}

void convert_constexpr_cast(NodeContext& node) {
  const Tensor source = packed_operand(node, "source_val");
  node.skip("output_dtype");  // the output says it
  set_constants(node, {made_tensor(node.output_dtype(), source.shape(),
                                   [&](int64_t i) { return source.element_as_double(i); })});
}

// Since iOS 18 the indices have a shape, and blocks of them tables of their own.
void convert_constexpr_lut_to_dense(NodeContext& node) {
  const Tensor table = packed_operand(node, "lut");
  if (node.has("shape")) {
    const Shape shape = given_shape(node);
    const auto entries = static_cast<uint64_t>(table.num_elements());
    if (entries < 2 || entries > 256 || !std::has_single_bit(entries))
      node.invalid("a table of " + std::to_string(entries) + " entries");
    Shape whole(shape.size(), 1);
    whole.insert(whole.end(), {table.num_elements(), 1});
    const Tensor indices = unpacked(node, "indices", std::countr_zero(entries), shape);
    return set_constants(node, {looked_up(node, indices, Tables(node, table.reshaped(whole)), 0)});
  }
  const Tensor indices = packed_operand(node, "indices");
  const Tables tables(node, table);
  set_constants(node, {looked_up(node, indices, tables, vector_axis_of(node, tables, indices.shape()))});
}

void convert_constexpr_sparse_to_dense(NodeContext& node) {
  const Tensor mask =
      node.has("shape") ? unpacked(node, "mask", 1, given_shape(node)) : packed_operand(node, "mask");
  set_constants(node, {spread(node, mask, packed_operand(node, "nonzero_data"))});
}

// Outputs: the mask, each entry of which stands for a vector, and the numbers that it marks.
void convert_constexpr_lut_to_sparse(NodeContext& node) {
  const Tensor mask = packed_operand(node, "indices_mask");
  const Tensor indices = spread(node, mask, packed_operand(node, "indices_nonzero_data"));
  const Tables tables(node, packed_operand(node, "lut"));
  const int64_t axis = vector_axis_of(node, tables, mask.shape());
  const Tensor all = looked_up(node, indices, tables, axis);
  const Vectors vectors(mask.shape(), tables.size, axis);
  const Tensor marks = made_tensor(mask.dtype(), vectors.shape,
                                   [&](int64_t i) { return mask.element_as_double(vectors.entry(i)); });
  std::vector<double> numbers;
  for (int64_t i = 0; i < all.num_elements(); ++i)
    if (marks.element_as_int(i) != 0) numbers.push_back(all.element_as_double(i));
  const auto count = static_cast<int64_t>(numbers.size());
  set_constants(node, {marks, made_tensor(all.dtype(), {count},
                                          [&](int64_t i) { return numbers[static_cast<size_t>(i)]; })});
}

void convert_constexpr_sparse_blockwise_shift_scale(NodeContext& node) {
  const Tensor mask = packed_operand(node, "data_mask"), data = packed_operand(node, "nonzero_data");
  check_mask(node, mask, data);
  const BlockScale scale(node, mask.shape());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < mask.num_elements(); ++i)
    if (mask.element_as_int(i) != 0) places.push_back(i);
  set_constants(node, {mask, made_tensor(scale.dtype(), data.shape(), [&](int64_t i) {
                         return scale.of(data.element_as_double(i), places[static_cast<size_t>(i)]);
                       })});
}

}  // namespace tensormill::frontend::coreml
