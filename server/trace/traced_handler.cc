#include "server/trace/traced_handler.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "api/http/trace_context.h"

namespace tensormill::trace {
namespace {

int64_t now_ns() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

/// What a Server-Timing field says of a part, in ns; 0 where it says nothing.
int64_t part_ns(std::string_view timing, const std::string& part) {
  const std::string name = part + ";dur=";
  const size_t at = timing.find(name);
  if (at == std::string_view::npos) return 0;
  const double ms = std::strtod(std::string(timing.substr(at + name.size())).c_str(), nullptr);
  return ms > 0 && ms < 1e9 ? static_cast<int64_t>(ms * 1e6) : 0;
}

Span part_of(const Span& whole, const std::string& name, int64_t end_ns, int64_t length_ns) {
  Span part;
  part.trace_id = whole.trace_id;
  part.parent_id = whole.span_id;
  part.span_id = random_hex(8);
  part.name = name;
  part.is_server = false;
  part.end_ns = end_ns;
  part.start_ns = std::max(whole.start_ns, end_ns - length_ns);
  return part;
}

}  // namespace

Span TracedHandler::begin(http::Request& request) const {
  constexpr size_t kTrace = 3, kParent = 36, kFlags = 53;
  Span span;
  const std::string brought(request.headers.get("traceparent").value_or(""));
  const std::string trace = http::trace_id_of(brought);
  // The last digit's last bit: whoever began the trace records it.
  const bool is_recorded = trace.empty()
                               ? settings_.takes(request.target)
                               : (std::strtol(brought.substr(kFlags, 2).c_str(), nullptr, 16) & 1) != 0;
  if (!is_recorded) return span;
  span.trace_id = trace.empty() ? random_hex(16) : brought.substr(kTrace, 32);
  if (!trace.empty()) span.parent_id = brought.substr(kParent, 16);
  span.span_id = random_hex(8);
  span.start_ns = now_ns();
  request.headers.set("traceparent", "00-" + span.trace_id + "-" + span.span_id + "-01");
  return span;
}

void TracedHandler::end(Span span, const http::Request& request, const http::Response& response) const {
  span.end_ns = now_ns();
  span.name = request.method + (request.route.empty() ? "" : " " + request.route);
  span.failed = response.status >= 500;
  span.attributes = {{"http.request.method", request.method},
                     {"http.response.status_code", int64_t{response.status}},
                     {"url.path", request.target.substr(0, std::min<size_t>(request.target.find('?'), 512))},
                     {"tensormill.request_id", request.request_id}};
  if (!request.route.empty()) span.attributes.emplace_back("http.route", request.route);
  for (const char* name : {"deployment", "model"}) {
    const auto found = request.path_parameters.find(name);
    if (found != request.path_parameters.end())
      span.attributes.emplace_back("tensormill.model", found->second);
  }
  const std::string_view version = response.headers.get("X-Deployment-Version").value_or("");
  if (!version.empty()) span.attributes.emplace_back("tensormill.version", std::string(version));
  std::vector<Span> spans;
  const std::string_view timing = response.headers.get("Server-Timing").value_or("");
  const int64_t compute = part_ns(timing, "compute"), queue = part_ns(timing, "queue");
  // What comes after computing, printing the answer, is short: the end of both is taken to be one.
  if (compute > 0) spans.push_back(part_of(span, "compute", span.end_ns, compute));
  if (queue > 0) spans.push_back(part_of(span, "queue", span.end_ns - compute, queue));
  spans.push_back(std::move(span));
  out_.add(std::move(spans));
}

void TracedHandler::answer(http::Request& request,
                           const std::function<void(http::Response)>& respond) noexcept {
  const Span span = begin(request);
  if (span.trace_id.empty()) return inner_.answer(request, respond);
  inner_.answer(request, [this, span, &request, respond](http::Response response) {
    end(span, request, response);
    respond(std::move(response));
  });
}

http::Response TracedHandler::handle(http::Request& request) noexcept {
  const Span span = begin(request);
  http::Response response = inner_.handle(request);
  if (!span.trace_id.empty()) end(span, request, response);
  return response;
}

}  // namespace tensormill::trace
