#include "compiler/frontend/tflite/sparse.h"

#include <algorithm>
#include <cstring>

#include "compiler/frontend/tflite/views.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

[[noreturn]] void bad_sparsity(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "sparsity: " + what);
}

std::vector<int32_t> widened(int type, const void* from, WorkBudget& budget) {
  const auto all = [&](const auto& list) {
    budget.spend(list.size());
    return std::vector<int32_t>(list.begin(), list.end());
  };
  switch (type) {
    case tflite_file::SparseIndexVector_Int32Vector:
      return all(span_of<int32_t>(static_cast<const tflite_file::Int32Vector*>(from)->values()));
    case tflite_file::SparseIndexVector_Uint16Vector:
      return all(span_of<uint16_t>(static_cast<const tflite_file::Uint16Vector*>(from)->values()));
    case tflite_file::SparseIndexVector_Uint8Vector:
      return all(span_of<uint8_t>(static_cast<const tflite_file::Uint8Vector*>(from)->values()));
    default:
      bad_sparsity("a dimension has no list of numbers of a known type");
  }
}

SparseDimension read_dimension(const tflite_file::DimensionMetadata& from, WorkBudget& budget) {
  SparseDimension to;
  to.dense_size = from.dense_size();
  const int format = from.format();
  if (format != 0 && format != 1) bad_sparsity("format " + std::to_string(format) + " of a dimension");
  to.is_csr = format == 1;
  if (!to.is_csr) {
    if (to.dense_size < 0) bad_sparsity("a dimension of " + std::to_string(to.dense_size));
    return to;
  }
  if (from.array_segments() == nullptr || from.array_indices() == nullptr)
    bad_sparsity("a sparse dimension without lists");
  to.segments = widened(from.array_segments_type(), from.array_segments(), budget);
  to.indices = widened(from.array_indices_type(), from.array_indices(), budget);
  return to;
}

/// Checks a sparse dimension below `parents` positions, whose entries are below `extent`.
void check_csr(const SparseDimension& dim, uint64_t parents, int64_t extent) {
  if (dim.segments.size() != parents + 1) {
    bad_sparsity(std::to_string(dim.segments.size()) + " segments for " + std::to_string(parents) +
                 " positions");
  }
  if (dim.segments.front() != 0 || !std::is_sorted(dim.segments.begin(), dim.segments.end()) ||
      static_cast<size_t>(dim.segments.back()) != dim.indices.size())
    bad_sparsity("segments do not divide the " + std::to_string(dim.indices.size()) + " indices");
  for (const int32_t index : dim.indices)
    if (index < 0 || index >= extent)
      bad_sparsity("index " + std::to_string(index) + " of " + std::to_string(extent));
}

/// Of each dim of the walk the extent that its indices run over: blocks divide the dims that they refine.
std::vector<int64_t> walk_extents(const Sparsity& sparsity, Ints shape) {
  const size_t rank = shape.size();
  const size_t blocks = sparsity.block_map.size();
  std::vector<int64_t> outer(shape.begin(), shape.end());
  std::vector<int64_t> extents(rank + blocks);
  for (size_t i = 0; i < sparsity.dims.size(); ++i) {
    const auto walked = static_cast<size_t>(sparsity.traversal_order[i]);
    if (walked < rank) continue;
    const SparseDimension& dim = sparsity.dims[i];
    const auto refined = static_cast<size_t>(sparsity.block_map[walked - rank]);
    if (dim.is_csr || dim.dense_size < 1 || outer[refined] % dim.dense_size != 0)
      bad_sparsity("a block of " + std::to_string(dim.dense_size) + " in a dim of " +
                   std::to_string(outer[refined]));
    extents[walked] = dim.dense_size;
    outer[refined] /= dim.dense_size;
  }
  std::copy(outer.begin(), outer.end(), extents.begin());
  return extents;
}

void check_order(const Sparsity& sparsity, Ints shape) {
  const size_t walked = shape.size() + sparsity.block_map.size();
  if (sparsity.traversal_order.size() != walked || sparsity.dims.size() != walked)
    bad_sparsity("a walk over " + std::to_string(sparsity.traversal_order.size()) + " dims, lists of " +
                 std::to_string(sparsity.dims.size()) + ", expected " + std::to_string(walked));
  std::vector<bool> seen(walked);
  for (const int32_t dim : sparsity.traversal_order) {
    if (dim < 0 || static_cast<size_t>(dim) >= walked || seen[static_cast<size_t>(dim)])
      bad_sparsity("the walk is no order of its dims");
    seen[static_cast<size_t>(dim)] = true;
  }
  std::vector<bool> refined(shape.size());
  for (const int32_t dim : sparsity.block_map) {
    if (dim < 0 || static_cast<size_t>(dim) >= shape.size() || refined[static_cast<size_t>(dim)])
      bad_sparsity("a block refines dim " + std::to_string(dim) + ", or one of two does");
    refined[static_cast<size_t>(dim)] = true;
  }
  for (const int32_t extent : shape)
    if (extent < 0) bad_sparsity("a free dim");
}

/// Walks the stored elements in their order and hands each one's place in the dense tensor on.
class StoredWalk {
public:
  StoredWalk(const Sparsity& sparsity, Ints shape) : sparsity_(sparsity), rank_(shape.size()) {
    const size_t walked = sparsity.dims.size();
    std::vector<uint64_t> strides(rank_, 1);
    for (size_t i = rank_; i-- > 1;) strides[i - 1] = strides[i] * static_cast<uint64_t>(shape[i]);
    // A block's dim steps as its tensor dim does; the dim that it refines steps over whole blocks.
    strides_.resize(walked);
    std::vector<uint64_t> block(rank_, 1);
    for (size_t i = 0; i < walked; ++i) {
      const auto dim = static_cast<size_t>(sparsity.traversal_order[i]);
      if (dim >= rank_)
        block[static_cast<size_t>(sparsity.block_map[dim - rank_])] *=
            static_cast<uint64_t>(sparsity.dims[i].dense_size);
    }
    for (size_t i = 0; i < walked; ++i) {
      const auto dim = static_cast<size_t>(sparsity.traversal_order[i]);
      strides_[i] = dim < rank_ ? strides[dim] * block[dim]
                                : strides[static_cast<size_t>(sparsity.block_map[dim - rank_])];
    }
  }

  template <typename Store>
  void run(const Store& store) {
    level(0, 0, 0, store);
  }

private:
  template <typename Store>
  void level(size_t at, uint64_t position, uint64_t place, const Store& store) {
    if (at == sparsity_.dims.size()) {
      store(place);
      return;
    }
    const SparseDimension& dim = sparsity_.dims[at];
    if (!dim.is_csr) {
      const auto extent = static_cast<uint64_t>(dim.dense_size);
      for (uint64_t i = 0; i < extent; ++i)
        level(at + 1, position * extent + i, place + i * strides_[at], store);
      return;
    }
    const auto end = static_cast<uint64_t>(dim.segments[position + 1]);
    for (auto i = static_cast<uint64_t>(dim.segments[position]); i < end; ++i)
      level(at + 1, i, place + static_cast<uint64_t>(dim.indices[i]) * strides_[at], store);
  }

  const Sparsity& sparsity_;
  size_t rank_;
  std::vector<uint64_t> strides_;
};

}  // namespace

Sparsity read_sparsity(const tflite_file::SparsityParameters& from, const Tensor& tensor,
                       WorkBudget& budget) {
  constexpr size_t kMaxDims = 64;
  Sparsity to;
  to.traversal_order = span_of<int32_t>(from.traversal_order());
  to.block_map = span_of<int32_t>(from.block_map());
  const auto* dims = from.dim_metadata();
  if (dims != nullptr && dims->size() > kMaxDims) bad_sparsity(std::to_string(dims->size()) + " dims");
  for (flatbuffers::uoffset_t i = 0; dims != nullptr && i < dims->size(); ++i)
    to.dims.push_back(read_dimension(*dims->Get(i), budget));
  check_order(to, tensor.shape);
  const std::vector<int64_t> extents = walk_extents(to, tensor.shape);
  uint64_t positions = 1;
  for (size_t i = 0; i < to.dims.size(); ++i) {
    const SparseDimension& dim = to.dims[i];
    const int64_t extent = extents[static_cast<size_t>(to.traversal_order[i])];
    if (dim.is_csr) {
      check_csr(dim, positions, extent);
      positions = dim.indices.size();
      continue;
    }
    if (dim.dense_size != extent)
      bad_sparsity("a dim of " + std::to_string(dim.dense_size) + " where the shape has " +
                   std::to_string(extent));
    if (__builtin_mul_overflow(positions, static_cast<uint64_t>(dim.dense_size), &positions))
      bad_sparsity("more elements than there can be");
  }
  return to;
}

std::optional<uint64_t> stored_elements(const Sparsity& sparsity) {
  uint64_t positions = 1;
  for (const SparseDimension& dim : sparsity.dims) {
    if (dim.is_csr) {
      positions = dim.indices.size();
    } else if (__builtin_mul_overflow(positions, static_cast<uint64_t>(dim.dense_size), &positions)) {
      return std::nullopt;
    }
  }
  return positions;
}

std::string densify(const Tensor& tensor, uint64_t max_bytes) {
  TM_CHECK(tensor.sparsity.has_value(), "the tensor is not sparse");
  const auto bytes = static_cast<uint64_t>(type_bits(tensor.type)) / 8;
  if (bytes == 0) bad_sparsity("elements of type " + std::string(type_name(tensor.type)));
  uint64_t total = bytes;
  for (const int32_t extent : tensor.shape) {
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(extent), &total) || total > max_bytes)
      throw Error(ErrorCode::kTooLarge, "the dense form of \"" + std::string(tensor.name) +
                                            "\" has more than " + std::to_string(max_bytes) + " bytes");
  }
  std::string dense(total, '\0');
  // Nothing may be stored of very many positions.
  if (tensor.data.empty()) return dense;
  uint64_t next = 0;
  StoredWalk(*tensor.sparsity, tensor.shape).run([&](uint64_t place) {
    std::memcpy(dense.data() + place * bytes, tensor.data.data() + next, bytes);
    next += bytes;
  });
  return dense;
}

std::string unpack_bits(TensorType type, std::string_view packed, uint64_t count) {
  const int bits = type_bits(type);
  TM_CHECK(bits == 2 || bits == 4, "the type has no packed elements");
  const auto a_byte = static_cast<uint64_t>(8 / bits);
  TM_CHECK(packed.size() >= (count + a_byte - 1) / a_byte, "fewer bytes than elements");
  const bool is_signed = type != TensorType::kUInt4;
  std::string elements(count, '\0');
  for (uint64_t i = 0; i < count; ++i) {
    int value = static_cast<unsigned char>(packed[i / a_byte]) >> (static_cast<int>(i % a_byte) * bits);
    value &= (1 << bits) - 1;
    if (is_signed && value >= 1 << (bits - 1)) value -= 1 << bits;
    elements[i] = static_cast<char>(value);
  }
  return elements;
}

std::vector<std::string_view> read_strings(std::string_view data, uint64_t max_count) {
  const auto number = [&](uint64_t at) {
    int32_t value = 0;
    if (at + sizeof(value) > data.size()) bad_sparsity("strings: the table of offsets passes the end");
    std::memcpy(&value, data.data() + at, sizeof(value));
    if (value < 0) bad_sparsity("strings: offset " + std::to_string(value));
    return static_cast<uint64_t>(value);
  };
  const uint64_t count = number(0);
  if (count > max_count)
    bad_sparsity(std::to_string(count) + " strings, expected " + std::to_string(max_count));
  std::vector<std::string_view> texts;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t begin = number(4 + 4 * i), end = number(8 + 4 * i);
    if (begin > end || end > data.size())
      throw Error(ErrorCode::kInvalidModel, "strings: text " + std::to_string(i) + " lies from " +
                                                std::to_string(begin) + " to " + std::to_string(end) +
                                                " of " + std::to_string(data.size()));
    texts.push_back(data.substr(begin, end - begin));
  }
  return texts;
}

}  // namespace tensormill::frontend::tflite
