/// Who is behind a proxy. What a proxy says of its client counts only where the proxy is trusted.
/// Thread-safety: AddressSet: const methods from many threads; the functions are pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/headers.h"

namespace tensormill::http {

/// IP addresses and blocks of them ("10.0.0.0/8", "2001:db8::/32", "192.0.2.7"). IPv4 addresses are also
/// found in their IPv6 form (::ffff:192.0.2.7).
class AddressSet {
public:
  AddressSet() = default;
  /// Throws Error(kUsage) naming what is no address or block.
  explicit AddressSet(const std::vector<std::string>& texts);
  bool contains(std::string_view address) const;
  bool empty() const { return blocks_.empty(); }

private:
  struct Block {
    std::array<uint8_t, 16> bytes{};
    int bits = 0;  ///< of the IPv6 form
  };
  std::vector<Block> blocks_;
};

/// The field in which the trusted proxies tell their client.
enum class ForwardedField { kXForwardedFor, kForwarded };
/// "x-forwarded-for" or "forwarded"; Error(kUsage) otherwise.
ForwardedField forwarded_field(std::string_view name);

/// The address of "192.0.2.7:4711" or "[2001:db8::7]:4711" (as a transport tells its peer), or of one without
/// a port, in its canonical form; "" when there is none.
std::string peer_address(std::string_view peer);
/// Whether `text` is an IPv4 address or an IPv6 address in brackets, as a Host has them.
bool is_address_literal(std::string_view host);

/// The address of the client: `peer`'s, or, where that is of a trusted proxy, what the field says, from its
/// end up to the first address that is of no trusted proxy. Where an element cannot be read ("unknown",
/// "_hidden", rubbish) the address before it stands: who wrote it is known, its client is not. Fields:
/// X-Forwarded-For (a list of addresses) and RFC 7239's Forwarded (its "for" parameters).
std::string client_address(const Headers& headers, std::string_view peer, const AddressSet& trusted,
                           ForwardedField field);

}  // namespace tensormill::http
