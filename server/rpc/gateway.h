/// Calls as requests of the REST interface. Thread-safety: all methods from many threads.
#pragma once

#include <memory>

#include "api/http/client_address.h"
#include "api/http/handler.h"
#include "api/services/services.h"
#include "runtime/base/memory_budget.h"
#include "server/rpc/listener.h"
#include "server/transport/executor.h"

namespace tensormill::rpc {

struct GatewayOptions {
  int workers = 8;  ///< threads that read messages and run handlers
  int queue = 64;   ///< calls that wait for one
};

/// `api` and `services` must outlive it. Its calls are over before it goes.
class Gateway : public Handler {
public:
  Gateway(http::Handler& api, const services::Services& services, std::shared_ptr<MemoryBudget> memory,
          const GatewayOptions& options);
  bool may_send(const Fields& fields) override;
  bool reserve(uint64_t bytes, std::shared_ptr<void>& hold, Answer& refusal) override;
  bool submit(std::function<void()> task) override;
  bool is_quick(const std::string& target) const noexcept override;
  void answer(Request request, std::function<void(Answer)> respond) noexcept override;
  bool ready() const noexcept override;
  /// As transport::Executor::stop.
  bool stop(std::chrono::steady_clock::time_point end) { return workers_.stop(end); }

private:
  struct Turn;
  http::Handler& api_;
  const services::Services services_;
  const std::shared_ptr<MemoryBudget> memory_;
  const http::AddressSet loopback_{{"127.0.0.0/8", "::1"}};
  transport::Executor workers_;
};

}  // namespace tensormill::rpc
