// GET /openapi.json: OpenAPI 3.1, made from routes.def, query.def, schemas.def and error_codes.def
#include <map>

#include "api/endpoints/context.h"
#include "api/http/router.h"
#include "api/schema/openapi_schemas.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

struct QueryRow {
  std::string_view type;
  std::string_view meaning;
};

const std::map<std::string_view, QueryRow>& query_rows() {
  static const std::map<std::string_view, QueryRow> rows = {
#define TM_QUERY(name, type, meaning) {name, {type, meaning}},
#include "api/endpoints/query.def"
#undef TM_QUERY
  };
  return rows;
}

Json parameters(const RouteRow& row) {
  Json list = Json::array();
  for (const std::string& segment : http::split_path(row.path)) {
    if (!segment.starts_with('{')) continue;
    list.push_back({{"name", segment.substr(1, segment.size() - 2)},
                    {"in", "path"},
                    {"required", true},
                    {"schema", {{"type", "string"}}}});
  }
  for (const std::string_view name : row.query) {
    const QueryRow& query = query_rows().at(name);
    list.push_back({{"name", name},
                    {"in", "query"},
                    {"description", query.meaning},
                    // What is uploaded needs one; a bundle has one of its own.
                    {"required", name == "name" && row.method == "POST"},
                    {"schema", {{"type", query.type}}}});
  }
  if (takes_idempotency_key(row)) {
    list.push_back({{"name", "Idempotency-Key"},
                    {"in", "header"},
                    {"description", "sent again with it within 24 h, the request changes nothing"},
                    {"required", false},
                    {"schema", {{"type", "string"}, {"minLength", 1}, {"maxLength", 128}}}});
  }
  return list;
}

/// `answer` is a media type or, for JSON, a schema of schemas.def.
void add_content(std::string_view answer, Json& content) {
  if (answer.find('/') != std::string_view::npos) {
    content[std::string(answer)] = Json::object();
  } else {
    content["application/json"] = {{"schema", schema::schema_of(answer)}};
  }
}

/// The media types that are asked for; the endpoint takes more (api.cc).
std::vector<std::string_view> binary_types(BodyKind kind) {
  switch (kind) {
    case BodyKind::kNone:
    case BodyKind::kJson:
    case BodyKind::kControl:
      return {};
    case BodyKind::kModel:
    case BodyKind::kInference:
      return {"application/octet-stream"};
    case BodyKind::kTensors:
      return {"application/x-npz"};
    case BodyKind::kRecords:
      return {"application/x-ndjson"};
    case BodyKind::kImage:
      return {"image/jpeg", "image/png"};
  }
  return {};
}

/// Null where a body is left unread.
Json request_body(const RouteRow& row) {
  Json content = Json::object();
  if (!row.request.empty()) add_content(row.request, content);
  for (const std::string_view type : binary_types(row.body)) {
    content[std::string(type)] = {{"schema", {{"type", "string"}, {"format", "binary"}}}};
  }
  if (content.empty()) return nullptr;
  const bool required =
      row.body != BodyKind::kModel && row.body != BodyKind::kTensors && row.body != BodyKind::kControl;
  return {{"required", required}, {"content", std::move(content)}};
}

Json responses(const RouteRow& row) {
  Json list = {{"default", {{"$ref", "#/components/responses/Problem"}}},
               {"2XX", {{"description", row.answers.empty() ? "done" : "the answer"}}}};
  for (const std::string_view answer : row.answers) {
    const size_t equals = answer.find('=');
    if (equals == std::string_view::npos) {
      add_content(answer, list["2XX"]["content"]);
      continue;
    }
    Json& response = list[std::string(answer.substr(0, equals))];
    const std::string_view body = answer.substr(equals + 1);
    response["description"] = body.empty() ? "unchanged" : "not now";
    if (!body.empty()) add_content(body, response["content"]);
  }
  return list;
}

Json operation(const RouteRow& row) {
  Json json = {{"operationId", row.name},
               {"summary", row.summary},
               {"parameters", parameters(row)},
               {"responses", responses(row)}};
  if (Json body = request_body(row); !body.is_null()) json["requestBody"] = std::move(body);
  if (row.scope == Scope::kPublic) {
    json["security"] = Json::array();
  } else {
    json["x-scope"] = scope_name(row.scope);
  }
  return json;
}

}  // namespace

http::Response get_openapi(const Context& context, http::Request&) {
  Json document = {{"openapi", "3.1.0"},
                   {"info", {{"title", "TensorMill"}, {"version", context.options.version}}},
                   {"security", Json::array({Json{{"key", Json::array()}}, Json::object()})}};
  for (const RouteRow& row : all_routes()) {
    std::string method(row.method);
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    document["paths"][std::string(row.path)][method] = operation(row);
  }
  document["components"]["schemas"] = schema::all_schemas();
  document["components"]["responses"]["Problem"] = {
      {"description", "what went wrong"},
      {"content", {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
  document["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  return http::json_response(schema::print(document));
}

}  // namespace tensormill::endpoints
