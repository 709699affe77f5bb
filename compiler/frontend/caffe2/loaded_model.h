/// A Caffe2 model that is read once and imported at many shapes. Thread-safety: all functions may be called
/// at once.
#pragma once

#include <memory>

#include "compiler/frontend/caffe2/model.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::caffe2 {

class LoadedModel {
public:
  /// What `model` has views of lives as long as `owner`.
  LoadedModel(std::shared_ptr<const void> owner, Model model);
  const Model& model() const { return kept_->model; }
  /// The tensor that a fill makes of its arguments: floats and integers of 64 bits are those of the model.
  /// Throws Error(kInvalidModel) for elements that are not there, or are not as many as its shape says,
  /// Error(kNotSupported) for a type of elements that is not known here.
  Tensor filled(const Operator& fill) const;

private:
  struct Kept {
    std::shared_ptr<const void> owner;
    Model model;
  };
  Tensor shared(const void* elements, DType dtype, Shape shape) const;

  std::shared_ptr<const Kept> kept_;
};

}  // namespace tensormill::frontend::caffe2
