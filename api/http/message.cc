#include "api/http/message.h"

#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

/// q value of the best range in an Accept header that covers `type`, or -1 when none does. A more specific
/// range wins over a wildcard.
double quality(std::string_view accept, std::string_view type) {
  const std::string_view family = type.substr(0, type.find('/'));
  double best = -1;
  int best_rank = -1;
  for (const std::string_view member : split_list(accept)) {
    const std::string_view range = trim(member.substr(0, member.find(';')));
    int rank = -1;
    if (equals_ignoring_case(range, type)) rank = 2;
    if (range == "*/*") rank = 0;
    if (range.ends_with("/*") && equals_ignoring_case(range.substr(0, range.size() - 2), family)) rank = 1;
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = 1;
    const size_t q = member.find("q=");
    if (q != std::string_view::npos) {
      double value = 1;
      std::from_chars(member.data() + q + 2, member.data() + member.size(), value);
      best = value;
    }
  }
  return best;
}

}  // namespace

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

bool Request::query_flag(std::string_view name) const {
  const auto value = query_value(name);
  if (!value || *value == "0" || *value == "false") return false;
  if (*value == "1" || *value == "true" || value->empty()) return true;
  throw Error(ErrorCode::kInvalidRequest, "query parameter " + std::string(name) + " is \"" +
                                              std::string(*value) + "\", expected 0 or 1");
}

int64_t Request::query_int(std::string_view name, int64_t fallback, int64_t low, int64_t high) const {
  const auto value = query_value(name);
  if (!value) return fallback;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (error != std::errc() || end != value->data() + value->size() || number < low || number > high) {
    throw Error(ErrorCode::kInvalidRequest, "query parameter " + std::string(name) + " is \"" +
                                                std::string(*value) + "\", expected a whole number from " +
                                                std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

const std::string& Request::path_parameter(std::string_view name) const {
  const auto found = path_parameters.find(name);
  TM_CHECK(found != path_parameters.end(), "the route has no parameter " + std::string(name));
  return found->second;
}

std::string Request::content_type() const {
  const std::string_view field = headers.get("Content-Type").value_or("");
  return to_lower(trim(field.substr(0, field.find(';'))));
}

bool Request::accepts(std::string_view wanted, std::string_view other) const {
  const auto accept = headers.get("Accept");
  if (!accept) return false;
  return quality(*accept, wanted) > std::max(0.0, quality(*accept, other));
}

std::optional<uint64_t> Response::content_length() const {
  if (const auto* bytes = std::get_if<std::string>(&body)) return bytes->size();
  if (const auto* content = std::get_if<ContentBody>(&body)) return content->length;
  return std::nullopt;
}

Response json_response(std::string text, int status) {
  Response response = text_response(std::move(text), "application/json");
  response.status = status;
  return response;
}

Response text_response(std::string text, std::string_view content_type) {
  Response response;
  response.headers.set("Content-Type", content_type);
  response.body = std::move(text);
  return response;
}

Response empty_response(int status) {
  Response response;
  response.status = status;
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
#define TM_STATUS(number, phrase) \
  case number:                    \
    return phrase;
#include "api/http/statuses.def"
#undef TM_STATUS
  }
  return "Status";
}

}  // namespace tensormill::http
