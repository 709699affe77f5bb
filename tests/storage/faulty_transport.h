/// A transport whose n-th exchange goes wrong in a way that is chosen, every time in the same way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/s3/http_transport.h"

namespace tensormill::storage {

enum class NetworkFault {
  kNotSent,   ///< the request never arrives
  kLost,      ///< it is done, and its answer never arrives
  kCut,       ///< a part of the answer's body arrives
  kBusy,      ///< 503, and it is not done
  kInternal,  ///< it is done, and the answer is 500
};

/// What the tests say and see; shared, as the transport belongs to a store.
struct NetworkScript {
  std::atomic<uint64_t> exchanges{0};
  std::atomic<uint64_t> first_fault{0};  ///< counts from 1; 0: none
  std::atomic<uint64_t> faults{1};       ///< in a row
  NetworkFault fault = NetworkFault::kNotSent;
  std::mutex mutex;
  std::vector<std::string> requests;  ///< "GET url range"

  /// The `first`-th exchange from here on fails, and `count` in all.
  void fail(uint64_t first, uint64_t count, NetworkFault kind) {
    fault = kind;
    faults = count;
    first_fault = first == 0 ? 0 : exchanges + first;
  }
};

class FaultyTransport final : public HttpTransport {
public:
  explicit FaultyTransport(NetworkScript& script) : script_(script), inner_(load_http_transport()) {}

  HttpAnswer send(const HttpExchange& exchange, const HttpSink& sink) override {
    const uint64_t number = ++script_.exchanges;
    note(exchange);
    const uint64_t first = script_.first_fault;
    if (first == 0 || number < first || number >= first + script_.faults) return inner_->send(exchange, sink);
    switch (script_.fault) {
      case NetworkFault::kNotSent:
        return lost("connection refused");
      case NetworkFault::kBusy:
        return {503, "", {}, "<Error><Code>SlowDown</Code></Error>"};
      case NetworkFault::kInternal:
        inner_->send(exchange, {});
        return {500, "", {}, "<html>a proxy's page</html>"};
      case NetworkFault::kLost:
        inner_->send(exchange, {});
        return lost("connection reset");
      case NetworkFault::kCut:
        break;
    }
    return cut(exchange, sink);
  }

private:
  static HttpAnswer lost(const char* why) {
    HttpAnswer answer;
    answer.failure = why;
    return answer;
  }

  void note(const HttpExchange& exchange) {
    std::string text = exchange.method + " " + exchange.url;
    for (const auto& [name, value] : exchange.headers) {
      if (name == "range") text += " " + value;
    }
    const std::lock_guard lock(script_.mutex);
    script_.requests.push_back(std::move(text));
  }

  HttpAnswer cut(const HttpExchange& exchange, const HttpSink& sink) {
    std::string body;
    HttpAnswer answer = inner_->send(exchange, [&](int, std::string_view bytes) {
      body += bytes;
      return true;
    });
    if (sink && answer.status / 100 == 2)
      sink(answer.status, std::string_view(body).substr(0, body.size() / 2));
    answer.status = 0;
    answer.failure = "the answer is cut off";
    return answer;
  }

  NetworkScript& script_;
  std::unique_ptr<HttpTransport> inner_;
};

}  // namespace tensormill::storage
