#include "api/http/problem.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/base/hex.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::http {
namespace {

/// Messages quote what clients sent, which need not be UTF-8; JSON must be.
std::string printable(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string ascii;
  for (const char c : text) ascii += static_cast<unsigned char>(c) < 0x80 ? c : '?';
  return ascii;
}

Json problem_json(const Error& error, int status, std::string_view request_id) {
  const ErrorCodeInfo& row = error_code_info(error.code());
  Json problem = Json::object();
  if (!error.extra_json().empty()) {
    const Json extra = parse_json(error.extra_json());
    TM_CHECK(extra.is_object(), "extra JSON of an error is no object");
    problem = extra;
  }
  problem["type"] = "/docs#" + std::string(row.name);
  problem["title"] = std::string(row.when);
  problem["status"] = status;
  problem["detail"] = printable(error.message());
  problem["code"] = std::string(row.name);
  problem["request_id"] = std::string(request_id);
  for (const ErrorDetail& detail : error.details()) {
    problem["errors"].push_back(
        {{"pointer", printable(detail.pointer)}, {"detail", printable(detail.detail)}});
  }
  return problem;
}

}  // namespace

Dialect dialect_of(std::string_view target) {
  return target == "/v2" || target.starts_with("/v2/") || target.starts_with("/v2?") ? Dialect::kInference
                                                                                     : Dialect::kNative;
}

int problem_status(ErrorCode code, Dialect dialect) {
  const ErrorCodeInfo& row = error_code_info(code);
  if (dialect == Dialect::kNative) return row.http_status;
  if (row.exit_code == 4) return 501;
  return row.http_status == 415 || row.http_status == 422 ? 400 : row.http_status;
}

Response problem_response(const Error& error, std::string_view request_id, Dialect dialect) {
  const int status = problem_status(error.code(), dialect);
  Json problem = problem_json(error, status, request_id);
  if (dialect == Dialect::kInference) problem["error"] = problem["detail"];
  Response response = text_response(problem.dump() + "\n", "application/problem+json");
  response.status = status;
  response.headers.set("Cache-Control", "no-store");
  if (status == 503 || status == 429) response.headers.set("Retry-After", "1");
  if (status == 401) response.headers.set("WWW-Authenticate", "Bearer");
  return response;
}

Error error_of_problem(const Json& problem) {
  std::vector<ErrorDetail> details;
  if (problem.contains("errors")) {
    for (const Json& one : problem.at("errors")) {
      details.push_back({one.at("pointer").get<std::string>(), one.at("detail").get<std::string>()});
    }
  }
  return {error_code_from_name(problem.at("code").get<std::string>()),
          problem.at("detail").get<std::string>(), std::move(details)};
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string make_request_id() {
  // Not std::random_device: it asks the CPU for its features each time, which a virtual machine makes slow.
  std::array<unsigned char, 16> bytes{};
  TM_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "getrandom");
  return hex_text(bytes);
}

std::string request_id_for(const Headers& headers) {
  const auto given = headers.get("X-Request-Id");
  return given && is_request_id(*given) ? std::string(*given) : make_request_id();
}

}  // namespace tensormill::http
