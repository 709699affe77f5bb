/// The body of a request as handlers read it: each read() takes from the socket only what it returns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "api/http/body.h"

namespace tensormill::transport {

class Connection;

class BeastBody : public http::BodySource {
public:
  BeastBody(std::weak_ptr<Connection> connection, std::optional<uint64_t> length)
      : connection_(std::move(connection)), length_(length) {}
  size_t read(std::span<std::byte> buffer) override;
  std::optional<uint64_t> length() const override { return length_; }

private:
  std::weak_ptr<Connection> connection_;
  std::optional<uint64_t> length_;
};

}  // namespace tensormill::transport
