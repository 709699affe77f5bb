/// Holds answers against the document that /openapi.json serves.
#pragma once

#include <string>
#include <vector>

#include "api/http/message.h"
#include "runtime/base/json.h"

namespace tensormill::testing_api {

class OpenApiChecker {
public:
  explicit OpenApiChecker(Json document) : document_(std::move(document)) {}

  /// What the document does not allow in an answer; nothing for one that fits.
  std::vector<std::string> problems_of(const std::string& method, const std::string& target, int status,
                                       const http::Headers& headers, const std::string& body) const;
  /// What `schema` (type, enum, const, pattern, objects, arrays, anyOf, $ref) does not allow in `value`.
  std::vector<std::string> mismatches(const Json& value, const Json& schema) const;

private:
  const Json* operation_of(const std::string& method, const std::string& target) const;
  const Json& response_of(const Json* operation, int status) const;
  const Json& resolved(const Json& schema) const;
  void check(const Json& value, const Json& schema, const std::string& at,
             std::vector<std::string>& found) const;
  void check_object(const Json& value, const Json& schema, const std::string& at,
                    std::vector<std::string>& found) const;

  Json document_;
};

/// Notes that `code` was in an answer, for the run's list of the codes that were seen.
void note_code(const std::string& code);

}  // namespace tensormill::testing_api
