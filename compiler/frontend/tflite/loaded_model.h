/// A .tflite file that is read once and imported at many shapes, with the constants that cannot be used where
/// they are mapped. Thread-safety: all functions may be called at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/frontend/tflite/model.h"
#include "runtime/base/file.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::tflite {

/// The type in which tensors have such elements here; elements of 4 and 2 bits take a byte each. Nothing for
/// resources, complex numbers and float8.
std::optional<DType> dtype_of(TensorType type);

class LoadedModel {
public:
  /// Throws as read_model.
  explicit LoadedModel(std::shared_ptr<const MappedFile> file);
  const Model& model() const { return model_; }

  /// The elements of a constant of this model: mapped where they lie aligned, sparse ones dense. Throws
  /// Error(kNotSupported) for elements outside of the file or of a type that no tensor has,
  /// Error(kInvalidModel) for strings that do not lie in their buffer, Error(kInvalidTensor) for those that
  /// are not UTF-8.
  ::tensormill::Tensor constant(const Tensor& tensor) const;
  /// The same, transposed, with the permutation `perm`, unless that is empty, and then reshaped.
  ::tensormill::Tensor arranged(const Tensor& tensor, const Shape& perm, const Shape& shape) const;

private:
  struct Arrangement {
    const Tensor* tensor;
    Shape perm, shape;
    auto operator<=>(const Arrangement&) const = default;
  };
  std::optional<::tensormill::Tensor> find(const Arrangement& wanted) const;
  ::tensormill::Tensor copied(const Tensor& tensor, DType dtype) const;
  ::tensormill::Tensor texts(const Tensor& tensor) const;

  std::shared_ptr<const MappedFile> file_;
  Model model_;
  mutable std::mutex mutex_;
  mutable std::map<Arrangement, ::tensormill::Tensor> made_;
};

}  // namespace tensormill::frontend::tflite
