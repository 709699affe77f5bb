#include "compiler/frontend/mxnet/loaded_model.h"

#include <algorithm>
#include <cstring>

namespace tensormill::frontend::mxnet {

const Parameter* LoadedModel::find(std::string_view name) const {
  const auto found = model_.parameters.find(name);
  return found == model_.parameters.end() ? nullptr : &found->second;
}

Tensor LoadedModel::tensor(const Parameter& parameter) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = made_.find(&parameter);
  if (known != made_.end()) return known->second;
  const std::string_view bytes = parameter.bytes;
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(bytes.data()) % dtype_bytes(parameter.dtype) == 0 && !bytes.empty();
  // Tensors have no const data pointer; what is mapped is only read. Bools may be any bytes in a file.
  if (is_aligned && parameter.dtype != DType::kBool)
    return {parameter.dtype, parameter.shape, std::const_pointer_cast<void>(owner_),
            const_cast<char*>(bytes.data())};
  Tensor made(parameter.dtype, parameter.shape);
  if (!bytes.empty()) std::memcpy(made.data(), bytes.data(), bytes.size());
  if (parameter.dtype == DType::kBool) {
    auto* elements = static_cast<uint8_t*>(made.data());
    std::transform(elements, elements + bytes.size(), elements,
                   [](uint8_t each) { return static_cast<uint8_t>(each != 0); });
  }
  return made_.emplace(&parameter, std::move(made)).first->second;
}

}  // namespace tensormill::frontend::mxnet
