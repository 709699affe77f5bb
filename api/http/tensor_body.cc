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

TensorBody with_room(size_t room, size_t lead) {
  const size_t before = (kTensorAlignment - lead % kTensorAlignment) % kTensorAlignment;
  TensorBody body;
  body.owner = allocate_aligned(before + room);
  body.data = static_cast<std::byte*>(body.owner.get()) + before;
  return body;
}

}  // namespace

TensorBody read_tensor_body(BodySource& source, size_t lead) {
  const std::optional<uint64_t> length = source.length();
  size_t room = static_cast<size_t>(std::min(length.value_or(kUnknown), kBelieved));
  TensorBody body = with_room(room, lead);
  while (!length || body.size < *length) {
    if (body.size == room) {
      room *= 2;
      TensorBody larger = with_room(room, lead);
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

}  // namespace tensormill::http
