#include "server/metrics/request_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/json.h"

namespace tensormill::metrics {

struct RequestLog::Sink {
  spdlog::logger logger{"tensormill", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  void write(spdlog::level::level_enum level, const std::string& message, Json fields) {
    if (!logger.should_log(level)) return;
    fields["msg"] = message;
    std::string text = fields.dump(-1, ' ', false, Json::error_handler_t::replace);
    // The object's own braces come from the pattern.
    logger.log(level, spdlog::string_view_t(text.data() + 1, text.size() - 2));
  }
};

RequestLog::RequestLog(const std::string& level) : sink_(std::make_unique<Sink>()) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off) {
    throw Error(ErrorCode::kUsage,
                "log_level is \"" + level + "\", expected trace, debug, info, warn or error");
  }
  sink_->logger.set_level(parsed);
  sink_->logger.set_pattern(R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})",
                            spdlog::pattern_time_type::utc);
  sink_->logger.flush_on(spdlog::level::info);
}

RequestLog::~RequestLog() = default;

std::string logged_target(std::string_view target) {
  constexpr size_t kMaxTarget = 2048;
  constexpr std::string_view kKeyPrefix = "tm_";
  constexpr size_t kKeyDigits = 64;
  std::string text;
  while (true) {
    const size_t start = target.find(kKeyPrefix);
    if (start == std::string_view::npos) break;
    const size_t first = start + kKeyPrefix.size();
    size_t end = first;
    while (end < target.size() && hex_digit_of_any_case(target[end]) >= 0) ++end;
    text += target.substr(0, first);
    // Half a key is not told either.
    text += end - first >= kKeyDigits / 4 ? "..." : std::string(target.substr(first, end - first));
    target.remove_prefix(end);
  }
  text += target;
  if (text.size() > kMaxTarget) text = text.substr(0, kMaxTarget) + "...";
  return text;
}

void RequestLog::answered(const AnsweredRequest& request) noexcept {
  const auto level = request.status >= 500 ? spdlog::level::err : spdlog::level::info;
  if (!sink_->logger.should_log(level)) return;
  Json fields = {{"request_id", request.request_id}, {"method", request.method}, {"target", request.target},
                 {"route", request.route},           {"caller", request.caller}, {"peer", request.peer},
                 {"client", request.client},         {"status", request.status}, {"ms", request.ms}};
  if (!request.trace_id.empty()) fields["trace_id"] = request.trace_id;
  sink_->write(level, "answered", std::move(fields));
}

void RequestLog::fail(const std::string& message,
                      const std::vector<std::pair<std::string, std::string>>& fields) noexcept {
  Json json = Json::object();
  for (const auto& [name, value] : fields) json[name] = value;
  sink_->write(spdlog::level::err, message, std::move(json));
}

void RequestLog::note(const std::string& message,
                      const std::vector<std::pair<std::string, std::string>>& fields) noexcept {
  Json json = Json::object();
  for (const auto& [name, value] : fields) json[name] = value;
  sink_->write(spdlog::level::info, message, std::move(json));
}

}  // namespace tensormill::metrics
