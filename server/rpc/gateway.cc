#include "server/rpc/gateway.h"

#include <charconv>
#include <exception>
#include <mutex>

#include "api/http/problem.h"
#include "api/http/security.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/rpc/codes.h"

namespace tensormill::rpc {
namespace {

constexpr std::string_view kHeaderLength = "Inference-Header-Content-Length";

/// What holds memory of a call, one after another.
struct Hold {
  Hold(std::shared_ptr<void> held, std::shared_ptr<MemoryBudget> budget)
      : before(std::move(held)), share(std::move(budget)) {}
  std::shared_ptr<void> before;
  MemoryShare share;
};

void fail(Answer& answer, ErrorCode code, std::string message) {
  answer.code = static_cast<int>(rpc_code(code));
  answer.message = std::move(message);
}

size_t head_size(const http::Headers& headers) {
  size_t size = 0;
  const std::string_view text = headers.get(kHeaderLength).value_or("");
  std::from_chars(text.data(), text.data() + text.size(), size);
  return size;
}

/// An error's document as metadata, but for what the status says already: with both, heads stay below what
/// clients take.
std::string problem_metadata(Json problem) {
  for (const char* name : {"type", "title", "detail", "error"}) problem.erase(name);
  constexpr size_t kMost = 2048;
  std::string text = problem.dump();
  if (text.size() <= kMost) return text;
  return Json{{"code", problem.at("code")},
              {"status", problem.at("status")},
              {"request_id", problem.at("request_id")}}
      .dump();
}

/// Errors of /v2 have their code and their text in JSON; the states of servers and models are a status alone.
Answer answer_of(http::Response response) {
  Answer answer;
  answer.status = response.status;
  for (const char* name : {"x-request-id", "retry-after"}) {
    if (const auto value = response.headers.get(name)) answer.trailing.emplace_back(name, *value);
  }
  answer.head = head_size(response.headers);
  auto* text = std::get_if<std::string>(&response.body);
  TM_CHECK(text != nullptr, "the answer to a call is no text");
  answer.body = std::make_shared<const std::string>(std::move(*text));
  if (answer.status < 400 || answer.body->empty()) return answer;
  const Json problem = parse_json(*answer.body);
  const Error error = http::error_of_problem(problem);
  fail(answer, error.code(), error.message());
  answer.trailing.emplace_back("problem-bin", problem_metadata(problem));
  return answer;
}

}  // namespace

Gateway::Gateway(http::Handler& api, const services::Services& services, std::shared_ptr<MemoryBudget> memory,
                 const GatewayOptions& options)
    : api_(api),
      services_(services),
      memory_(std::move(memory)),
      workers_(options.workers, options.queue, 0) {}

bool Gateway::may_send(const Fields& fields) {
  if (services_.keys == nullptr) return true;
  for (const auto& [name, value] : fields) {
    if (!http::equals_ignoring_case(name, "authorization")) continue;
    const std::string_view token = http::bearer_token(value);
    if (token.empty()) return false;
    const services::KeyService::Key key = services_.keys->find(token);
    return !key.name.empty() && !key.is_expired;
  }
  return false;
}

bool Gateway::reserve(uint64_t bytes, std::shared_ptr<void>& hold, Answer& refusal) {
  try {
    auto more = std::make_shared<Hold>(hold, memory_);
    more->share.take(bytes);
    hold = std::move(more);
    return true;
  } catch (const Error& error) {
    fail(refusal, error.code(), error.message());
    return false;
  }
}

bool Gateway::submit(std::function<void()> task) { return workers_.submit(std::move(task)); }

bool Gateway::is_quick(const std::string& target) const noexcept {
  http::Request request;
  request.method = "POST";
  request.target = target;
  request.body = std::make_shared<http::BytesBody>("");
  return api_.lane(request, "") == http::Lane::kDirect;
}

/// A call's turn of a thread that others wait for: what it puts off is done at the turn's end, once, and
/// after that by workers.
struct Gateway::Turn {
  std::mutex mutex;
  std::function<void()> task;
  bool is_over = false;
};

void Gateway::answer(Request asked, std::function<void(Answer)> respond) noexcept {
  const auto request = std::make_shared<http::Request>();
  request->method = std::move(asked.method);
  request->target = std::move(asked.target);
  for (const auto& [name, value] : asked.fields) request->headers.add(name, value);
  // No browser speaks HTTP/2 in the clear, and with TLS it checks the name: there is no page of another site
  // to keep out, which the names of hosts are for.
  request->headers.set("Host", "localhost");
  request->peer = std::move(asked.peer);
  request->peer_is_loopback = loopback_.contains(http::peer_address(request->peer));
  request->body = std::move(asked.body);
  request->cancelled = std::move(asked.cancelled);
  request->received = asked.received;
  const auto turn = asked.is_here ? std::make_shared<Turn>() : nullptr;
  if (turn) {
    request->later = [this, turn](std::function<void()> task) {
      {
        const std::lock_guard lock(turn->mutex);
        if (!turn->is_over && !turn->task) {
          turn->task = std::move(task);
          return;
        }
      }
      // A batch that waits has its place already, and must be run.
      if (!workers_.submit(task)) task();
    };
  }
  api_.answer(*request, [request, respond = std::move(respond)](http::Response response) {
    Answer answer;
    try {
      answer = answer_of(std::move(response));
    } catch (const std::exception& error) {
      fail(answer, ErrorCode::kInternal, error.what());
    }
    answer.hold = request;
    respond(std::move(answer));
  });
  if (!turn) return;
  std::function<void()> task;
  {
    const std::lock_guard lock(turn->mutex);
    turn->is_over = true;
    task = std::move(turn->task);
  }
  if (task) task();
}

bool Gateway::ready() const noexcept { return services_.health->ready().ready; }

}  // namespace tensormill::rpc
