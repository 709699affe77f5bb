/// A CNTK model that is read once and imported at many shapes. Thread-safety: all functions may be called at
/// once.
#pragma once

#include <memory>

#include "compiler/frontend/cntk/walk.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::cntk {

class LoadedModel {
public:
  /// What `model` has views of lives as long as `owner`. Throws Error(kInvalidModel), Error(kNotSupported).
  LoadedModel(std::shared_ptr<const void> owner, Model model);
  const Model& model() const { return model_; }
  const Walk& walk() const { return walk_; }

  /// The elements of a parameter or a constant of this model, mapped where they lie aligned in the file.
  /// Throws Error(kInvalidModel) for elements that are not there, or are not as many as the shape says,
  /// Error(kNotSupported) for a type of elements that no tensor has.
  Tensor tensor(const Variable& variable) const;

private:
  const std::shared_ptr<const void> owner_;
  const Model model_;
  const Walk walk_;
};

/// An input's type. Throws Error(kNotSupported).
DType input_dtype(const Variable& variable);

}  // namespace tensormill::frontend::cntk
