/// Tensors of a model file that cannot be read where they are mapped: copied once, however often the model is
/// imported. Thread-safety: all functions may be called at once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/base/tensor.h"

namespace tensormill::frontend::onnx {

class CopiedTensors {
public:
  /// The copy of the mapped bytes at `data` as that type, which `make` makes where there is none yet. What
  /// imports share is never written.
  Tensor get(const void* data, DType dtype, const Shape& shape, const std::function<Tensor()>& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = copies_.find({data, dtype, shape});
    if (found != copies_.end()) return found->second;
    return copies_.emplace(Key{data, dtype, shape}, make()).first->second;
  }

private:
  using Key = std::tuple<const void*, DType, Shape>;
  std::mutex mutex_;
  std::map<Key, Tensor> copies_;
};

}  // namespace tensormill::frontend::onnx
