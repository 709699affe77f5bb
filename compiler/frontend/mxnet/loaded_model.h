/// An MXNet model that is read once and imported at many shapes, with the parameters that cannot be used
/// where they are mapped. Thread-safety: all functions may be called at once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiler/frontend/mxnet/model.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::mxnet {

class LoadedModel {
public:
  /// What `model` has views of lives as long as `owner`.
  LoadedModel(std::shared_ptr<const void> owner, Model model)
      : owner_(std::move(owner)), model_(std::move(model)) {}
  const Symbol& symbol() const { return model_.symbol; }
  const Model& model() const { return model_; }

  /// Null where the file has no parameter of that name.
  const Parameter* find(std::string_view name) const;
  /// The elements of a parameter of this model: mapped where they lie aligned in the file.
  Tensor tensor(const Parameter& parameter) const;

private:
  std::shared_ptr<const void> owner_;
  Model model_;
  mutable std::mutex mutex_;
  mutable std::map<const Parameter*, Tensor> made_;
};

}  // namespace tensormill::frontend::mxnet
