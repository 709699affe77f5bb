/// A handler whose requests are spans. Thread-safety: as http::Handler.
#pragma once

#include <memory>
#include <string_view>

#include "api/http/handler.h"
#include "server/trace/trace_export.h"
#include "server/trace/trace_settings.h"

namespace tensormill::trace {

class TracedHandler final : public http::Handler {
public:
  /// All outlive it. Of requests that bring no traceparent, those are traced that `settings` takes.
  TracedHandler(http::Handler& inner, TraceExport& out, TraceSettings& settings)
      : inner_(inner), out_(out), settings_(settings) {}
  http::Lane lane(const http::Request& request, std::string_view body) const noexcept override {
    return inner_.lane(request, body);
  }
  void answer(http::Request& request, const std::function<void(http::Response)>& respond) noexcept override;
  http::Response handle(http::Request& request) noexcept override;

private:
  /// The span that begins now; without a trace id where the request is not to be traced. The request's own
  /// traceparent says from then on that it is the parent.
  Span begin(http::Request& request) const;
  void end(Span span, const http::Request& request, const http::Response& response) const;

  http::Handler& inner_;
  TraceExport& out_;
  TraceSettings& settings_;
};

}  // namespace tensormill::trace
