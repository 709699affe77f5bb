#include "api/http/conditional.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

std::string quoted(std::string_view etag) { return "\"" + std::string(etag) + "\""; }

struct ByteRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The one range that `field` asks for; nothing when the field is to be ignored (another unit, malformed,
/// several ranges). Throws Error(kRangeNotSatisfiable).
std::optional<ByteRange> parse_range(std::string_view field, uint64_t size) {
  if (!to_lower(field.substr(0, 6)).starts_with("bytes=")) return std::nullopt;
  const std::string_view spec = trim(field.substr(6));
  const size_t dash = spec.find('-');
  if (dash == std::string_view::npos || spec.find(',') != std::string_view::npos) return std::nullopt;
  const auto first = parse_number(spec.substr(0, dash));
  const auto last = parse_number(spec.substr(dash + 1));
  const bool well_formed =
      dash == 0 ? last.has_value() : first.has_value() && (last || dash + 1 == spec.size());
  if (!well_formed || (first && last && *last < *first)) return std::nullopt;
  const bool suffix = dash == 0;
  if (size == 0 || (suffix ? *last == 0 : *first >= size)) {
    throw Error(ErrorCode::kRangeNotSatisfiable, "range " + std::string(spec) + " is outside the " +
                                                     std::to_string(size) + " bytes there are");
  }
  if (suffix) return ByteRange{size - std::min(size, *last), size - 1};
  return ByteRange{*first, std::min(last.value_or(size - 1), size - 1)};
}

}  // namespace

bool etag_listed(std::string_view list, std::string_view etag) {
  for (std::string_view member : split_list(list)) {
    if (member == "*") return true;
    if (member.starts_with("W/")) member.remove_prefix(2);
    if (member == quoted(etag)) return true;
  }
  return false;
}

std::optional<Response> check_preconditions(const Request& request, std::string_view etag) {
  if (const auto match = request.headers.get("If-Match"); match && !etag_listed(*match, etag)) {
    throw Error(ErrorCode::kPreconditionFailed,
                "If-Match is " + std::string(*match) + ", the entity tag is " + quoted(etag));
  }
  const auto none_match = request.headers.get("If-None-Match");
  if (!none_match || !etag_listed(*none_match, etag)) return std::nullopt;
  Response response = empty_response(304);
  response.headers.set("ETag", quoted(etag));
  return response;
}

Response with_etag(const Request& request, std::string_view etag, Response response) {
  if (auto unchanged = check_preconditions(request, etag)) return *unchanged;
  response.headers.set("ETag", quoted(etag));
  return response;
}

Response serve_content(const Request& request, std::shared_ptr<Content> content, std::string_view etag,
                       std::string_view content_type) {
  if (!etag.empty()) {
    if (auto unchanged = check_preconditions(request, etag)) return *unchanged;
  }
  const uint64_t size = content->size();
  Response response;
  response.headers.set("Content-Type", content_type);
  response.headers.set("Accept-Ranges", "bytes");
  if (!etag.empty()) response.headers.set("ETag", quoted(etag));
  const auto if_range = request.headers.get("If-Range");
  const bool range_valid = !if_range || (!etag.empty() && *if_range == quoted(etag));
  std::optional<ByteRange> range;
  if (const auto field = request.headers.get("Range"); field && range_valid)
    range = parse_range(*field, size);
  if (range) {
    response.status = 206;
    response.headers.set("Content-Range", "bytes " + std::to_string(range->first) + "-" +
                                              std::to_string(range->last) + "/" + std::to_string(size));
    response.body = ContentBody{std::move(content), range->first, range->last - range->first + 1};
  } else {
    response.body = ContentBody{std::move(content), 0, size};
  }
  return response;
}

}  // namespace tensormill::http
