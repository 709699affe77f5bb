#include "storage/s3/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/percent.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

using Mac = std::array<uint8_t, 32>;

Mac hmac(std::string_view key, std::string_view text) {
  Mac mac{};
  unsigned int size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  TM_CHECK(done != nullptr && size == mac.size(), "OpenSSL has no HMAC-SHA256");
  return mac;
}

std::string_view text_of(const Mac& mac) { return {reinterpret_cast<const char*>(mac.data()), mac.size()}; }

/// Without spaces at its ends, and with one where several follow one another.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// Names in lower case; the values of one name are joined in their order.
std::map<std::string, std::string> canonical_headers(const TextPairs& headers) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : headers) {
    std::string lower;
    for (const char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto [known, is_new] = all.try_emplace(lower, trimmed(value));
    if (!is_new) known->second += "," + trimmed(value);
  }
  return all;
}

}  // namespace

std::string uri_escape(std::string_view text, bool keep_slash) {
  return percent_encode(text, keep_slash ? "/" : "");
}

std::string query_text(const TextPairs& query) {
  TextPairs escaped;
  for (const auto& [name, value] : query)
    escaped.emplace_back(uri_escape(name, false), uri_escape(value, false));
  std::sort(escaped.begin(), escaped.end());
  std::string text;
  for (const auto& [name, value] : escaped) {
    if (!text.empty()) text += '&';
    text += name;
    text += '=';
    text += value;
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) { return Digest::of(bytes).hex(); }

std::string sign(const SigningRequest& request, const AwsKey& key, const SigningScope& scope) {
  std::string headers, names;
  for (const auto& [name, value] : canonical_headers(request.headers)) {
    headers += name;
    headers += ':';
    headers += value;
    headers += '\n';
    if (!names.empty()) names += ';';
    names += name;
  }
  std::string canonical = request.method + "\n" + uri_escape(request.path, true) + "\n";
  canonical += query_text(request.query) + "\n" + headers + "\n" + names + "\n" + request.payload;

  const std::string date = scope.time.substr(0, 8);
  const std::string credential = date + "/" + scope.region + "/" + scope.service + "/aws4_request";
  std::string to_sign(kAlgorithm);
  to_sign += "\n" + scope.time + "\n" + credential + "\n" + sha256_hex(canonical);

  Mac mac = hmac("AWS4" + key.secret, date);
  mac = hmac(text_of(mac), scope.region);
  mac = hmac(text_of(mac), scope.service);
  mac = hmac(text_of(mac), "aws4_request");
  mac = hmac(text_of(mac), to_sign);
  std::string value(kAlgorithm);
  value += " Credential=" + key.id + "/" + credential + ", SignedHeaders=" + names;
  return value + ", Signature=" + hex_text(mac);
}

std::string amz_time(int64_t unix_seconds) {
  const auto seconds = static_cast<time_t>(unix_seconds);
  tm parts{};
  TM_CHECK(::gmtime_r(&seconds, &parts) != nullptr, "a time that no calendar has");
  std::array<char, 32> text{};
  const size_t size = ::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), size};
}

int64_t parse_iso_time(std::string_view text) {
  tm parts{};
  const std::string whole(text);
  const char* end = ::strptime(whole.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || (*end != 'Z' && *end != '.')) return 0;
  return static_cast<int64_t>(::timegm(&parts));
}

}  // namespace tensormill::storage
