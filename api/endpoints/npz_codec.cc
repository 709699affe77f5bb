#include "api/endpoints/npz_codec.h"

#include "runtime/npz/npz.h"

namespace tensormill::endpoints {

services::NamedTensors decode_npz(const http::SharedBytes& bytes, uint64_t max_bytes) {
  npz::Limits limits;
  limits.max_total_bytes = static_cast<int64_t>(max_bytes);
  const npz::Reader reader({bytes.data.get(), bytes.size}, limits);
  services::NamedTensors tensors;
  for (size_t i = 0; i < reader.entries().size(); ++i) {
    const npz::Entry& entry = reader.entries()[i];
    if (const auto view = reader.view(i)) {
      tensors.emplace_back(entry.name,
                           Tensor(view->dtype, view->shape, bytes.data, const_cast<void*>(view->data)));
    } else {
      tensors.emplace_back(entry.name, reader.read(i));
    }
  }
  return tensors;
}

std::string encode_npz(const services::NamedTensors& tensors) {
  std::vector<npz::NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  return npz::write_npz(named);
}

}  // namespace tensormill::endpoints
