#include "api/endpoints/direct.h"

#include <cstdint>

namespace tensormill::endpoints {
namespace {

/// Whether a member's head with `signature` names a method at `offset`: 0 is a member as it is.
bool has_method(std::string_view body, std::string_view signature, size_t offset) {
  for (size_t at = body.find(signature); at != std::string_view::npos; at = body.find(signature, at + 1)) {
    const bool whole = body.size() - at >= offset + 2;
    if (!whole || body[at + offset] != 0 || body[at + offset + 1] != 0) return true;
  }
  return false;
}

/// Whether a ZIP has a compressed member: looked for in all bytes, wherever a reader would begin.
bool unfolds(std::string_view body) {
  constexpr std::string_view kLocalHead = "PK\x03\x04";
  constexpr std::string_view kCentralHead = "PK\x01\x02";
  return has_method(body, kLocalHead, 8) || has_method(body, kCentralHead, 10);
}

}  // namespace

std::string inferred_deployment(std::string_view target) {
  constexpr std::string_view kInfer = "/infer";
  for (const std::string_view prefix : {"/v2/models/", "/v1/deployments/"}) {
    if (!target.starts_with(prefix) || !target.ends_with(kInfer)) continue;
    if (target.size() < prefix.size() + kInfer.size()) continue;
    const std::string_view name = target.substr(prefix.size(), target.size() - prefix.size() - kInfer.size());
    if (name.find_first_of("/?%") == std::string_view::npos) return std::string(name);
  }
  return "";
}

std::string direct_inference(const http::Request& request, std::string_view body) {
  const bool coded = request.headers.has("Content-Encoding");
  if (coded || body.size() > kMaxDirectBody || unfolds(body)) return "";
  return inferred_deployment(request.target);
}

bool is_bulk(const http::Request& request, std::string_view body, uint64_t ordinary) {
  const std::string_view target = request.target;
  const std::string_view path = target.substr(0, target.find('?'));
  if (path == "/v1/gc") return true;
  const bool loads = (request.method == "PUT" && path.starts_with("/v1/deployments/")) ||
                     path.starts_with("/v2/repository/");
  if (loads) return false;
  // What frames the tensors takes some more.
  const uint64_t most = kMaxDirectBody + ordinary;
  return request.body->length().value_or(UINT64_MAX) > most || request.headers.has("Content-Encoding") ||
         unfolds(body);
}

}  // namespace tensormill::endpoints
