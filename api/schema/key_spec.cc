// POST /v1/keys
#include "api/http/scopes.h"
#include "api/http/time.h"
#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"

namespace tensormill::schema {
namespace {

constexpr size_t kMaxScopes = 100;

void check_scopes(const std::vector<std::string>& scopes, Problems& problems) {
  if (scopes.empty()) problems.add("/scopes", "is empty: a key needs a scope");
  if (scopes.size() > kMaxScopes) problems.add("/scopes", "has more than 100 scopes");
  for (size_t i = 0; i < scopes.size(); ++i) {
    const std::string problem = http::scope_problem(scopes[i]);
    if (!problem.empty())
      problems.add(pointer_to("/scopes", std::to_string(i)), "\"" + scopes[i] + "\" " + problem);
  }
}

}  // namespace

services::NewKey read_key_spec(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::NewKey key;
  body.required("name", key.name);
  // What requests without keys are called must not be a key's name as well: it would own what they left.
  if (!key.name.empty() && (!is_name(key.name) || key.name == services::kLocalCaller))
    problems.add("/name", "is \"" + key.name + "\", which is no name of a key");
  body.optional("scopes", key.scopes);
  check_scopes(key.scopes, problems);
  std::optional<std::string> end;
  body.nullable("expires_at", end);
  if (end) {
    const auto ms = http::parse_timestamp(*end);
    if (ms) key.expires_at = services::Timestamp{*ms};
    if (!ms) problems.add("/expires_at", "is \"" + *end + "\", which is no time as 2026-01-31T12:00:00Z");
  }
  body.finish();
  problems.throw_if_any();
  return key;
}

}  // namespace tensormill::schema
