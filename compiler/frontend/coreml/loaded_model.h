/// A Core ML model that is read once and imported at many shapes, with the constants that cannot be used
/// where they are mapped. Thread-safety: all functions may be called at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/frontend/coreml/model.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::coreml {

/// The type in which tensors have such elements here; integers below a byte take one each. Nothing for float8
/// and what is not known.
std::optional<DType> dtype_of(DataType type);

class LoadedModel {
public:
  /// What `model` has views of, and the files of weights, live as long as `owner`.
  LoadedModel(std::shared_ptr<const void> owner, Model model, ModelFiles weights);
  const Model& model() const { return model_; }

  /// The elements of a tensor of this model: mapped where they lie aligned in a file. Throws
  /// Error(kNotSupported) for a type that no tensor has, Error(kInvalidModel) for elements that are not there
  /// or of another type or number than the value's type says, Error(kInvalidTensor) for strings that are not
  /// UTF-8.
  Tensor constant(const Value& value) const;

private:
  std::string_view file_of(const BlobRef& blob) const;
  Tensor mapped(const Value& value, DType dtype, const Shape& shape) const;
  Tensor listed(const Elements& elements, DType dtype, const Shape& shape) const;

  std::shared_ptr<const void> owner_;
  Model model_;
  ModelFiles weights_;
  mutable std::mutex mutex_;  ///< of what is below, and of the files, which unpack what is requested
  mutable std::map<const Value*, Tensor> made_;
};

/// The number of elements of a tensor's type. Throws Error(kInvalidModel) where it is not known.
Shape fixed_shape_of(const TensorType& type);

}  // namespace tensormill::frontend::coreml
