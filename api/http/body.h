/// Bodies: what a request brings (read once, front to back, with backpressure), and what a response carries
/// (bytes, content with random access, or a live stream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/file.h"

namespace tensormill::http {

/// The body of a request. Whoever reads decides the pace: nothing is taken from the socket ahead of read().
/// Thread-safety: one reader at a time.
class BodySource {
public:
  virtual ~BodySource() = default;
  /// Fills at most `buffer` and returns the number of bytes, 0 only at the end (never 0 for a non-empty
  /// buffer before it). Blocks. Throws Error(kInvalidRequest) for broken framing or a client that went away,
  /// Error(kTooLarge) past a limit, Error(kRequestTimeout) for one that stalls.
  virtual size_t read(std::span<std::byte> buffer) = 0;
  /// The announced length, when there is one.
  virtual std::optional<uint64_t> length() const = 0;
};

/// A body in memory.
class BytesBody : public BodySource {
public:
  explicit BytesBody(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return bytes_.size(); }

private:
  std::string bytes_;
  size_t position_ = 0;
};

/// Cuts another body off at `limit` bytes: Error(kTooLarge) naming the limit, before the first byte when the
/// announced length is over it already (then the constructor throws).
class LimitedBody : public BodySource {
public:
  LimitedBody(std::shared_ptr<BodySource> inner, uint64_t limit, std::string_view limit_name);
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return inner_->length(); }

private:
  std::shared_ptr<BodySource> inner_;
  uint64_t limit_;
  uint64_t taken_ = 0;
  std::string limit_name_;
};

/// Bytes of known length with random access: a file, a part of one, an archive that is put together on the
/// fly. Served whole or by Range.
/// Thread-safety: read_at may be called from any thread, by one at a time.
class Content {
public:
  virtual ~Content() = default;
  virtual uint64_t size() const = 0;
  /// Fills `buffer` from `offset`; fewer bytes only at the end. Throws Error(kIo) or Error(kCorrupt).
  virtual size_t read_at(uint64_t offset, std::span<std::byte> buffer) = 0;
};

class BytesContent : public Content {
public:
  explicit BytesContent(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override;

private:
  std::string bytes_;
};

/// `length` bytes of a regular file from `start`; the file must not shrink while it is served.
class FileContent : public Content {
public:
  FileContent(FileDescriptor file, uint64_t start, uint64_t length)
      : file_(std::move(file)), start_(start), length_(length) {}
  uint64_t size() const override { return length_; }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override;

private:
  FileDescriptor file_;
  uint64_t start_;
  uint64_t length_;
};

/// A response without a known length, such as server-sent events.
class ResponseStream {
public:
  virtual ~ResponseStream() = default;
  /// Appends the next piece to `piece` and returns true, or returns false at the end. May block for up to a
  /// second at a time and may return true with nothing appended, so that a client that left is noticed.
  virtual bool next(std::string& piece) = 0;
  /// A piece that tells the client nothing, for a look whether it is still there; "" where there is none.
  virtual std::string idle_piece() const { return ""; }
};

}  // namespace tensormill::http
