// POST, GET /v1/models; GET, DELETE /v1/models/{model}; GET /v1/models/{model}/graph
#include <algorithm>

#include "api/endpoints/context.h"
#include "api/http/conditional.h"
#include "api/http/target.h"
#include "api/schema/print.h"
#include "api/schema/reader.h"
#include "runtime/base/names.h"

namespace tensormill::endpoints {
namespace {

std::string format_of(const Context& context, const http::Request& request) {
  std::string format(request.query_value("format").value_or(""));
  const std::vector<std::string> known = context.services.info->info().model_formats;
  if (!format.empty() && std::find(known.begin(), known.end(), format) == known.end()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    throw Error(ErrorCode::kNotSupported,
                "model format \"" + format.substr(0, 100) + "\" is not known, expected one of " + names);
  }
  return format;
}

std::string name_of(const http::Request& request) {
  const auto name = request.query_value("name");
  if (!name) throw Error(ErrorCode::kInvalidRequest, "query parameter name is missing");
  if (is_name(*name)) return std::string(*name);
  throw Error(ErrorCode::kInvalidArgument, "name \"" + std::string(*name) +
                                               "\" is not 1 to 128 letters, digits, dots, dashes and "
                                               "underscores that begin with a letter or digit");
}

}  // namespace

http::Response import_model(const Context& context, http::Request& request) {
  services::ImportOptions options;
  options.name = name_of(request);
  options.format = format_of(context, request);
  options.replace = request.query_flag("replace");
  if (const auto upload = request.query_value("upload")) options.upload = std::string(*upload);
  const services::ImportResult result =
      context.services.models->import_model(options, *request.body, call_context(request));
  http::Response response =
      http::json_response(schema::print(schema::to_json(result.model)), result.created ? 201 : 200);
  response.headers.set("Location", "/v1/models/" + options.name);
  response.headers.set("ETag", "\"" + result.model.id.text() + "\"");
  return response;
}

http::Response list_models(const Context& context, http::Request& request) {
  const auto page = context.services.models->list(page_query(request));
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

http::Response get_model(const Context& context, http::Request& request) {
  const services::ModelInfo model = context.services.models->get(request.path_parameter("model"));
  return http::with_etag(request, model.id.text(),
                         http::json_response(schema::print(schema::to_json(model))));
}

http::Response delete_model(const Context& context, http::Request& request) {
  const std::string& reference = request.path_parameter("model");
  if (request.headers.has("If-Match")) {
    http::check_preconditions(request, context.services.models->get(reference).id.text());
  }
  context.services.models->remove(reference);
  return http::empty_response();
}

http::Response get_model_graph(const Context& context, http::Request& request) {
  const std::string_view stage = request.query_value("stage").value_or("imported");
  if (stage != "imported" && stage != "optimized") {
    throw Error(ErrorCode::kInvalidRequest,
                "query parameter stage is \"" + std::string(stage) + "\", expected imported or optimized");
  }
  return http::json_response(context.services.models->graph_json(
      request.path_parameter("model"),
      stage == "imported" ? services::GraphStage::kImported : services::GraphStage::kOptimized,
      call_context(request)));
}

}  // namespace tensormill::endpoints
