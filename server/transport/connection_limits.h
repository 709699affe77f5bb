/// How many connections there are, in all and of each client's address.
/// Thread-safety: all methods from any thread; a Place may be let go of on any thread.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/client_address.h"

namespace tensormill::transport {

class ConnectionLimits {
public:
  /// One connection; it counts while this lives.
  class Place {
  public:
    Place(ConnectionLimits& limits, std::string key) : limits_(&limits), key_(std::move(key)) {}
    Place(Place&& other) noexcept : limits_(other.limits_), key_(std::move(other.key_)) {
      other.limits_ = nullptr;
    }
    Place& operator=(Place&& other) noexcept {
      std::swap(limits_, other.limits_);
      key_.swap(other.key_);
      return *this;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      if (limits_ != nullptr) limits_->leave(key_);
    }

  private:
    ConnectionLimits* limits_;
    std::string key_;
  };

  struct Entry {
    std::optional<Place> place;  ///< nothing past a limit
    bool is_full = false;        ///< that limit is the one of all connections
    /// Of a refusal, as TransportOptions::on_refused has it.
    std::string_view reason() const { return is_full ? "connections" : "address"; }
  };

  /// At most `limit` connections in all, and `address_limit` of each address but those of `unlimited`:
  /// addresses ("10.0.0.7", "::1") and networks ("10.0.0.0/8"). Throws Error(kUsage) naming the entry that is
  /// neither.
  ConnectionLimits(int limit, int address_limit, const std::vector<std::string>& unlimited);
  /// A connection of that address. Of IPv6 a network of 64 bits is one address: a client has all of it.
  Entry enter(const boost::asio::ip::address& address);

private:
  void leave(const std::string& key);

  const int limit_;
  const int address_limit_;
  http::AddressSet unlimited_;
  std::mutex mutex_;
  int count_ = 0;
  std::map<std::string, int> counts_;
};

}  // namespace tensormill::transport
