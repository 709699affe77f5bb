/// Messages as the pieces of memory that they came in. Thread-safety: values.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/http/body.h"

namespace tensormill::rpc {

/// Pieces of memory, shared with the message that they are of.
using Pieces = std::vector<grpc::Slice>;

/// A message that is broken, or that asks for what is not there. Does not leave the module.
class MessageError : public std::runtime_error {
public:
  MessageError(grpc::StatusCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  grpc::StatusCode code() const { return code_; }

private:
  grpc::StatusCode code_;
};

/// An inference request whose tensors have not been touched: `head` is the message without them, as its
/// generated class reads it.
struct SplitRequest {
  std::string head;
  std::vector<Pieces> raw;
};

/// Splits a ModelInferRequest without copying raw_input_contents. Throws MessageError past
/// kMaxTensors of anything and past kMaxHead bytes of head.
SplitRequest split_request(const grpc::ByteBuffer& message);
inline constexpr size_t kMaxTensors = 4096;
inline constexpr size_t kMaxHead = size_t{16} << 20;

uint64_t size_of(const Pieces& pieces);
/// Text as a piece of memory of its own.
grpc::Slice slice_of(std::string text);
/// Part of a text that is held with it.
grpc::Slice slice_of(std::shared_ptr<const std::string> text, size_t begin, size_t size);
std::string text_of(const grpc::ByteBuffer& message);

/// A body that is in memory already; what has been read is given back.
class PiecesBody : public http::BodySource {
public:
  explicit PiecesBody(Pieces pieces) : pieces_(std::move(pieces)), size_(size_of(pieces_)) {}
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return size_; }

private:
  Pieces pieces_;
  uint64_t size_;
  size_t piece_ = 0, offset_ = 0;
};

}  // namespace tensormill::rpc
