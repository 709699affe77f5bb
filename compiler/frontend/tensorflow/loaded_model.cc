#include "compiler/frontend/tensorflow/loaded_model.h"

#include <cstring>

#include "compiler/build/moves/transposed.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// What constants of repeated elements may take together: a few bytes of a file can say any shape.
constexpr uint64_t kMostRepeatedBytes = uint64_t{1} << 28;

Shape shape_of(const std::vector<int64_t>& dims) {
  Shape shape;
  for (const int64_t dim : dims) {
    if (dim < 0) throw Error(ErrorCode::kInvalidModel, "a constant has an extent of " + std::to_string(dim));
    shape.push_back(dim);
  }
  return shape;
}

DType checked_type(DataType type) {
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype)
    throw Error(ErrorCode::kNotSupported,
                "a constant has elements of type " + (type_name(type).empty()
                                                          ? std::to_string(static_cast<int32_t>(type))
                                                          : std::string(type_name(type))));
  return *dtype;
}

size_t listed_elements(const TensorValue& value) {
  if (!value.floats.empty()) return value.floats.size();
  return value.doubles.empty() ? value.ints.size() : value.doubles.size();
}

}  // namespace

std::optional<DType> dtype_of_parts(DataType type) {
  if (type == DataType::kComplex64) return DType::kFloat32;
  return type == DataType::kComplex128 ? std::optional(DType::kFloat64) : std::nullopt;
}

LoadedModel::LoadedModel(std::shared_ptr<const void> owner, SavedModel model)
    : owner_(std::move(owner)), model_(std::move(model)) {}

Tensor LoadedModel::mapped(DataType type, const std::vector<int64_t>& dims, std::string_view bytes) const {
  const DType dtype = checked_type(type);
  const Shape shape = shape_of(dims);
  if (dtype == kString)
    return text_tensor(shape, variable_texts(bytes, static_cast<uint64_t>(num_elements(shape))));
  if (static_cast<uint64_t>(num_bytes(shape, dtype)) != bytes.size())
    throw Error(ErrorCode::kInvalidModel, "a constant of shape " + to_string(shape) + " has " +
                                              std::to_string(bytes.size()) + " bytes, expected " +
                                              std::to_string(num_bytes(shape, dtype)));
  if (bytes.empty()) return {dtype, shape};
  // Tensors have no const data pointer; what is mapped is only read.
  if (reinterpret_cast<uintptr_t>(bytes.data()) % dtype_bytes(dtype) == 0)
    return {dtype, shape, std::const_pointer_cast<void>(owner_), const_cast<char*>(bytes.data())};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(bytes.data());
  if (known != made_.end()) return known->second.reshaped(shape);
  Tensor made(dtype, shape);
  std::memcpy(made.data(), bytes.data(), bytes.size());
  return made_.emplace(bytes.data(), std::move(made)).first->second;
}

/// A list that is shorter than the tensor repeats its last element; of an empty one all are 0.
Tensor LoadedModel::listed(const TensorValue& value) const {
  const DType dtype = checked_type(value.dtype);
  const Shape shape = shape_of(value.shape.dims);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(&value);
  if (known != made_.end()) return known->second;
  const size_t given = listed_elements(value);
  const size_t bytes = num_bytes(shape, dtype);
  if (given * dtype_bytes(dtype) < bytes) {
    if (bytes > kMostRepeatedBytes - repeated_bytes_)
      throw Error(ErrorCode::kTooLarge, "constants of repeated elements take more than " +
                                            std::to_string(kMostRepeatedBytes) + " bytes");
    repeated_bytes_ += bytes;
  }
  Tensor made = Tensor::zeros(dtype, shape);
  if (given > static_cast<size_t>(made.num_elements()))
    throw Error(ErrorCode::kInvalidModel,
                "a constant of shape " + to_string(shape) + " has " + std::to_string(given) + " elements");
  const bool is_bits = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  for (int64_t i = 0; i < made.num_elements() && given > 0; ++i) {
    const size_t at = std::min(static_cast<size_t>(i), given - 1);
    if (!value.floats.empty()) {
      made.set_element(i, static_cast<double>(value.floats[at]));
    } else if (!value.doubles.empty()) {
      made.set_element(i, value.doubles[at]);
    } else if (is_bits) {
      const auto bits = static_cast<uint16_t>(value.ints[at]);
      std::memcpy(static_cast<uint16_t*>(made.data()) + i, &bits, sizeof(bits));
    } else {
      made.set_element_int(i, value.ints[at]);
    }
  }
  return made_.emplace(&value, std::move(made)).first->second;
}

Tensor LoadedModel::texts(const TensorValue& value) const {
  const Shape shape = shape_of(value.shape.dims);
  const auto count = static_cast<uint64_t>(num_elements(shape));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(&value);
  if (known != made_.end()) return known->second;
  if (value.strings.size() > count)
    throw Error(ErrorCode::kInvalidModel, "a constant of shape " + to_string(shape) + " has " +
                                              std::to_string(value.strings.size()) + " elements");
  if (count > value.strings.size()) {
    const uint64_t bytes = sizeof(std::string_view) * count;
    if (bytes > kMostRepeatedBytes - repeated_bytes_)
      throw Error(ErrorCode::kTooLarge, "constants of repeated elements take more than " +
                                            std::to_string(kMostRepeatedBytes) + " bytes");
    repeated_bytes_ += bytes;
  }
  std::vector<std::string_view> all = value.strings;
  all.resize(count, all.empty() ? std::string_view() : all.back());
  return made_.emplace(&value, text_tensor(shape, all)).first->second;
}

Tensor LoadedModel::constant(const TensorValue& value) const {
  if (!value.shape.has_rank) throw Error(ErrorCode::kInvalidModel, "a constant has no shape");
  if (value.dtype == DataType::kString) return texts(value);
  return value.content.empty() ? listed(value) : mapped(value.dtype, value.shape.dims, value.content);
}

std::pair<Tensor, Tensor> LoadedModel::complex_constant(const TensorValue& value) const {
  const std::optional<DType> dtype = dtype_of_parts(value.dtype);
  if (!dtype || !value.shape.has_rank)
    throw Error(ErrorCode::kInvalidModel, "a constant has no shape, or is not complex");
  const Shape shape = shape_of(value.shape.dims);
  const size_t width = dtype_bytes(*dtype), all = num_bytes(shape, *dtype);
  const size_t given = value.content.empty() ? listed_elements(value) * width : value.content.size();
  if (given > 2 * all || given % (2 * width) != 0 || (!value.content.empty() && given != 2 * all))
    throw Error(ErrorCode::kInvalidModel, "a constant of shape " + to_string(shape) + " has " +
                                              std::to_string(given / width) + " parts of elements");
  if (given < 2 * all) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (all > (kMostRepeatedBytes - repeated_bytes_) / 2)
      throw Error(ErrorCode::kTooLarge, "constants of repeated elements take more than " +
                                            std::to_string(kMostRepeatedBytes) + " bytes");
    repeated_bytes_ += 2 * all;
  }
  std::pair<Tensor, Tensor> parts{Tensor::zeros(*dtype, shape), Tensor::zeros(*dtype, shape)};
  const auto part_at = [&](size_t at) {
    if (value.content.empty()) return value.floats.empty() ? value.doubles[at] : double{value.floats[at]};
    float single = 0;
    double wide = 0;
    const bool is_single = width == sizeof(single);
    std::memcpy(is_single ? static_cast<void*>(&single) : &wide, value.content.data() + at * width, width);
    return is_single ? double{single} : wide;
  };
  const size_t last = given / width / 2;
  for (int64_t i = 0; last > 0 && i < parts.first.num_elements(); ++i) {
    const size_t at = 2 * std::min(static_cast<size_t>(i), last - 1);
    parts.first.set_element(i, part_at(at));
    parts.second.set_element(i, part_at(at + 1));
  }
  return parts;
}

Tensor LoadedModel::variable(const std::string& key) const {
  const auto found = model_.variables.find(key);
  if (found == model_.variables.end())
    throw Error(ErrorCode::kInvalidModel, "variable \"" + key.substr(0, 200) + "\" is not in the checkpoint");
  return mapped(found->second.dtype, found->second.shape, found->second.data);
}

Tensor LoadedModel::arranged(const Tensor& tensor, const Shape& perm, const Shape& shape) const {
  const Arrangement key{tensor.data(), {perm, shape}};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = arrangements_.find(key);
    if (known != arrangements_.end()) return known->second;
  }
  Tensor made = build::transposed(tensor, perm).reshaped(shape);
  const std::lock_guard<std::mutex> lock(mutex_);
  return arrangements_.emplace(key, std::move(made)).first->second;
}

}  // namespace tensormill::frontend::tensorflow
