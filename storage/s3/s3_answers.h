/// What S3's answers mean. Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/s3/http_transport.h"

namespace tensormill::storage {

/// Statuses beside 2xx that a caller knows what to do with.
inline constexpr std::array<int, 0> kNoOther = {};
inline constexpr std::array kAbsent = {404};
/// Of what has a condition, is completed or copied.
inline constexpr std::array kUndone = {404, 409, 412, 501};

/// The <Code> of an error; "" where the body has none.
std::string error_code_of(const HttpAnswer& answer);
/// The key was valid once, and a newer one may be.
bool is_expired_key(const HttpAnswer& answer);
/// No answer, one that was cut off, 5xx but for what the store lacks, or one that says to wait.
bool may_help_to_try_again(const HttpAnswer& answer);
/// As an Error that names the request, the bucket and the store's own words, never the key.
[[noreturn]] void throw_answer(const HttpAnswer& answer, const std::string& method, const std::string& key,
                               const std::string& bucket);
/// A number; 0 where it is none.
uint64_t parse_count(std::string_view digits);
std::string sha256_base64(std::string_view bytes);

}  // namespace tensormill::storage
