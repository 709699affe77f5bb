#include "compiler/frontend/tflite/loaded_model.h"

#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

/// What a sparse constant may grow to.
constexpr uint64_t kMaxDenseBytes = uint64_t{1} << 31;

template <size_t kBytes>
void move_elements(const std::byte* from, std::byte* to, const Shape& extents, const Shape& strides) {
  Shape at(extents.size(), 0);
  int64_t place = 0;
  const int64_t count = num_elements(extents);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * kBytes, from + static_cast<size_t>(place) * kBytes, kBytes);
    for (size_t d = extents.size(); d-- > 0;) {
      place += strides[d];
      if (++at[d] < extents[d]) break;
      place -= strides[d] * extents[d];
      at[d] = 0;
    }
  }
}

::tensormill::Tensor transposed(const ::tensormill::Tensor& x, const Shape& perm) {
  const Shape& shape = x.shape();
  Shape own(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) own[d - 1] = own[d] * shape[d];
  Shape extents, strides;
  for (const int64_t axis : perm) {
    extents.push_back(shape[static_cast<size_t>(axis)]);
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  ::tensormill::Tensor result(x.dtype(), extents);
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* to = static_cast<std::byte*>(result.data());
  switch (dtype_bytes(x.dtype())) {
    case 1:
      move_elements<1>(from, to, extents, strides);
      break;
    case 2:
      move_elements<2>(from, to, extents, strides);
      break;
    case 4:
      move_elements<4>(from, to, extents, strides);
      break;
    default:
      TM_CHECK(dtype_bytes(x.dtype()) == 8, "an element of another size");
      move_elements<8>(from, to, extents, strides);
  }
  return result;
}

}  // namespace

std::optional<DType> dtype_of(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return DType::kFloat32;
    case TensorType::kFloat16:
      return DType::kFloat16;
    case TensorType::kInt32:
      return DType::kInt32;
    case TensorType::kUInt8:
    case TensorType::kUInt4:
      return DType::kUInt8;
    case TensorType::kInt64:
      return DType::kInt64;
    case TensorType::kBool:
      return DType::kBool;
    case TensorType::kInt16:
      return DType::kInt16;
    case TensorType::kInt8:
    case TensorType::kInt4:
    case TensorType::kInt2:
      return DType::kInt8;
    case TensorType::kFloat64:
      return DType::kFloat64;
    case TensorType::kUInt64:
      return DType::kUInt64;
    case TensorType::kUInt32:
      return DType::kUInt32;
    case TensorType::kUInt16:
      return DType::kUInt16;
    case TensorType::kBFloat16:
      return DType::kBFloat16;
    default:
      return std::nullopt;
  }
}

LoadedModel::LoadedModel(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)), model_(read_model(file_->text())) {}

std::optional<::tensormill::Tensor> LoadedModel::find(const Arrangement& wanted) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = made_.find(wanted);
  return found == made_.end() ? std::nullopt : std::optional(found->second);
}

::tensormill::Tensor LoadedModel::copied(const Tensor& tensor, DType dtype) const {
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  ::tensormill::Tensor result(dtype, shape);
  std::string made;
  std::string_view bytes = tensor.data;
  if (tensor.sparsity) {
    bytes = made = densify(tensor, kMaxDenseBytes);
  } else if (type_bits(tensor.type) < 8) {
    bytes = made = unpack_bits(tensor.type, tensor.data, static_cast<uint64_t>(result.num_elements()));
  }
  TM_CHECK(bytes.size() == result.num_bytes(), "a constant of another size");
  if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

::tensormill::Tensor LoadedModel::constant(const Tensor& tensor) const {
  const std::optional<DType> dtype = dtype_of(tensor.type);
  if (!dtype)
    throw Error(ErrorCode::kNotSupported, "constant \"" + std::string(tensor.name.substr(0, 200)) +
                                              "\" has elements of type " +
                                              std::string(type_name(tensor.type)));
  if (tensor.external_buffer != 0)
    throw Error(ErrorCode::kNotSupported, "constant \"" + std::string(tensor.name.substr(0, 200)) +
                                              "\" lies in a file beside the model");
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  const bool is_packed = tensor.sparsity.has_value() || type_bits(tensor.type) < 8;
  const bool is_aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % dtype_bytes(*dtype) == 0;
  if (!is_packed && is_aligned) {
    // Tensors have no const data pointer; what is mapped is only read.
    return {*dtype, shape, std::const_pointer_cast<MappedFile>(file_), const_cast<char*>(tensor.data.data())};
  }
  const Arrangement key{&tensor, {}, shape};
  if (std::optional<::tensormill::Tensor> known = find(key)) return *std::move(known);
  ::tensormill::Tensor made = copied(tensor, *dtype);
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_.emplace(key, std::move(made)).first->second;
}

::tensormill::Tensor LoadedModel::arranged(const Tensor& tensor, const Shape& perm,
                                           const Shape& shape) const {
  const ::tensormill::Tensor whole = constant(tensor);
  if (perm.empty()) return whole.reshaped(shape);
  const Arrangement key{&tensor, perm, shape};
  if (std::optional<::tensormill::Tensor> known = find(key)) return *std::move(known);
  ::tensormill::Tensor made = transposed(whole, perm).reshaped(shape);
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_.emplace(key, std::move(made)).first->second;
}

}  // namespace tensormill::frontend::tflite
