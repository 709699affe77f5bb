// Workers on other machines: POST /v1/workers/lease, /v1/workers/leases/{lease}/…; GET /v1/workers …
#include "api/endpoints/context.h"
#include "api/http/conditional.h"
#include "api/schema/print.h"
#include "api/schema/requests.h"

namespace tensormill::endpoints {
namespace {

http::Response worker_response(const services::WorkerInfo& worker) {
  return http::json_response(schema::print(schema::to_json(worker)));
}

}  // namespace

http::Response lease_work(const Context& context, http::Request& request) {
  using Found = std::optional<services::WorkerLease>;
  const services::WorkerOffer offer = schema::read_worker_offer(json_body(request));
  if (request.ends_with_client) request.ends_with_client();
  return later<Found>(
      [&context, &request, offer](services::Done<Found> done) {
        context.services.workers->lease(offer, call_context(request), std::move(done));
      },
      [&context, spoken = services::common_protocol(offer)](const Found& lease) {
        http::Response response = http::json_response(
            schema::print({{"protocol", spoken}, {"lease", lease ? schema::to_json(*lease) : Json()}}));
        if (lease) {
          response.undelivered = [workers = context.services.workers, id = lease->id] {
            workers->take_back(id);
          };
        }
        return response;
      });
}

http::Response leave_work(const Context& context, http::Request& request) {
  context.services.workers->leave(schema::read_worker_leave(json_body(request)), call_context(request));
  return http::empty_response();
}

http::Response beat_lease(const Context& context, http::Request& request) {
  const services::WorkerBeat beat = schema::read_worker_beat(json_body(request));
  const services::WorkerBeatAnswer answer =
      context.services.workers->beat(request.path_parameter("lease"), beat, call_context(request));
  return http::json_response(
      schema::print({{"held", answer.held}, {"cancel", answer.cancel}, {"log_bytes", answer.log_bytes}}));
}

http::Response get_lease_blob(const Context& context, http::Request& request) {
  const std::string& digest = request.path_parameter("blob");
  return http::serve_content(
      request, context.services.workers->blob(request.path_parameter("lease"), digest, call_context(request)),
      digest, "application/octet-stream");
}

http::Response settle_lease(const Context& context, http::Request& request) {
  const std::vector<std::string> kernels = schema::read_worker_kernels(json_body(request));
  return http::json_response(
      context.services.workers->tuned(request.path_parameter("lease"), kernels, call_context(request)));
}

http::Response finish_lease(const Context& context, http::Request& request) {
  context.services.workers->finish(request.path_parameter("lease"), *request.body, call_context(request));
  return http::empty_response();
}

http::Response import_results(const Context& context, http::Request& request) {
  context.services.workers->import_results(*request.body, call_context(request));
  return http::empty_response();
}

http::Response list_workers(const Context& context, http::Request& request) {
  const auto page = context.services.workers->list(page_query(request));
  return page_response(request, schema::print(schema::page_json(page)), page.next_cursor);
}

http::Response get_worker(const Context& context, http::Request& request) {
  return worker_response(context.services.workers->get(request.path_parameter("worker")));
}

http::Response drain_worker(const Context& context, http::Request& request) {
  return worker_response(context.services.workers->set_state(request.path_parameter("worker"), "drained"));
}

http::Response resume_worker(const Context& context, http::Request& request) {
  return worker_response(context.services.workers->set_state(request.path_parameter("worker"), "active"));
}

http::Response revoke_worker(const Context& context, http::Request& request) {
  context.services.workers->set_state(request.path_parameter("worker"), "revoked");
  return http::empty_response();
}

}  // namespace tensormill::endpoints
