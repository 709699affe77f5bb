#include "server/transport/address_limits.h"

#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

namespace ip = boost::asio::ip;

/// IPv4 addresses as IPv6 ones, so that a client of either kind of listener has one form.
ip::address_v6 as_v6(const ip::address& address) {
  return address.is_v6() ? address.to_v6() : ip::make_address_v6(ip::v4_mapped, address.to_v4());
}

/// What counts as one address.
std::string key_of(const ip::address_v6& address) {
  const ip::address_v6::bytes_type bytes = address.to_bytes();
  const size_t counted = address.is_v4_mapped() || address.is_loopback() ? bytes.size() : 8;
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(counted)};
}

http::AddressSet addresses_of(const std::vector<std::string>& texts) {
  try {
    return http::AddressSet(texts);
  } catch (const Error& error) {
    throw Error(error.code(), "http.unlimited_addresses: " + error.message());
  }
}

}  // namespace

AddressLimits::AddressLimits(int limit, const std::vector<std::string>& unlimited)
    : limit_(limit), unlimited_(addresses_of(unlimited)) {}

std::optional<AddressLimits::Place> AddressLimits::enter(const ip::address& address) {
  const ip::address_v6 form = as_v6(address);
  std::string key = key_of(form);
  const bool limited = !unlimited_.contains(form.to_string());
  const std::lock_guard lock(mutex_);
  int& count = counts_[key];
  if (limited && count >= limit_) {
    if (count == 0) counts_.erase(key);
    return std::nullopt;
  }
  ++count;
  return std::make_optional<Place>(*this, std::move(key));
}

void AddressLimits::leave(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(key);
  if (--found->second == 0) counts_.erase(found);
}

}  // namespace tensormill::transport
