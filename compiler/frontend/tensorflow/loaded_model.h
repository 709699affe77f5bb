/// A model of TensorFlow that is read once and imported at many shapes, with the constants that cannot be
/// used where they are mapped. Thread-safety: all functions may be called at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/tensorflow/model.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::tensorflow {

/// The type in which tensors have such elements here. Nothing for resources, variants, complex numbers,
/// quantized types and those below a byte.
std::optional<DType> dtype_of(DataType type);
/// The type of the parts of complex numbers; nothing for other types.
std::optional<DType> dtype_of_parts(DataType type);

class LoadedModel {
public:
  /// What `model` has views of lives as long as `owner`.
  LoadedModel(std::shared_ptr<const void> owner, SavedModel model);
  const SavedModel& model() const { return model_; }

  /// The elements of a constant of this model. Throws Error(kNotSupported) for a type that no tensor has,
  /// Error(kInvalidModel) for another number of elements than the shape's, Error(kTooLarge) for repeated
  /// elements that would be far more than the file, Error(kInvalidTensor) for strings that are not UTF-8.
  Tensor constant(const TensorValue& value) const;
  /// The real and the imaginary parts of a constant of complex elements. Errors as above.
  std::pair<Tensor, Tensor> complex_constant(const TensorValue& value) const;
  /// The same of a variable, by its key in the checkpoint.
  Tensor variable(const std::string& key) const;
  /// A tensor of the two above, transposed, with the permutation `perm`, and then reshaped.
  Tensor arranged(const Tensor& tensor, const Shape& perm, const Shape& shape) const;

private:
  using Arrangement = std::pair<const void*, std::pair<Shape, Shape>>;
  Tensor mapped(DataType type, const std::vector<int64_t>& dims, std::string_view bytes) const;
  Tensor listed(const TensorValue& value) const;
  Tensor texts(const TensorValue& value) const;

  std::shared_ptr<const void> owner_;
  SavedModel model_;
  mutable std::mutex mutex_;
  mutable std::map<const void*, Tensor> made_;  ///< by the first byte, or by the constant
  mutable std::map<Arrangement, Tensor> arrangements_;
  mutable uint64_t repeated_bytes_ = 0;
};

}  // namespace tensormill::frontend::tensorflow
