#include "compiler/frontend/tflite/loaded_model.h"

#include <cstring>

#include "compiler/build/moves/transposed.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tflite {

namespace {

/// What a sparse constant may grow to.
constexpr uint64_t kMaxDenseBytes = uint64_t{1} << 31;

}  // namespace

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

::tensormill::Tensor LoadedModel::texts(const Tensor& tensor) const {
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  const auto count = static_cast<uint64_t>(num_elements(shape));
  const std::vector<std::string_view> all = read_strings(tensor.data, count);
  if (all.size() != count)
    throw Error(ErrorCode::kInvalidModel, "constant \"" + std::string(tensor.name.substr(0, 200)) +
                                              "\" has " + std::to_string(all.size()) + " strings for shape " +
                                              to_string(shape));
  return text_tensor(shape, all);
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
  const bool is_packed = *dtype == kString || tensor.sparsity.has_value() || type_bits(tensor.type) < 8;
  const bool is_aligned = reinterpret_cast<uintptr_t>(tensor.data.data()) % dtype_bytes(*dtype) == 0;
  if (!is_packed && is_aligned) {
    // Tensors have no const data pointer; what is mapped is only read.
    return {*dtype, shape, std::const_pointer_cast<MappedFile>(file_), const_cast<char*>(tensor.data.data())};
  }
  const Arrangement key{&tensor, {}, shape};
  if (std::optional<::tensormill::Tensor> known = find(key)) return *std::move(known);
  ::tensormill::Tensor made = *dtype == kString ? texts(tensor) : copied(tensor, *dtype);
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_.emplace(key, std::move(made)).first->second;
}

::tensormill::Tensor LoadedModel::arranged(const Tensor& tensor, const Shape& perm,
                                           const Shape& shape) const {
  const ::tensormill::Tensor whole = constant(tensor);
  if (whole.dtype() == kString) throw Error(ErrorCode::kInvalidModel, "strings where numbers belong");
  if (perm.empty()) return whole.reshaped(shape);
  const Arrangement key{&tensor, perm, shape};
  if (std::optional<::tensormill::Tensor> known = find(key)) return *std::move(known);
  ::tensormill::Tensor made = build::transposed(whole, perm).reshaped(shape);
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_.emplace(key, std::move(made)).first->second;
}

}  // namespace tensormill::frontend::tflite
