// GET /openapi.json: OpenAPI 3.1, made from routes.def, query.def and error_codes.def
#include <map>

#include "api/endpoints/context.h"
#include "api/http/router.h"
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
                    {"required", name == "name"},
                    {"schema", {{"type", query.type}}}});
  }
  return list;
}

Json request_body(BodyKind kind) {
  const Json binary = {{"schema", {{"type", "string"}, {"format", "binary"}}}};
  switch (kind) {
    case BodyKind::kNone:
      return nullptr;
    case BodyKind::kJson:
      return {{"required", true}, {"content", {{"application/json", {{"schema", {{"type", "object"}}}}}}}};
    case BodyKind::kControl:
      return {{"content", {{"application/json", {{"schema", {{"type", "object"}}}}}}}};
    case BodyKind::kModel:
      return {{"content", {{"application/octet-stream", binary}}}};
    case BodyKind::kTensors:
      return {{"content", {{"application/x-npz", binary}}}};
    case BodyKind::kInference:
      return {
          {"required", true},
          {"content",
           {{"application/json", {{"schema", {{"type", "object"}}}}}, {"application/octet-stream", binary}}}};
    case BodyKind::kRecords:
      return {{"required", true}, {"content", {{"application/x-ndjson", binary}}}};
    case BodyKind::kImage:
      return {{"required", true}, {"content", {{"image/jpeg", binary}, {"image/png", binary}}}};
  }
  return nullptr;
}

Json operation(const RouteRow& row) {
  Json success = {{"description", row.answer.empty() ? "done" : "the answer"}};
  if (!row.answer.empty()) success["content"][std::string(row.answer)] = Json::object();
  Json json = {{"operationId", row.name},
               {"summary", row.summary},
               {"parameters", parameters(row)},
               {"responses",
                {{"2XX", std::move(success)}, {"default", {{"$ref", "#/components/responses/Problem"}}}}}};
  if (const Json body = request_body(row.body); !body.is_null()) json["requestBody"] = body;
  if (row.scope == Scope::kPublic) {
    json["security"] = Json::array();
  } else {
    json["x-scope"] = scope_name(row.scope);
  }
  return json;
}

Json problem_schema() {
  Json codes = Json::array();
  for (const ErrorCodeInfo& row : all_error_codes()) codes.push_back(row.name);
  const Json string = {{"type", "string"}};
  const Json detail = {{"type", "object"}, {"properties", {{"pointer", string}, {"detail", string}}}};
  return {{"type", "object"},
          {"required", {"type", "title", "status", "detail", "code", "request_id"}},
          {"properties",
           {{"type", string},
            {"title", string},
            {"status", {{"type", "integer"}}},
            {"detail", string},
            {"code", {{"type", "string"}, {"enum", codes}}},
            {"request_id", string},
            {"errors", {{"type", "array"}, {"items", detail}}}}}};
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
  document["components"]["schemas"]["Problem"] = problem_schema();
  document["components"]["responses"]["Problem"] = {
      {"description", "what went wrong"},
      {"content", {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
  document["components"]["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  return http::json_response(schema::print(document));
}

}  // namespace tensormill::endpoints
