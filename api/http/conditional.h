/// Entity tags, preconditions and ranges (RFC 9110 §13, §14).
/// Thread-safety: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/message.h"

namespace tensormill::http {

/// Whether a list of entity tags ("*", or quoted, W/ allowed) has `etag` (its text without quotes).
bool etag_listed(std::string_view list, std::string_view etag);

/// A 304 response when If-None-Match names `etag`; throws Error(kPreconditionFailed) when there is an
/// If-Match that does not.
std::optional<Response> check_preconditions(const Request& request, std::string_view etag);

/// An answer whose identity is `etag`: 304, or `response` with the ETag field added.
Response with_etag(const Request& request, std::string_view etag, Response response);

/// Serves content: preconditions, whole (200) or a single range (206), Accept-Ranges. More ranges than one
/// are answered whole, as RFC 9110 allows. `etag` may be "" for what changes. Throws
/// Error(kRangeNotSatisfiable), Error(kPreconditionFailed).
Response serve_content(const Request& request, std::shared_ptr<Content> content, std::string_view etag,
                       std::string_view content_type);

}  // namespace tensormill::http
