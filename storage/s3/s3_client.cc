#include "storage/s3/s3_client.h"

#include <algorithm>
#include <array>
#include <thread>

#include "runtime/base/error.h"
#include "storage/s3/s3_answers.h"
#include "storage/s3/xml.h"

namespace tensormill::storage {
S3Client::S3Client(S3Options options, HttpTransport& transport, CredentialSource& credentials)
    : options_(std::move(options)),
      transport_(transport),
      credentials_(credentials),
      random_(std::random_device()()) {
  require_safe_url(options_.endpoint, "s3.endpoint");
}

std::string S3Client::host() const {
  const std::string address = options_.endpoint.substr(options_.endpoint.find("//") + 2);
  return options_.path_style ? address : options_.bucket + "." + address;
}

HttpAnswer S3Client::attempt(const Request& request, bool refused, const HttpSink& sink) {
  const AwsKey key = credentials_.key(refused);
  SigningRequest signing;
  signing.method = request.method;
  signing.path = options_.path_style ? "/" + options_.bucket + "/" + request.key : "/" + request.key;
  signing.query = request.query;
  signing.payload = sha256_hex(request.body);
  signing.headers = request.headers;
  SigningScope scope;
  scope.region = options_.region;
  scope.time = amz_time(options_.unix_seconds());
  signing.headers.emplace_back("host", host());
  signing.headers.emplace_back("x-amz-date", scope.time);
  signing.headers.emplace_back("x-amz-content-sha256", signing.payload);
  if (!key.token.empty()) signing.headers.emplace_back("x-amz-security-token", key.token);

  HttpExchange exchange;
  exchange.method = request.method;
  const std::string scheme = options_.endpoint.substr(0, options_.endpoint.find("//") + 2);
  exchange.url = scheme + host() + uri_escape(signing.path, true);
  if (!signing.query.empty()) exchange.url += "?" + query_text(signing.query);
  exchange.headers = signing.headers;
  exchange.headers.emplace_back("authorization", sign(signing, key, scope));
  exchange.body = request.body;
  constexpr uint64_t kBytesPerMillisecond = 8192;
  exchange.stall_timeout =
      options_.stall_timeout + std::chrono::milliseconds(request.moved_bytes / kBytesPerMillisecond);
  exchange.ca_file = options_.ca_file;
  return transport_.send(exchange, sink);
}

void S3Client::pause(int tries) {
  const S3Retries& retries = options_.retries;
  const auto most =
      std::min<int64_t>(retries.longest_pause.count(), retries.first_pause.count() << std::min(tries, 20));
  std::chrono::milliseconds wait{0};
  {
    // Anything up to the longest: many that were refused together do not come back together.
    const std::lock_guard lock(mutex_);
    wait = std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(0, most)(random_));
  }
  if (retries.pause) {
    retries.pause(wait);
  } else {
    std::this_thread::sleep_for(wait);
  }
}

HttpAnswer S3Client::exchange(const Request& request, std::span<const int> accepted) {
  bool refused = false;
  for (int tries = 1;; ++tries) {
    HttpAnswer answer = attempt(request, refused, {});
    if (answer.status / 100 == 2 ||
        std::find(accepted.begin(), accepted.end(), answer.status) != accepted.end())
      return answer;
    const bool expired = !refused && is_expired_key(answer);
    if (tries >= options_.retries.attempts || (!expired && !may_help_to_try_again(answer)))
      throw_answer(answer, request.method, request.key, options_.bucket);
    refused = expired;
    if (!expired) pause(tries);
  }
}

bool S3Client::put(const std::string& key, std::string_view bytes, S3Condition condition) {
  Request request{"PUT", full(key), {}, {}, bytes, 0};
  if (condition == S3Condition::kAlways) {
    exchange(request, kNoOther);
    return true;
  }
  request.headers = {{"if-none-match", "*"}};
  for (int tries = 1;; ++tries) {
    const HttpAnswer answer = exchange(request, kUndone);
    if (answer.status == 412) return false;
    if (answer.status / 100 == 2) return true;
    if (answer.status == 404) throw_answer(answer, "PUT", request.key, options_.bucket);
    // 501: a store without conditions. Objects are named by what they hold, so another's is the same.
    if (answer.status == 501) return put(key, bytes, S3Condition::kAlways);
    // 409: another request for the same key was under way and may yet fail.
    if (tries >= options_.retries.attempts) throw_answer(answer, "PUT", request.key, options_.bucket);
    pause(tries);
  }
}

std::optional<S3Object> S3Client::head(const std::string& key) {
  const HttpAnswer answer = exchange({"HEAD", full(key), {}, {}, {}, 0}, kAbsent);
  if (answer.status == 404) return std::nullopt;
  S3Object object;
  object.key = key;
  object.bytes = parse_count(answer.header("content-length"));
  return object;
}

std::optional<uint64_t> S3Client::get(
    const std::string& key, const std::function<void(uint64_t offset, std::string_view bytes)>& take) {
  constexpr int kMaxRestarts = 3;
  uint64_t got = 0;
  int restarts = 0;
  std::string tag;
  std::exception_ptr thrown;
  bool refused = false;
  for (int tries = 1;; ++tries) {
    Request request{"GET", full(key), {}, {}, {}, 0};
    if (got > 0) request.headers = {{"range", "bytes=" + std::to_string(got) + "-"}, {"if-match", tag}};
    const uint64_t before = got;
    bool is_first = true;
    const HttpAnswer answer = attempt(request, refused, [&](int status, std::string_view bytes) {
      // All of it, though a part was asked for.
      if (std::exchange(is_first, false) && status != 206) got = 0;
      try {
        take(got, bytes);
      } catch (const std::exception&) {
        thrown = std::current_exception();
        return false;
      }
      got += bytes.size();
      return true;
    });
    if (thrown) std::rethrow_exception(thrown);
    if (answer.status / 100 == 2) return is_first ? before : got;
    if (answer.status == 404) {
      if (error_code_of(answer) == "NoSuchBucket") throw_answer(answer, "GET", request.key, options_.bucket);
      return std::nullopt;
    }
    if (tag.empty()) tag = answer.header("etag");
    const bool expired = !refused && is_expired_key(answer);
    const bool is_other = answer.status == 412 || answer.status == 416;
    const bool is_final = is_other ? ++restarts > kMaxRestarts : !expired && !may_help_to_try_again(answer);
    // Where bytes have come, it is no failed attempt but a short one.
    if (got > before) tries = 0;
    if (is_final || tries >= options_.retries.attempts)
      throw_answer(answer, "GET", request.key, options_.bucket);
    // Another object has taken its place, or its tag is not known: from the start.
    if (is_other || tag.empty()) {
      got = 0;
      tag.clear();
    }
    refused = expired;
    if (!expired) pause(tries);
  }
}

void S3Client::remove(const std::vector<std::string>& keys) {
  constexpr size_t kAtOnce = 1000;
  if (keys.size() == 1) {
    exchange({"DELETE", full(keys.front()), {}, {}, {}, 0}, kAbsent);
    return;
  }
  for (size_t begin = 0; begin < keys.size(); begin += kAtOnce) {
    const size_t end = std::min(keys.size(), begin + kAtOnce);
    std::string body = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>";
    for (size_t i = begin; i < end; ++i)
      body += "<Object><Key>" + xml_escape(full(keys[i])) + "</Key></Object>";
    body += "</Delete>";
    Request request{"POST", "", {{"delete", ""}}, {{"x-amz-checksum-sha256", sha256_base64(body)}}, body, 0};
    constexpr std::array kWithout = {405, 501};
    const HttpAnswer answer = exchange(request, kWithout);
    if (answer.status / 100 == 2) {
      const XmlElement result = parse_xml(answer.body);
      const XmlElement* error = result.find("Error");
      if (error == nullptr) continue;
      throw Error(ErrorCode::kUnavailable, "S3 could not remove " + error->text_of("Key") + ": " +
                                               error->text_of("Code") + " " + error->text_of("Message"));
    }
    for (size_t i = begin; i < end; ++i) exchange({"DELETE", full(keys[i]), {}, {}, {}, 0}, kAbsent);
  }
}

void S3Client::list(const std::string& folder, const std::function<void(const S3Object&)>& take) {
  std::string token;
  do {
    Request request{"GET", "", {{"list-type", "2"}, {"prefix", full(folder)}}, {}, {}, 0};
    if (!token.empty()) request.query.emplace_back("continuation-token", token);
    const XmlElement page = parse_xml(exchange(request, kNoOther).body);
    for (const XmlElement& entry : page.children) {
      if (entry.name != "Contents") continue;
      const std::string key = entry.text_of("Key");
      if (!key.starts_with(options_.prefix)) continue;
      take({key.substr(options_.prefix.size()), parse_count(entry.text_of("Size")),
            parse_iso_time(entry.text_of("LastModified")), ""});
    }
    token = page.text_of("IsTruncated") == "true" ? page.text_of("NextContinuationToken") : "";
  } while (!token.empty());
}

}  // namespace tensormill::storage
