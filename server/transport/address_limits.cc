#include "server/transport/address_limits.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

namespace ip = boost::asio::ip;

/// IPv4 addresses as IPv6 ones, so that a client of either kind of listener has one form.
ip::address_v6 as_v6(const ip::address& address) {
  return address.is_v6() ? address.to_v6() : ip::make_address_v6(ip::v4_mapped, address.to_v4());
}

constexpr int kMappedBits = 96;

/// What counts as one address.
std::string key_of(const ip::address_v6& address) {
  const ip::address_v6::bytes_type bytes = address.to_bytes();
  const size_t counted = address.is_v4_mapped() || address.is_loopback() ? bytes.size() : 8;
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(counted)};
}

}  // namespace

AddressLimits::AddressLimits(int limit, const std::vector<std::string>& unlimited) : limit_(limit) {
  for (const std::string& entry : unlimited) unlimited_.push_back(parse_network(entry));
}

AddressLimits::Network AddressLimits::parse_network(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  boost::system::error_code error;
  const ip::address address = ip::make_address(text.substr(0, slash), error);
  const int most = !error && address.is_v4() ? 32 : 128;
  int bits = most;
  if (slash < text.size()) {
    const char* end = text.data() + text.size();
    const auto [rest, failed] = std::from_chars(text.data() + slash + 1, end, bits);
    if (failed != std::errc() || rest != end) bits = -1;
  }
  if (error || bits < 0 || bits > most) {
    throw Error(ErrorCode::kUsage, "http.unlimited_addresses: \"" + text +
                                       "\" is neither an address nor a network, as 10.0.0.7 or 10.0.0.0/8");
  }
  return {as_v6(address), address.is_v4() ? kMappedBits + bits : bits};
}

bool AddressLimits::has(const Network& network, const ip::address_v6& address) {
  const ip::address_v6::bytes_type one = network.base.to_bytes();
  const ip::address_v6::bytes_type other = address.to_bytes();
  for (int bit = 0; bit < network.bits; ++bit) {
    const auto byte = static_cast<size_t>(bit / 8);
    if (((one[byte] ^ other[byte]) >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool AddressLimits::is_unlimited(const ip::address_v6& address) const {
  return std::any_of(unlimited_.begin(), unlimited_.end(),
                     [&](const Network& network) { return has(network, address); });
}

std::optional<AddressLimits::Place> AddressLimits::enter(const ip::address& address) {
  const ip::address_v6 form = as_v6(address);
  std::string key = key_of(form);
  const bool limited = !is_unlimited(form);
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
