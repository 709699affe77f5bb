/// AWS Signature Version 4 as S3 has it: each byte of a path is escaped once. libcurl's own signer is not
/// used: that of 7.88 is wrong for queries without a value, unsorted queries and escapes.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::storage {

struct AwsKey {
  std::string id;
  std::string secret;
  std::string token;  ///< of temporary ones; else ""
};

struct SigningScope {
  std::string region;
  std::string service = "s3";
  std::string time;  ///< "20130524T000000Z", the same as in the header x-amz-date
};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// What is signed: a request before anything is escaped.
struct SigningRequest {
  std::string method;
  std::string path;     ///< "/bucket/a key"
  TextPairs query;      ///< in any order; a value may be ""
  TextPairs headers;    ///< all of them are signed; "host" must be there
  std::string payload;  ///< SHA-256 of the body in hex, or what stands for it
};

/// Everything but A-Z a-z 0-9 - . _ ~ becomes %XX; a slash stays where `keep_slash`.
std::string uri_escape(std::string_view text, bool keep_slash);
/// "a=1&b=", escaped and sorted: the query as it is signed and as it must be sent.
std::string query_text(const TextPairs& query);
/// The value of the header Authorization.
std::string sign(const SigningRequest& request, const AwsKey& key, const SigningScope& scope);
/// Seconds since 1970 as "20130524T000000Z".
std::string amz_time(int64_t unix_seconds);
/// Seconds since 1970 of "2013-05-24T00:00:00Z", with or without a fraction; 0 where it is no time.
int64_t parse_iso_time(std::string_view text);
std::string sha256_hex(std::string_view bytes);

}  // namespace tensormill::storage
