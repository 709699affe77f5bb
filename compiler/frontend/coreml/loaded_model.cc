#include "compiler/frontend/coreml/loaded_model.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::coreml {

namespace {

/// Elements of less than a byte, the first in the lowest bits of the first byte, as a byte each.
void unpack(std::string_view packed, DataType type, Tensor& to) {
  const int bits = type_bits(type);
  const bool is_signed = type == DataType::kInt4;
  auto* out = static_cast<uint8_t*>(to.data());
  for (int64_t i = 0; i < to.num_elements(); ++i) {
    const auto at = static_cast<uint64_t>(i) * static_cast<uint64_t>(bits);
    auto word = static_cast<unsigned>(static_cast<uint8_t>(packed[at / 8]));
    if (at / 8 + 1 < packed.size())
      word |= static_cast<unsigned>(static_cast<uint8_t>(packed[at / 8 + 1])) << 8;
    unsigned value = (word >> (at % 8)) & ((1U << bits) - 1);
    if (is_signed && (value & (1U << (bits - 1))) != 0) value |= 0xffU << bits;
    out[i] = static_cast<uint8_t>(value);
  }
}

[[noreturn]] void wrong_count(const Shape& shape, size_t given, const char* what) {
  throw Error(ErrorCode::kInvalidModel,
              "a constant of shape " + to_string(shape) + " has " + std::to_string(given) + " " + what);
}

}  // namespace

Shape fixed_shape_of(const TensorType& type) {
  Shape shape;
  for (const int64_t dim : type.dims) shape.push_back(dim);
  const bool is_fixed = type.has_rank && std::find(shape.begin(), shape.end(), -1) == shape.end();
  if (!is_fixed) throw Error(ErrorCode::kInvalidModel, "a constant has no shape");
  return shape;
}

LoadedModel::LoadedModel(std::shared_ptr<const void> owner, Model model, ModelFiles weights)
    : owner_(std::move(owner)), model_(std::move(model)), weights_(std::move(weights)) {}

std::string_view LoadedModel::file_of(const BlobRef& blob) const {
  const std::string name = weight_file(blob);
  const std::optional<std::string_view> file = weights_(name);
  if (!file) throw Error(ErrorCode::kInvalidModel, "the model has no file \"" + name.substr(0, 200) + "\"");
  return *file;
}

Tensor LoadedModel::mapped(const Value& value, DType dtype, const Shape& shape) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(&value);
  if (known != made_.end()) return known->second;
  const DataType type = value.type.tensor.dtype;
  const auto& ref = std::get<BlobRef>(value.data);
  Blob blob;
  try {
    blob = read_blob(file_of(ref), ref.offset);
  } catch (Error& error) {
    error.add_context("file \"" + std::string(ref.file.substr(0, 200)) + "\"");
    throw;
  }
  if (blob.dtype != type)
    throw Error(ErrorCode::kInvalidModel, "a constant of " + std::string(type_name(type)) +
                                              " lies in its file as " + std::string(type_name(blob.dtype)));
  const uint64_t expected = packed_bytes(type, static_cast<uint64_t>(num_elements(shape)));
  if (blob.bytes.size() != expected) wrong_count(shape, blob.bytes.size(), "bytes");
  const bool is_aligned = reinterpret_cast<uintptr_t>(blob.bytes.data()) % dtype_bytes(dtype) == 0;
  // Tensors have no const data pointer; what is mapped is only read.
  if (type_bits(type) >= 8 && is_aligned && expected > 0)
    return {dtype, shape, std::const_pointer_cast<void>(owner_), const_cast<char*>(blob.bytes.data())};
  Tensor made(dtype, shape);
  if (type_bits(type) < 8) {
    unpack(blob.bytes, type, made);
  } else if (expected > 0) {
    std::memcpy(made.data(), blob.bytes.data(), expected);
  }
  return made_.emplace(&value, std::move(made)).first->second;
}

Tensor LoadedModel::listed(const Elements& elements, DType dtype, const Shape& shape) const {
  const auto count = static_cast<size_t>(num_elements(shape));
  if (dtype == kString) {
    if (elements.strings.size() != count) wrong_count(shape, elements.strings.size(), "strings");
    return text_tensor(shape, elements.strings);
  }
  const size_t given = std::max({elements.floats.size(), elements.doubles.size(), elements.ints.size()});
  if (given != count) wrong_count(shape, given, "elements");
  Tensor made(dtype, shape);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    if (!elements.floats.empty()) {
      made.set_element(at, static_cast<double>(elements.floats[i]));
    } else if (!elements.doubles.empty()) {
      made.set_element(at, elements.doubles[i]);
    } else {
      made.set_element_int(at, elements.ints[i]);
    }
  }
  return made;
}

Tensor LoadedModel::constant(const Value& value) const {
  const DataType type = value.type.tensor.dtype;
  const std::optional<DType> dtype = dtype_of(type);
  if (value.type.kind != ValueKind::kTensor)
    throw Error(ErrorCode::kInvalidModel, "a list where a tensor belongs");
  if (!dtype)
    throw Error(ErrorCode::kNotSupported,
                "a constant has elements of type " + (type_name(type).empty()
                                                          ? std::to_string(static_cast<int32_t>(type))
                                                          : std::string(type_name(type))));
  const Shape shape = fixed_shape_of(value.type.tensor);
  if (std::holds_alternative<BlobRef>(value.data)) {
    if (*dtype == kString) throw Error(ErrorCode::kInvalidModel, "strings in a file of weights");
    return mapped(value, *dtype, shape);
  }
  const auto* elements = std::get_if<Elements>(&value.data);
  if (elements == nullptr) throw Error(ErrorCode::kInvalidModel, "a constant has no elements");
  if (!elements->bytes || *dtype == kString) return listed(*elements, *dtype, shape);
  if (elements->bytes->size() != packed_bytes(type, static_cast<uint64_t>(num_elements(shape))))
    wrong_count(shape, elements->bytes->size(), "bytes");
  Tensor made(*dtype, shape);
  if (type_bits(type) < 8) {
    unpack(*elements->bytes, type, made);
  } else if (!elements->bytes->empty()) {
    std::memcpy(made.data(), elements->bytes->data(), elements->bytes->size());
  }
  return made;
}

}  // namespace tensormill::frontend::coreml
