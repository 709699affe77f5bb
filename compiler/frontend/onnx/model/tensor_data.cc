#include "compiler/frontend/onnx/model/tensor_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "compiler/frontend/onnx/model/external_names.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

/// A sparse tensor becomes a dense one, of so many elements at most.
constexpr int64_t kMaxSparseElements = int64_t{1} << 24;
constexpr int32_t kInt64Type = 7;  // TensorProto.DataType

struct Bytes {
  std::string_view view;
  std::shared_ptr<const MappedFile> owner;
};

int64_t parse_number(const TensorProto& tensor, const std::string& key, int64_t fallback) {
  const auto found = tensor.external_data.find(key);
  if (found == tensor.external_data.end()) return fallback;
  int64_t value = 0;
  const std::string& text = found->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) {
    throw Error(ErrorCode::kInvalidModel, "external data " + key + " is \"" + text + "\"");
  }
  return value;
}

Bytes external_bytes(const TensorProto& tensor, const ModelSource& source) {
  const std::string name = external_name(tensor);
  const auto file = source.external.find(name);
  if (file == source.external.end()) {
    throw Error(ErrorCode::kInvalidModel, "external data file \"" + name + "\" is not there");
  }
  const std::string_view bytes = file->second->text();
  const int64_t offset = parse_number(tensor, "offset", 0);
  const int64_t size = static_cast<int64_t>(bytes.size());
  const int64_t length = parse_number(tensor, "length", size >= offset ? size - offset : 0);
  if (offset > size || length > size - offset) {
    throw Error(ErrorCode::kInvalidModel, "external data at " + std::to_string(offset) + " with " +
                                              std::to_string(length) + " bytes ends outside of \"" + name +
                                              "\" (" + std::to_string(size) + " bytes)");
  }
  return {bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(length)), file->second};
}

std::optional<Bytes> raw_bytes(const TensorProto& tensor, const ModelSource& source) {
  if (tensor.external) return external_bytes(tensor, source);
  if (tensor.raw_data) return Bytes{*tensor.raw_data, source.model};
  return std::nullopt;
}

size_t typed_count(const TensorProto& tensor, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return tensor.float_data.size();
    case DType::kFloat64:
      return tensor.double_data.size();
    case DType::kUInt32:
    case DType::kUInt64:
      return tensor.uint64_data.size();
    default:
      return tensor.int_data.size();
  }
}

void check_count(const TensorProto& tensor, int64_t have, int64_t want) {
  if (have == want) return;
  throw Error(ErrorCode::kInvalidModel, "shape " + to_string(tensor.dims) + " needs " + std::to_string(want) +
                                            " elements, the data has " + std::to_string(have));
}

DType checked_dtype(const TensorProto& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.data_type);
  if (dtype) return *dtype;
  const std::string name = data_type_name(tensor.data_type);
  const bool known = tensor.data_type > 0 && name.find("type ") != 0;
  throw Error(known ? ErrorCode::kOperatorAttributeNotImplemented : ErrorCode::kInvalidModel,
              "element type " + name + (known ? " is not implemented" : " does not exist"));
}

/// Elements that share a byte of the file.
int64_t elements_a_byte(DType dtype) { return 8 / std::min(8, value_bits(dtype)); }
bool is_packed(DType dtype) { return elements_a_byte(dtype) > 1; }

/// Entries of the file for `elements`.
int64_t stored_count(int64_t elements, DType dtype) {
  const int64_t share = elements_a_byte(dtype);
  return elements / share + (elements % share == 0 ? 0 : 1);
}

/// The elements of byte `at`, low bits first.
void unpack(Tensor& tensor, int64_t at, uint8_t byte) {
  uint8_t* target = static_cast<uint8_t*>(tensor.data());
  const int64_t share = elements_a_byte(tensor.dtype());
  const int bits = value_bits(tensor.dtype());
  for (int64_t i = share * at; i < std::min(share * (at + 1), tensor.num_elements()); ++i) {
    target[i] = static_cast<uint8_t>(byte & ((1u << bits) - 1u));
    if (!is_float(tensor.dtype())) tensor.set_element_int(i, target[i]);
    byte = static_cast<uint8_t>(byte >> bits);
  }
}

/// The values among zeros, strings among empty ones.
Tensor read_sparse(const TensorProto& tensor, const ModelSource& source) {
  const auto& [values, indices] = *tensor.sparse;
  const Tensor given = read_tensor(values, source), places = read_tensor(indices, source);
  const bool is_flat = places.shape().size() == 1;
  const Shape extents = is_flat ? Shape{num_elements(tensor.dims)} : tensor.dims;
  Shape shape = tensor.dims;
  size_t bytes = dtype_bytes(given.dtype());
  if (given.dtype() == kString) {
    shape.push_back(given.shape().back());
    bytes = static_cast<size_t>(given.shape().back());
  }
  Tensor result = Tensor::zeros(given.dtype(), std::move(shape));
  for (int64_t i = 0, read = 0; i < given.shape().front(); ++i) {
    int64_t place = 0;
    for (int64_t extent : extents) {
      const int64_t index = places.element_as_int(read++);
      if (index < 0 || index >= extent)
        throw Error(ErrorCode::kInvalidModel, "index " + std::to_string(index) +
                                                  " of a sparse tensor of shape " + to_string(tensor.dims) +
                                                  " is outside");
      place = place * extent + index;
    }
    std::memcpy(static_cast<char*>(result.data()) + static_cast<size_t>(place) * bytes,
                static_cast<const char*>(given.data()) + static_cast<size_t>(i) * bytes, bytes);
  }
  return result;
}

void check_sparse(const TensorProto& tensor, const ModelSource& source) {
  const auto& [values, indices] = *tensor.sparse;
  check_tensor(values, source);
  check_tensor(indices, source);
  const Shape flat{num_elements(values.dims)}, pairs{flat[0], static_cast<int64_t>(tensor.dims.size())};
  if (values.dims != flat || indices.data_type != kInt64Type ||
      (indices.dims != flat && indices.dims != pairs))
    throw Error(ErrorCode::kInvalidModel, "values of shape " + to_string(values.dims) +
                                              " and indices of shape " + to_string(indices.dims) +
                                              " are no sparse tensor of shape " + to_string(tensor.dims));
  if (num_elements(tensor.dims) > kMaxSparseElements)
    throw Error(ErrorCode::kOperatorAttributeNotImplemented, "sparse tensors of more than " +
                                                                 std::to_string(kMaxSparseElements) +
                                                                 " elements are not implemented");
  read_sparse(tensor, source);
}

void check_content(const TensorProto& tensor, const ModelSource& source) {
  for (int64_t extent : tensor.dims) {
    if (extent < 0)
      throw Error(ErrorCode::kInvalidModel, "shape " + to_string(tensor.dims) + " has a negative extent");
  }
  if (tensor.sparse != nullptr) return check_sparse(tensor, source);
  const DType dtype = checked_dtype(tensor);
  if (dtype == kString) {
    if (tensor.raw_data || tensor.external)
      throw Error(ErrorCode::kInvalidModel, "strings stand in no bytes of their own");
    check_count(tensor, static_cast<int64_t>(tensor.string_data.size()), num_elements(tensor.dims));
    text_tensor(tensor.dims, tensor.string_data);
    return;
  }
  const int64_t bytes = stored_count(num_bytes(tensor.dims, dtype), dtype);
  if (const std::optional<Bytes> raw = raw_bytes(tensor, source)) {
    if (static_cast<int64_t>(raw->view.size()) != bytes) {
      throw Error(ErrorCode::kInvalidModel, "shape " + to_string(tensor.dims) + " needs " +
                                                std::to_string(bytes) + " bytes, the data has " +
                                                std::to_string(raw->view.size()));
    }
    return;
  }
  check_count(tensor, static_cast<int64_t>(typed_count(tensor, dtype)),
              stored_count(num_elements(tensor.dims), dtype));
}

Tensor read_typed(const TensorProto& tensor, DType dtype) {
  Tensor result(dtype, tensor.dims);
  for (int64_t i = 0; i < stored_count(result.num_elements(), dtype); ++i) {
    const size_t at = static_cast<size_t>(i);
    switch (dtype) {
      case DType::kFloat32:
        result.values<float>()[at] = tensor.float_data[at];
        break;
      case DType::kFloat64:
        result.values<double>()[at] = tensor.double_data[at];
        break;
      case DType::kUInt32:
      case DType::kUInt64:
        result.set_element_int(i, static_cast<int64_t>(tensor.uint64_data[at]));
        break;
      case DType::kFloat16:
      case DType::kBFloat16: {
        // int32_data holds the 16 bits of each element.
        const auto bits = static_cast<uint16_t>(tensor.int_data[at]);
        std::memcpy(static_cast<char*>(result.data()) + 2 * at, &bits, 2);
        break;
      }
      default:
        if (is_packed(dtype)) {
          unpack(result, i, static_cast<uint8_t>(tensor.int_data[at]));
        } else if (is_narrow(dtype)) {
          static_cast<uint8_t*>(result.data())[at] = static_cast<uint8_t>(tensor.int_data[at]);
        } else {
          result.set_element_int(i, tensor.int_data[at]);
        }
    }
  }
  return result;
}

}  // namespace

void check_tensor(const TensorProto& tensor, const ModelSource& source) {
  try {
    check_content(tensor, source);
  } catch (Error& error) {
    error.add_context("tensor \"" + tensor.name + "\"");
    // Sizes that no tensor can have make the model invalid, whatever the check that found them.
    if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
    throw;
  }
}

namespace {

Tensor copy_of(const TensorProto& tensor, DType dtype, const Bytes& raw) {
  Tensor result(dtype, tensor.dims);
  if (is_packed(dtype)) {
    for (size_t i = 0; i < raw.view.size(); ++i)
      unpack(result, static_cast<int64_t>(i), static_cast<uint8_t>(raw.view[i]));
    return result;
  }
  if (!raw.view.empty()) std::memcpy(result.data(), raw.view.data(), raw.view.size());
  if (dtype == DType::kBool) {
    for (int64_t i = 0; i < result.num_elements(); ++i) result.set_element_int(i, result.element_as_int(i));
  }
  return result;
}

/// Copies of fewer bytes are made by each import: they are rewritten sooner than found.
constexpr size_t kSharedBytes = 4096;

}  // namespace

Tensor read_tensor(const TensorProto& tensor, const ModelSource& source) {
  if (tensor.sparse != nullptr) return read_sparse(tensor, source);
  const DType dtype = checked_dtype(tensor);
  if (dtype == kString) return text_tensor(tensor.dims, tensor.string_data);
  const std::optional<Bytes> raw = raw_bytes(tensor, source);
  if (!raw) return read_typed(tensor, dtype);
  // Elements are read through typed spans, so only aligned data stays where it is. Bools are normalized to 0
  // and 1.
  const bool aligned = reinterpret_cast<uintptr_t>(raw->view.data()) % dtype_bytes(dtype) == 0;
  if (aligned && dtype != DType::kBool && !is_packed(dtype) && !raw->view.empty()) {
    std::shared_ptr<void> owner = std::const_pointer_cast<MappedFile>(raw->owner);
    return Tensor(dtype, tensor.dims, std::move(owner), const_cast<char*>(raw->view.data()));
  }
  const auto copy = [&] { return copy_of(tensor, dtype, *raw); };
  return raw->view.size() < kSharedBytes ? copy()
                                         : source.copies->get(raw->view.data(), dtype, tensor.dims, copy);
}

}  // namespace tensormill::frontend::onnx
