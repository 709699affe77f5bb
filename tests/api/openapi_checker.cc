#include "tests/api/openapi_checker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>

#include "api/http/router.h"

namespace tensormill::testing_api {
namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

bool is_parameter(const std::string& segment) { return segment.starts_with('{'); }

}  // namespace

std::vector<std::string> OpenApiChecker::mismatches(const Json& value, const Json& schema) const {
  std::vector<std::string> found;
  check(value, schema, "", found);
  return found;
}

const Json& OpenApiChecker::resolved(const Json& schema) const {
  if (!schema.contains("$ref")) return schema;
  return document_.at(Json::json_pointer(schema.at("$ref").get<std::string>().substr(1)));
}

void OpenApiChecker::check(const Json& value, const Json& given, const std::string& at,
                           std::vector<std::string>& found) const {
  const Json& schema = resolved(given);
  if (schema.contains("anyOf")) {
    const Json& choices = schema.at("anyOf");
    const bool fits = std::any_of(choices.begin(), choices.end(),
                                  [&](const Json& choice) { return mismatches(value, choice).empty(); });
    if (!fits) found.push_back(at + ": " + value.dump().substr(0, 300) + " fits none of " + choices.dump());
    return;
  }
  const auto refuse = [&](const std::string& why) {
    found.push_back(at + ": " + value.dump().substr(0, 300) + " " + why);
  };
  if (schema.contains("const") && value != schema.at("const")) refuse("is not " + schema.at("const").dump());
  if (schema.contains("enum") &&
      std::find(schema.at("enum").begin(), schema.at("enum").end(), value) == schema.at("enum").end())
    refuse("is none of " + schema.at("enum").dump());
  if (!schema.contains("type")) return;
  const auto type = schema.at("type").get<std::string>();
  if (!has_type(value, type)) return refuse("is no " + type);
  if (schema.contains("pattern") &&
      !std::regex_search(value.get<std::string>(), std::regex(schema.at("pattern").get<std::string>())))
    refuse("does not match " + schema.at("pattern").dump());
  if (type == "array") {
    for (size_t i = 0; i < value.size(); ++i)
      check(value[i], schema.at("items"), at + "/" + std::to_string(i), found);
  }
  if (type == "object") check_object(value, schema, at, found);
}

void OpenApiChecker::check_object(const Json& value, const Json& schema, const std::string& at,
                                  std::vector<std::string>& found) const {
  for (const Json& name : schema.at("required")) {
    if (!value.contains(name.get<std::string>())) found.push_back(at + ": has no " + name.dump());
  }
  for (const auto& [name, member] : value.items()) {
    if (schema.contains("patternProperties")) {
      check(member, schema.at("patternProperties").at("^"), at + "/" + name, found);
    } else if (const Json& known = schema.at("properties"); known.contains(name)) {
      check(member, known.at(name), at + "/" + name, found);
    } else {
      found.push_back(at + ": has a member \"" + name + "\" that the schema does not know");
    }
  }
}

/// Null when no path fits. A path without parameters is nearer than one with some.
const Json* OpenApiChecker::operation_of(const std::string& method, const std::string& target) const {
  const std::vector<std::string> asked = http::split_path(target.substr(0, target.find('?')));
  const Json* best = nullptr;
  std::ptrdiff_t fewest = 1000;
  for (const auto& [path, methods] : document_.at("paths").items()) {
    const std::vector<std::string> segments = http::split_path(path);
    const bool fits = std::equal(segments.begin(), segments.end(), asked.begin(), asked.end(),
                                 [](const auto& mine, const auto& its) {
                                   return mine == its || (is_parameter(mine) && !its.empty());
                                 });
    const auto parameters = std::count_if(segments.begin(), segments.end(), is_parameter);
    if (!fits || parameters >= fewest) continue;
    std::string name = method == "HEAD" ? "get" : method;
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    fewest = parameters;
    best = methods.contains(name) ? &methods.at(name) : nullptr;
  }
  return best;
}

const Json& OpenApiChecker::response_of(const Json* operation, int status) const {
  const Json& problem = document_.at("components").at("responses").at("Problem");
  if (operation == nullptr) return problem;
  const Json& responses = operation->at("responses");
  const std::string exact = std::to_string(status);
  if (responses.contains(exact)) return responses.at(exact);
  return status / 100 == 2 ? responses.at("2XX") : problem;
}

std::vector<std::string> OpenApiChecker::problems_of(const std::string& method, const std::string& target,
                                                     int status, const http::Headers& headers,
                                                     const std::string& body) const {
  const Json* operation = operation_of(method, target);
  if (method == "OPTIONS" && status == 204) return {};
  if (operation == nullptr && status < 400)
    return {"an answer " + std::to_string(status) + " of no endpoint"};
  const Json& response = response_of(operation, status);
  std::string type(headers.get("Content-Type").value_or(""));
  type = type.substr(0, type.find(';'));
  if (type == "application/problem+json") note_code(parse_json(body).at("code").get<std::string>());
  if (!response.contains("content")) {
    return body.empty() ? std::vector<std::string>{} : std::vector<std::string>{"a body where none belongs"};
  }
  if (status == 304) return {"304 of an endpoint without a validator"};
  if (!response.at("content").contains(type)) return {"a body of type \"" + type + "\""};
  const Json& content = response.at("content").at(type);
  const bool whole = method != "HEAD" && status != 206 && !headers.has("Content-Encoding");
  return content.contains("schema") && whole ? mismatches(parse_json(body, 256), content.at("schema"))
                                             : std::vector<std::string>{};
}

void note_code(const std::string& code) {
  const char* folder = std::getenv("TEST_SEEN_CODES");
  if (folder == nullptr) return;
  std::ofstream file(std::string(folder) + "/" + std::to_string(::getpid()), std::ios::app);
  file << code << "\n";
}

}  // namespace tensormill::testing_api
