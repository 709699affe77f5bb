#include "api/endpoints/npz_codec.h"

#include "runtime/npz/npz.h"

namespace tensormill::endpoints {

services::NamedTensors decode_npz(std::string_view bytes, uint64_t max_bytes) {
  npz::Limits limits;
  limits.max_total_bytes = static_cast<int64_t>(max_bytes);
  services::NamedTensors tensors;
  for (npz::NamedTensor& one : npz::read_npz(std::as_bytes(std::span(bytes.data(), bytes.size())), limits)) {
    tensors.emplace_back(std::move(one.name), std::move(one.tensor));
  }
  return tensors;
}

std::string encode_npz(const services::NamedTensors& tensors) {
  std::vector<npz::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return npz::write_npz(named);
}

}  // namespace tensormill::endpoints
