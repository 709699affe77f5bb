#include "compiler/frontend/pytorch/loaded_program.h"

#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Weights that are turned or read several times may be larger than what the file holds of them: as much of
/// one as a tensor may have.
constexpr uint64_t kMaxConstantBytes = uint64_t{1} << 34;

}  // namespace

bool lies_in_rows(const StoredTensor& tensor) {
  int64_t stride = 1;
  for (size_t i = tensor.sizes.size(); i-- > 0;) {
    if (tensor.sizes[i] == 0) return true;
    if (tensor.sizes[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.sizes[i];
  }
  return true;
}

std::optional<DType> dtype_of(ScalarType type) { return dtype_from_long_name(scalar_name(type)); }

std::optional<DType> part_type(ScalarType type) {
  if (type == ScalarType::kComplex32) return DType::kFloat16;
  if (type == ScalarType::kComplex64) return DType::kFloat32;
  return type == ScalarType::kComplex128 ? std::optional(DType::kFloat64) : std::nullopt;
}

LoadedProgram::LoadedProgram(std::shared_ptr<const MappedFile> file)
    : file_(std::move(file)), program_(read_program(file_->text())) {}

LoadedProgram::LoadedProgram(std::shared_ptr<const MappedFile> file, Program program)
    : file_(std::move(file)), program_(std::move(program)) {}

Tensor LoadedProgram::constant(const StoredTensor& stored) const {
  if (!part_type(stored.dtype)) return read(stored, stored);
  StoredTensor pairs = stored;
  pairs.dtype = stored.dtype == ScalarType::kComplex32   ? ScalarType::kFloat16
                : stored.dtype == ScalarType::kComplex64 ? ScalarType::kFloat32
                                                         : ScalarType::kFloat64;
  for (int64_t& stride : pairs.strides) stride *= 2;
  pairs.offset *= 2;
  pairs.sizes.push_back(2);
  pairs.strides.push_back(1);
  return read(pairs, stored);
}

Tensor LoadedProgram::read(const StoredTensor& tensor, const StoredTensor& stored) const {
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    throw Error(ErrorCode::kNotSupported,
                "elements of type " + std::string(scalar_name(tensor.dtype)) + " are not implemented");
  const Shape shape(tensor.sizes.begin(), tensor.sizes.end());
  const size_t bytes = num_bytes(shape, *dtype);
  const size_t begin = static_cast<size_t>(tensor.offset) * dtype_bytes(*dtype);
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(tensor.storage.data() + begin) % dtype_bytes(*dtype) == 0;
  const bool is_mapped = tensor.storage.data() >= file_->text().data() &&
                         tensor.storage.data() < file_->text().data() + file_->text().size();
  if (bytes > 0 && lies_in_rows(tensor) && is_aligned && is_mapped) {
    // Tensors have no const data pointer; what is mapped is only read.
    return {*dtype, shape, std::const_pointer_cast<MappedFile>(file_),
            const_cast<char*>(tensor.storage.data() + begin)};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(&stored);
  if (known != made_.end()) return known->second;
  const std::string elements = contiguous_bytes(tensor, kMaxConstantBytes);
  Tensor made(*dtype, shape);
  if (!elements.empty()) std::memcpy(made.data(), elements.data(), elements.size());
  return made_.emplace(&stored, std::move(made)).first->second;
}

}  // namespace tensormill::frontend::pytorch
