#include "api/http/tensor_body.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "runtime/base/tensor.h"

namespace tensormill::http {
namespace {

/// An announced length is believed up to a bound before its bytes come.
constexpr uint64_t kBelieved = uint64_t{1} << 20;
constexpr uint64_t kUnknown = uint64_t{16} << 10;

TensorBody with_room(size_t room) {
  TensorBody body;
  body.owner = allocate_aligned(room);
  body.data = static_cast<std::byte*>(body.owner.get());
  return body;
}

}  // namespace

TensorBody read_tensor_body(BodySource& source, size_t taken) {
  std::optional<uint64_t> length = source.length();
  if (length) *length -= std::min<uint64_t>(*length, taken);
  size_t room = static_cast<size_t>(std::min(length.value_or(kUnknown), kBelieved));
  TensorBody body = with_room(room);
  while (!length || body.size < *length) {
    if (body.size == room) {
      room *= 2;
      TensorBody larger = with_room(room);
      std::memcpy(larger.data, body.data, body.size);
      larger.size = body.size;
      body = std::move(larger);
    }
    const size_t count = source.read(std::span(body.data + body.size, room - body.size));
    if (count == 0) break;
    body.size += count;
  }
  // What a tensor at the end may read past it is defined.
  std::memset(body.data + body.size, 0, std::min(room - body.size, kTensorPadding));
  return body;
}

TensorBody read_tensor_body(BodySource& source, std::shared_ptr<void> room, size_t size) {
  TensorBody body;
  body.owner = std::move(room);
  body.data = static_cast<std::byte*>(body.owner.get());
  while (body.size < size) {
    const size_t count = source.read(std::span(body.data + body.size, size - body.size));
    if (count == 0) break;
    body.size += count;
  }
  return body;
}

}  // namespace tensormill::http
