#include "server/transport/connection_limits.h"

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

ConnectionLimits::ConnectionLimits(int limit, int address_limit, const std::vector<std::string>& unlimited)
    : limit_(limit), address_limit_(address_limit), unlimited_(addresses_of(unlimited)) {}

ConnectionLimits::Entry ConnectionLimits::enter(const ip::address& address) {
  const ip::address_v6 form = as_v6(address);
  std::string key = key_of(form);
  const bool is_limited = !unlimited_.contains(form.to_string());
  const std::lock_guard lock(mutex_);
  if (count_ >= limit_) return {std::nullopt, true};
  int& count = counts_[key];
  if (is_limited && count >= address_limit_) {
    if (count == 0) counts_.erase(key);
    return {std::nullopt, false};
  }
  ++count_;
  ++count;
  return {std::make_optional<Place>(*this, std::move(key)), false};
}

void ConnectionLimits::leave(const std::string& key) {
  const std::lock_guard lock(mutex_);
  --count_;
  const auto found = counts_.find(key);
  if (--found->second == 0) counts_.erase(found);
}

}  // namespace tensormill::transport
