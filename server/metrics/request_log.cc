#include "server/metrics/request_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
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

std::string trace_id_of(std::string_view traceparent) {
  // version "-" trace-id "-" parent-id "-" flags; later versions may add fields.
  constexpr std::array<size_t, 4> kSizes = {2, 32, 16, 2};
  const auto is_hex = [](std::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  };
  std::array<std::string_view, 4> fields;
  std::string_view rest = traceparent;
  for (size_t i = 0; i < fields.size(); ++i) {
    fields[i] = rest.substr(0, kSizes[i]);
    if (fields[i].size() != kSizes[i] || !is_hex(fields[i])) return "";
    rest.remove_prefix(kSizes[i]);
    if (i + 1 == fields.size()) break;
    if (!rest.starts_with('-')) return "";
    rest.remove_prefix(1);
  }
  const bool more_is_fine = fields[0] != "00" && rest.starts_with('-');
  const auto is_zero = [](std::string_view text) {
    return text.find_first_not_of('0') == std::string_view::npos;
  };
  if (fields[0] == "ff" || (!rest.empty() && !more_is_fine) || is_zero(fields[1]) || is_zero(fields[2]))
    return "";
  return std::string(fields[1]);
}

std::string logged_target(std::string_view target) {
  constexpr size_t kMaxTarget = 2048;
  constexpr std::string_view kKeyPrefix = "tm_";
  constexpr size_t kKeyDigits = 64;
  std::string text;
  while (true) {
    const size_t start = target.find(kKeyPrefix);
    if (start == std::string_view::npos) break;
    const size_t first = start + kKeyPrefix.size();
    const size_t end = std::min(target.find_first_not_of("0123456789abcdefABCDEF", first), target.size());
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
