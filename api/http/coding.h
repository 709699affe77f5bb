/// Content codings of RFC 9110, section 8.4.1: gzip (RFC 1952), deflate (RFC 1950) and zstd (RFC 8878).
/// Thread-safety: functions are pure; a decoded body has one reader at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/http/body.h"
#include "api/http/message.h"

namespace tensormill::http {

enum class Coding { kIdentity, kGzip, kDeflate, kZstd };

/// "gzip" …; "identity".
std::string_view coding_name(Coding coding);
/// The coding of a body by its Content-Encoding. Throws Error(kUnsupportedMediaType) for more than one coding
/// and for an unknown one.
Coding content_coding(const Headers& headers);
/// What the Accept-Encoding field likes best; kIdentity when there is none or nothing known is acceptable. Of
/// codings with equal weight zstd is taken before gzip before deflate.
Coding accepted_coding(const Headers& headers);

/// The bytes behind a coding, decoded piece by piece as they are read: whoever reads bounds what comes out.
/// read() throws Error(kInvalidRequest) for coded bytes that are broken, cut off or followed by others. A
/// zstd frame whose window is over 8 MiB is refused (RFC 8878, section 3.1.1.1.2). Error(kTooLarge) for more
/// than 256 MiB that are more than 256 times the coded bytes.
std::shared_ptr<BodySource> decoded_body(std::shared_ptr<BodySource> coded, Coding coding);

/// `bytes` in a coding, at the fastest level.
std::string encode(std::string_view bytes, Coding coding);

/// Encodes the body of an answer as the client prefers, when that is worth it: text, JSON and inference
/// answers that are held in memory and have no validator. Sets Content-Encoding and Vary.
void encode_response(const Headers& request, Response& response);

}  // namespace tensormill::http
