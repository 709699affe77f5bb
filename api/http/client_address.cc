#include "api/http/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

using Bytes = std::array<uint8_t, 16>;

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/// IPv4 addresses as ::ffff:a.b.c.d.
std::optional<Bytes> parse_address(std::string_view text) {
  const std::string terminated(text);
  Bytes bytes{};
  if (::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) return bytes;
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
  if (::inet_pton(AF_INET, terminated.c_str(), bytes.data() + kMappedPrefix.size()) == 1) return bytes;
  return std::nullopt;
}

std::string print(const Bytes& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_ipv4 = std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes.begin());
  const int family = is_ipv4 ? AF_INET : AF_INET6;
  ::inet_ntop(family, bytes.data() + (is_ipv4 ? kMappedPrefix.size() : 0), text.data(), text.size());
  return text.data();
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "a.b.c.d", "a.b.c.d:port", "v6", "[v6]", "[v6]:port".
std::optional<Bytes> parse_node(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !(rest.starts_with(':') && is_port(rest.substr(1)))) return std::nullopt;
    return parse_address(text.substr(1, end - 1));
  }
  const size_t colon = text.find(':');
  const bool has_port =
      colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos;
  if (has_port && !is_port(text.substr(colon + 1))) return std::nullopt;
  return parse_address(has_port ? text.substr(0, colon) : text);
}

/// The parts of `text` between `separator`s that stand outside of quoted strings.
std::vector<std::string_view> split_unquoted(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == separator) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  parts.push_back(trim(text.substr(start)));
  return parts;
}

/// The "for" of one element of Forwarded; "" without one.
std::string forwarded_for(std::string_view element) {
  for (const std::string_view pair : split_unquoted(element, ';')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !equals_ignoring_case(trim(pair.substr(0, equals)), "for"))
      continue;
    std::string_view value = trim(pair.substr(equals + 1));
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"'))
      value = value.substr(1, value.size() - 2);
    std::string plain;
    for (const char c : value) {
      if (c != '\\') plain += c;
    }
    return plain;
  }
  return "";
}

/// What each proxy said of its client, the first proxy first.
std::vector<std::string> hops(const Headers& headers, ForwardedField field) {
  std::vector<std::string> found;
  const bool is_list = field == ForwardedField::kXForwardedFor;
  for (const std::string_view line : headers.get_all(is_list ? "X-Forwarded-For" : "Forwarded")) {
    for (const std::string_view element : split_unquoted(line, ','))
      found.push_back(is_list ? std::string(element) : forwarded_for(element));
  }
  return found;
}

}  // namespace

AddressSet::AddressSet(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const size_t slash = text.find('/');
    const std::string_view address = std::string_view(text).substr(0, slash);
    const auto bytes = parse_address(address);
    const bool is_ipv4 = bytes && address.find(':') == std::string_view::npos;
    const int width = is_ipv4 ? 32 : 128;
    int bits = width;
    if (slash != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
      if (error != std::errc() || stop != end) bits = -1;
    }
    if (!bytes || bits < 0 || bits > width)
      throw Error(ErrorCode::kUsage, "\"" + text + "\" is no IP address and no block such as 10.0.0.0/8");
    blocks_.push_back({*bytes, bits + 128 - width});
  }
}

bool AddressSet::contains(std::string_view address) const {
  const auto bytes = parse_address(address);
  if (!bytes) return false;
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    const auto whole = static_cast<size_t>(block.bits / 8);
    if (!std::equal(block.bytes.begin(), block.bytes.begin() + static_cast<ptrdiff_t>(whole), bytes->begin()))
      return false;
    const int rest = block.bits % 8;
    return rest == 0 || (block.bytes[whole] >> (8 - rest)) == ((*bytes)[whole] >> (8 - rest));
  });
}

ForwardedField forwarded_field(std::string_view name) {
  if (equals_ignoring_case(name, "x-forwarded-for")) return ForwardedField::kXForwardedFor;
  if (equals_ignoring_case(name, "forwarded")) return ForwardedField::kForwarded;
  throw Error(ErrorCode::kUsage,
              "http.forwarded_field is \"" + std::string(name) + "\", expected x-forwarded-for or forwarded");
}

std::string peer_address(std::string_view peer) {
  const auto bytes = parse_node(peer);
  return bytes ? print(*bytes) : "";
}

bool is_address_literal(std::string_view host) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  const bool has_colon = host.find(':') != std::string_view::npos;
  return has_brackets == has_colon && parse_node(host).has_value();
}

std::string client_address(const Headers& headers, std::string_view peer, const AddressSet& trusted,
                           ForwardedField field) {
  std::string address = peer_address(peer);
  if (!trusted.contains(address)) return address;
  const std::vector<std::string> said = hops(headers, field);
  for (auto hop = said.rbegin(); hop != said.rend(); ++hop) {
    const auto bytes = parse_node(*hop);
    if (!bytes) break;
    address = print(*bytes);
    if (!trusted.contains(address)) break;
  }
  return address;
}

}  // namespace tensormill::http
