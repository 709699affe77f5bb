// GET, POST /v1/tuning-records; GET, DELETE /v1/tuning-records/{set}
#include "api/endpoints/context.h"
#include "api/http/conditional.h"
#include "api/http/tensor_body.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

http::Response lines_response(std::shared_ptr<http::ResponseStream> lines) {
  http::Response response;
  response.headers.set("Content-Type", "application/x-ndjson");
  response.body = std::move(lines);
  return response;
}

}  // namespace

http::Response import_tuning_records(const Context& context, http::Request& request) {
  const bool foreign = request.query_flag("foreign");
  const http::TensorBody lines = http::read_tensor_body(*request.body, request.memory.get());
  // Each line is kept as it came and as what is read from it.
  request.memory->take(3 * uint64_t{lines.size});
  const services::TuningImport done = context.services.tuning->import_records(lines.text(), foreign);
  http::Response response = http::json_response(
      schema::print(
          {{"id", done.id.text()}, {"records", done.records}, {"added", done.added}, {"tasks", done.tasks}}),
      done.created ? 201 : 200);
  response.headers.set("Location", "/v1/tuning-records/" + done.id.text());
  response.headers.set("ETag", "\"" + done.id.text() + "\"");
  return response;
}

http::Response list_tuning_records(const Context& context, http::Request& request) {
  services::TuningQuery query;
  query.model = request.query_value("model").value_or("");
  query.target = request.query_value("target").value_or("");
  return lines_response(context.services.tuning->list(query));
}

http::Response get_tuning_records(const Context& context, http::Request& request) {
  const std::string& id = request.path_parameter("records");
  return http::with_etag(request, id, lines_response(context.services.tuning->get(id)));
}

http::Response delete_tuning_records(const Context& context, http::Request& request) {
  const std::string& id = request.path_parameter("records");
  if (request.headers.has("If-Match")) http::check_preconditions(request, id);
  context.services.tuning->remove(id);
  return http::empty_response();
}

}  // namespace tensormill::endpoints
