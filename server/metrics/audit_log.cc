#include "server/metrics/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "api/http/time.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::metrics {

namespace {

int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

AuditLog::AuditLog(const std::string& path) {
  if (path.empty()) return;
  file_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.valid()) {
    throw Error(ErrorCode::kUsage,
                "audit_log " + path + " cannot be written: " + std::generic_category().message(errno));
  }
}

bool AuditLog::is_audited(const AnsweredRequest& request) {
  if (request.status == 401 || request.status == 403) return true;
  if (request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS") return false;
  for (const std::string_view runs :
       {"/infer", "/run", "/classify", "/workers/lease", "/heartbeat", "/kernels"}) {
    if (request.route.ends_with(runs)) return false;
  }
  return true;
}

bool AuditLog::answered(const AnsweredRequest& request) noexcept {
  if (!file_.valid() || !is_audited(request)) return true;
  const Json line = {{"ts", http::format_timestamp(now_ms())},
                     {"request_id", request.request_id},
                     {"caller", request.caller},
                     {"peer", request.peer},
                     {"client", request.client},
                     {"method", request.method},
                     {"target", request.target},
                     {"status", request.status}};
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return ::write(file_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace tensormill::metrics
