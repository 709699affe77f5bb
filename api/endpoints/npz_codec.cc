#include "api/endpoints/npz_codec.h"

#include "runtime/npz/npz.h"

namespace tensormill::endpoints {

namespace {

/// No model has so many inputs.
constexpr int64_t kMaxTensors = 8192;

}  // namespace

services::NamedTensors decode_npz(const http::TensorBody& bytes, uint64_t max_bytes, MemoryShare* memory) {
  npz::Limits limits;
  limits.max_members = kMaxTensors;
  limits.max_total_bytes = static_cast<int64_t>(max_bytes);
  const npz::Reader reader({bytes.data, bytes.size}, limits);
  services::NamedTensors tensors;
  for (size_t i = 0; i < reader.entries().size(); ++i) {
    const npz::Entry& entry = reader.entries()[i];
    if (const auto view = reader.view(i)) {
      tensors.emplace_back(entry.name,
                           Tensor(view->dtype, view->shape, bytes.owner, const_cast<void*>(view->data)));
    } else {
      if (memory != nullptr) memory->take(static_cast<uint64_t>(entry.bytes));
      const MemoryLoan turned(memory, static_cast<uint64_t>(reader.scratch_bytes(i)));
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
