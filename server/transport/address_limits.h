/// How many connections each client's address has.
/// Thread-safety: all methods from any thread; a Place may be let go of on any thread.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/http/client_address.h"

namespace tensormill::transport {

class AddressLimits {
public:
  /// One connection; it counts while this lives.
  class Place {
  public:
    Place(AddressLimits& limits, std::string key) : limits_(&limits), key_(std::move(key)) {}
    Place(Place&& other) noexcept : limits_(other.limits_), key_(std::move(other.key_)) {
      other.limits_ = nullptr;
    }
    Place& operator=(Place&&) = delete;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      if (limits_ != nullptr) limits_->leave(key_);
    }

  private:
    AddressLimits* limits_;
    std::string key_;
  };

  /// At most `limit` connections for each address, but for those of `unlimited`: addresses ("10.0.0.7",
  /// "::1") and networks ("10.0.0.0/8"). Throws Error(kUsage) naming the entry that is neither.
  AddressLimits(int limit, const std::vector<std::string>& unlimited);
  /// Nothing when the address has all that it may have. Of IPv6 a network of 64 bits is one address: a client
  /// has all of it.
  std::optional<Place> enter(const boost::asio::ip::address& address);

private:
  void leave(const std::string& key);

  const int limit_;
  http::AddressSet unlimited_;
  std::mutex mutex_;
  std::map<std::string, int> counts_;
};

}  // namespace tensormill::transport
