#include "tests/transport/fixture.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>

#include "api/http/problem.h"
#include "api/http/tensor_body.h"
#include "runtime/base/error.h"

namespace tensormill::transport {
namespace {

/// Bytes that are generated as they are read; says when it is let go of.
class GeneratedContent : public http::Content {
public:
  explicit GeneratedContent(Events& events) : events_(events) {}
  ~GeneratedContent() override { events_.add("content released"); }
  uint64_t size() const override { return TestHandler::kContentSize; }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override {
    for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::byte>((offset + i) % 251);
    return buffer.size();
  }

private:
  Events& events_;
};

class PieceStream : public http::ResponseStream {
public:
  PieceStream(Events& events, int pieces) : events_(events), left_(pieces) {}
  ~PieceStream() override { events_.add("stream released"); }
  bool next(std::string& piece) override {
    if (left_ == 0) return false;
    --left_;
    piece = "piece\n";
    return true;
  }

private:
  Events& events_;
  int left_;
};

/// Nothing ever happens.
class QuietStream : public http::ResponseStream {
public:
  explicit QuietStream(Events& events) : events_(events) {}
  ~QuietStream() override { events_.add("stream released"); }
  bool next(std::string&) override {
    events_.add("quiet");
    return true;
  }
  std::string idle_piece() const override { return "idle\n"; }

private:
  Events& events_;
};

}  // namespace

void Events::add(const std::string& name) {
  const std::lock_guard lock(mutex_);
  ++counts_[name];
  changed_.notify_all();
}

bool Events::wait(const std::string& name, int count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kGuard, [&] { return counts_[name] >= count; });
}

int Events::count(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return counts_[name];
}

http::Lane TestHandler::lane(const http::Request& request, std::string_view) const noexcept {
  const std::string& target = request.target;
  if (target == "/direct" || target == "/turn") return http::Lane::kDirect;
  if (target == "/bulk") return http::Lane::kBulk;
  return target == "/reserved" ? http::Lane::kReserved : http::Lane::kWorker;
}

void TestHandler::answer(http::Request& request,
                         const std::function<void(http::Response)>& respond) noexcept {
  const auto give = [this, &request, respond] { respond(handle(request)); };
  if (request.target == "/later") {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back(give);
  } else if (request.target == "/turn" && request.later) {
    request.later(give);
  } else {
    give();
  }
}

http::Response TestHandler::handle(http::Request& request) noexcept {
  try {
    return response_to(request);
  } catch (const Error& error) {
    events_.add(std::string(error_code_info(error.code()).name));
    return http::problem_response(error, "test");
  }
}

http::Response TestHandler::response_to(http::Request& request) {
  const std::string& target = request.target;
  if (target == "/bulk") {
    const std::string body = http::read_all(*request.body);
    return http::text_response(body + " " +
                               std::to_string(::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()))));
  }
  if (target == "/echo" || target == "/direct") {
    http::Response response = http::text_response(http::read_all(*request.body));
    response.headers.set("X-Method", request.method);
    if (const auto field = request.headers.get("X-Field")) response.headers.set("X-Field", *field);
    return response;
  }
  if (target == "/limit") {
    http::LimitedBody body(request.body, 1000, "the limit");
    return http::text_response(http::read_all(body));
  }
  if (target == "/turn") return http::text_response("turn");
  if (target == "/gate" || target == "/later") {
    events_.add("entered");
    const std::stop_callback gone(request.cancelled, [this] {
      events_.add("cancelled");
      events_.add("open");
    });
    events_.wait("open");
    return http::text_response("gate");
  }
  if (target == "/tended") {
    request.ends_with_client();
    const std::stop_callback gone(request.cancelled, [this] { events_.add("cancelled"); });
    events_.add("entered");
    events_.wait("cancelled");
  }
  if (target == "/offer") {
    // Whatever becomes of the client: the answer is made.
    events_.add("entered");
    events_.wait("open");
    http::Response response = http::text_response("offer");
    response.undelivered = [this] { events_.add("undelivered"); };
    return response;
  }
  if (target == "/content") {
    auto content = std::make_shared<GeneratedContent>(events_);
    http::Response response;
    response.body = http::ContentBody{content, 0, content->size()};
    return response;
  }
  if (target == "/stream" || target == "/endless") {
    if (target == "/endless") request.take_stream();
    http::Response response = http::text_response("");
    response.body = std::make_shared<PieceStream>(events_, target == "/stream" ? 3 : -1);
    return response;
  }
  if (target == "/quiet") {
    http::Response response = http::text_response("");
    response.body = std::make_shared<QuietStream>(events_);
    return response;
  }
  if (target == "/stuck") {
    events_.add("entered");
    while (true) events_.wait("never");
  }
  if (target.starts_with("/status/")) return http::empty_response(std::stoi(target.substr(8)));
  return http::text_response("ignored");
}

void TransportTest::TearDown() {
  events().add("open");
  if (transport_) transport_->stop(std::chrono::milliseconds(0), kGuard);
  transport_.reset();
}

void TransportTest::start() {
  options_.on_refused = [this](std::string_view reason) { events().add("refused " + std::string(reason)); };
  transport_ = make_transport(options_);
  transport_->start(handler_);
}

RawResponse TransportTest::exchange(const std::string& bytes) {
  if (!transport_) start();
  RawClient client = connect();
  return client.request(bytes);
}

std::string post(const std::string& target, const std::string& fields, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

std::string get(const std::string& target, const std::string& fields) {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

}  // namespace tensormill::transport
