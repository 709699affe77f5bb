// Operators that take elements by their places, and shape arithmetic.
#include <algorithm>
#include <cmath>

#include "compiler/frontend/tflite/converters/moved.h"

namespace tensormill::frontend::tflite {

// With batch_dims the first axes of both go together: they become one, of which the indices say the part too.
void convert_gather(NodeContext& node) {
  const auto options = node.options<GatherOptions>();
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    V indices = node.stored(1);
    const int64_t axis = node.normalize_axis(options.axis, node.rank(x));
    const int64_t batch =
        options.batch_dims < 0 ? options.batch_dims + node.rank(indices) : options.batch_dims;
    if (batch == 0) return c.gather(x, indices, axis);
    if (batch != axis)
      node.unsupported("batch_dims", "an axis behind others than the batch is not implemented");
    if (batch < 0 || batch > node.rank(indices))
      node.invalid("batch_dims is " + std::to_string(options.batch_dims));
    const ir::SymShape shape = node.shape(x), places = node.shape(indices);
    const auto split = static_cast<std::ptrdiff_t>(batch);
    const ir::SymInt groups = num_elements(ir::SymShape(shape.begin(), shape.begin() + split));
    const ir::SymInt extent = shape[static_cast<size_t>(batch)];
    ir::SymShape merged(shape.begin() + split + 1, shape.end());
    merged.insert(merged.begin(), groups * extent);
    const ir::SymInt each = num_elements(ir::SymShape(places.begin() + split, places.end()));
    const V flat = c.reshape(c.cast(indices, DType::kInt64), {groups, each});
    const V moved = c.add(flat, c.mul(c.iota(groups, {groups, 1}), c.dims({extent}, {1})));
    ir::SymShape result(places);
    result.insert(result.end(), shape.begin() + split + 1, shape.end());
    return c.reshape(c.gather(c.reshape(x, merged), c.reshape(moved, {groups * each}), 0), result);
  });
}

// The last axis of the indices says a place along each of the first axes of x.
void convert_gather_nd(NodeContext& node) {
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    const V indices = node.stored(1);
    const ir::SymShape shape = node.shape(x), places = node.shape(indices);
    if (places.empty() || !places.back().is_constant())
      node.unsupported("indices", "their depth is a free dim");
    const int64_t depth = places.back().hint(), rank = node.rank(x);
    if (depth < 0 || depth > rank)
      node.invalid("indices of depth " + std::to_string(depth) + " for rank " + std::to_string(rank));
    V place = ir::kAbsent;
    const int64_t last = static_cast<int64_t>(places.size()) - 1;
    for (int64_t d = 0; d < depth; ++d) {
      const V part = c.cast(c.squeeze(c.slice(indices, last, d, 1), last), DType::kInt64);
      place = place == ir::kAbsent ? part
                                   : c.add(c.mul(place, c.dims({shape[static_cast<size_t>(d)]}, {})), part);
    }
    if (place == ir::kAbsent) node.unsupported("indices", "indices of no axis are not implemented");
    ir::SymShape merged(shape.begin() + depth, shape.end());
    merged.insert(merged.begin(), num_elements(ir::SymShape(shape.begin(), shape.begin() + depth)));
    return c.gather(c.reshape(x, merged), place, 0);
  });
}

// The row ids come first.
void convert_embedding_lookup(NodeContext& node) {
  set_moved(node, 1, [&](V table) { return Compose(node).gather(table, node.stored(0), 0); });
}

void convert_tile(NodeContext& node) {
  const ir::SymShape repeats = node.known_ints(1, "multiples");
  set_moved(node, 0, [&](V x) { return node.add("tile", {x}, {{"repeats", repeats}}); });
}

void convert_broadcast_to(NodeContext& node) {
  const ir::SymShape shape = node.known_ints(1, "shape");
  set_moved(node, 0, [&](V x) { return Compose(node).expand(x, shape); });
}

namespace {

/// The block of an operator between space and depth, which maps of rank 4 have.
int64_t checked_block(const NodeContext& node, V x, int32_t block) {
  if (node.rank(x) != 4) node.invalid("the input has rank " + std::to_string(node.rank(x)) + ", expected 4");
  if (block < 1) node.invalid("a block of " + std::to_string(block));
  return block;
}

ir::SymInt divided(NodeContext& node, const ir::SymInt& extent, const ir::SymInt& by) {
  if (!ir::demand_divisible(extent, by))
    node.invalid("an axis of " + to_string(extent) + " for blocks of " + to_string(by));
  return floordiv(extent, by);
}

}  // namespace

void convert_space_to_depth(NodeContext& node) {
  const int32_t given = node.options<SpaceToDepthOptions>().block_size;
  set_moved(node, 0, [&](V x) {
    const int64_t block = checked_block(node, x, given);
    Compose c(node);
    const ir::SymShape s = node.shape(x);
    const ir::SymInt h = divided(node, s[1], block), w = divided(node, s[2], block);
    const V parts = c.transpose(c.reshape(x, {s[0], h, block, w, block, s[3]}), {0, 1, 3, 2, 4, 5});
    return c.reshape(parts, {s[0], h, w, s[3] * (block * block)});
  });
}

void convert_depth_to_space(NodeContext& node) {
  const int32_t given = node.options<DepthToSpaceOptions>().block_size;
  set_moved(node, 0, [&](V x) {
    const int64_t block = checked_block(node, x, given);
    Compose c(node);
    const ir::SymShape s = node.shape(x);
    const ir::SymInt depth = divided(node, s[3], block * block);
    const V parts = c.transpose(c.reshape(x, {s[0], s[1], s[2], block, block, depth}), {0, 1, 3, 2, 4, 5});
    return c.reshape(parts, {s[0], s[1] * block, s[2] * block, depth});
  });
}

namespace {

/// Operand 1: a block an axis behind the batch.
std::vector<int64_t> blocks_of(NodeContext& node, V x) {
  const std::vector<int64_t> blocks = node.known_ints(1, "block_shape");
  if (blocks.empty() || static_cast<int64_t>(blocks.size()) + 1 > node.rank(x))
    node.invalid(std::to_string(blocks.size()) + " blocks for rank " + std::to_string(node.rank(x)));
  for (const int64_t block : blocks) {
    if (block < 1) node.invalid("a block of " + std::to_string(block));
  }
  if (node.known_ints(2, "paddings").size() != 2 * blocks.size())
    node.invalid("paddings or crops of another length than the blocks");
  return blocks;
}

}  // namespace

void convert_space_to_batch(NodeContext& node) {
  const ir::SymShape given = node.known_ints(2, "paddings");
  const Quantization& quantization = node.input_tensor(0).quantization;
  const bool has_zero =
      node.has_output_scale(0) && is_quantized(node.input_tensor(0)) && !quantization.zero_point.empty();
  const double zero = has_zero ? static_cast<double>(quantization.zero_point.front()) : 0;
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    const std::vector<int64_t> blocks = blocks_of(node, x);
    const size_t rank = node.shape(x).size(), m = blocks.size();
    ir::SymShape pads(2 * rank, 0);
    for (size_t i = 0; i < m; ++i) {
      pads[i + 1] = given[2 * i];
      pads[i + 1 + rank] = given[2 * i + 1];
    }
    x = node.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", zero}});
    const ir::SymShape s = node.shape(x);
    ir::SymShape parts{s[0]}, whole;
    std::vector<int64_t> perm;
    int64_t product = 1;
    for (size_t i = 0; i < m; ++i) {
      parts.insert(parts.end(), {divided(node, s[i + 1], blocks[i]), blocks[i]});
      perm.push_back(static_cast<int64_t>(2 * i + 2));
      product *= blocks[i];
    }
    perm.push_back(0);
    whole.push_back(s[0] * product);
    for (size_t i = 0; i < m; ++i) {
      perm.push_back(static_cast<int64_t>(2 * i + 1));
      whole.push_back(parts[2 * i + 1]);
    }
    for (size_t d = m + 1; d < rank; ++d) {
      perm.push_back(static_cast<int64_t>(parts.size()));
      parts.push_back(s[d]);
      whole.push_back(s[d]);
    }
    return c.reshape(c.transpose(c.reshape(x, parts), perm), whole);
  });
}

void convert_batch_to_space(NodeContext& node) {
  const ir::SymShape crops = node.known_ints(2, "crops");
  set_moved(node, 0, [&](V x) {
    Compose c(node);
    const std::vector<int64_t> blocks = blocks_of(node, x);
    const ir::SymShape s = node.shape(x);
    const size_t rank = s.size(), m = blocks.size();
    int64_t product = 1;
    for (const int64_t block : blocks) product *= block;
    ir::SymShape parts, whole{divided(node, s[0], product)};
    std::vector<int64_t> perm{static_cast<int64_t>(m)};
    for (const int64_t block : blocks) parts.emplace_back(block);
    parts.push_back(whole[0]);
    for (size_t i = 0; i < m; ++i) {
      parts.push_back(s[i + 1]);
      perm.insert(perm.end(), {static_cast<int64_t>(m + 1 + i), static_cast<int64_t>(i)});
      whole.push_back(s[i + 1] * blocks[i]);
    }
    for (size_t d = m + 1; d < rank; ++d) {
      perm.push_back(static_cast<int64_t>(parts.size()));
      parts.push_back(s[d]);
      whole.push_back(s[d]);
    }
    x = c.reshape(c.transpose(c.reshape(x, parts), perm), whole);
    for (size_t i = 0; i < m; ++i) {
      const ir::SymInt left = whole[i + 1] - crops[2 * i] - crops[2 * i + 1];
      if (!ir::demand(ir::Relation::kLessEqual, 0, left) ||
          !ir::demand(ir::Relation::kLessEqual, 0, crops[2 * i]))
        node.invalid("crops of " + to_string(crops[2 * i]) + " and " + to_string(crops[2 * i + 1]) +
                     " for an axis of " + to_string(whole[i + 1]));
      x = c.slice(x, static_cast<int64_t>(i) + 1, crops[2 * i], left);
    }
    return x;
  });
}

void convert_shape(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.cast(node.extents(node.shape(node.stored(0))), node.output_dtype(0)));
}

void convert_rank(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.cast(c.ints({node.rank(node.stored(0))}, {}), node.output_dtype(0)));
}

void convert_fill(NodeContext& node) {
  Compose c(node);
  node.set_stored(0, c.expand(node.stored(1), node.known_ints(0, "dims")));
}

void convert_zeros_like(NodeContext& node) {
  const V x = node.stored(0);
  node.set_stored(0, Compose(node).filled(node.type(x).dtype, node.shape(x), 0));
}

// Of known numbers.
void convert_range(NodeContext& node) {
  Compose c(node);
  const auto number = [&](size_t index, const char* what) -> double {
    if (!node.is_known(index)) node.unsupported(what, "it is worked out by a run");
    const ::tensormill::Tensor* tensor = node.graph().value(node.stored(index)).tensor();
    if (tensor == nullptr || tensor->num_elements() != 1) node.invalid(std::string(what) + " is no number");
    return tensor->element_as_double(0);
  };
  const double start = number(0, "start"), limit = number(1, "limit"), delta = number(2, "delta");
  if (delta == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta))
    node.invalid("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
                 std::to_string(delta));
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (count > static_cast<double>(build::kMaxListed)) node.unsupported("limit", "the range is too long");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * delta);
  node.set_stored(0, c.doubles(node.output_dtype(0), values, {static_cast<int64_t>(values.size())}));
}

// Operands: indices, depth, on, off.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const V indices = node.stored(0), on = node.stored(2), off = node.stored(3);
  const int64_t depth = node.known_int(1, "depth");
  int64_t axis = node.options<OneHotOptions>().axis;
  axis = axis == -1 ? node.rank(indices) : node.normalize_axis(axis, node.rank(indices) + 1);
  const V values = c.concat({c.reshape(off, {1}), c.reshape(on, {1})}, 0);
  // A negative index is no place here, as it is none in the file's own runtime.
  const V inside = node.add("where", {c.binary("less", indices, c.number(indices, 0)),
                                      c.number(indices, static_cast<double>(depth)), indices});
  node.set_stored(0, node.add("one_hot", {inside, values}, {{"axis", axis}, {"depth", depth}}));
}

}  // namespace tensormill::frontend::tflite
