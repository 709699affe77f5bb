// The module tensormill-s3.so: HTTP by libcurl, which nothing else here links.
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>

#include "storage/s3/http_transport.h"

namespace tensormill::storage {
namespace {

constexpr size_t kMaxBody = size_t{16} << 20;
constexpr long kReceiveBuffer = 256 * 1024;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

/// What the callbacks of one exchange write to.
struct Receiver {
  CURL* easy = nullptr;
  const HttpSink* sink = nullptr;
  HttpAnswer answer;
  std::string refused;    ///< why a callback ended the exchange
  bool has_head = false;  ///< to its end
};

int status_of(CURL* easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t take_header(char* data, size_t size, size_t count, void* target) {
  auto& receiver = *static_cast<Receiver*>(target);
  std::string_view line(data, size * count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  // The head of a later answer, after 100 Continue.
  if (line.starts_with("HTTP/")) receiver.answer.headers.clear();
  receiver.has_head = line.empty();
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  receiver.answer.headers.emplace_back(std::move(name), std::string(value));
  return size * count;
}

size_t take_body(char* data, size_t size, size_t count, void* target) {
  auto& receiver = *static_cast<Receiver*>(target);
  const std::string_view bytes(data, size * count);
  const int status = status_of(receiver.easy);
  if (*receiver.sink && status / 100 == 2) {
    if ((*receiver.sink)(status, bytes)) return bytes.size();
    receiver.refused = "the receiver gave up";
    return 0;
  }
  if (receiver.answer.body.size() + bytes.size() > kMaxBody) {
    receiver.refused = "the answer is too large";
    return 0;
  }
  receiver.answer.body += bytes;
  return bytes.size();
}

class CurlTransport final : public HttpTransport {
public:
  CurlTransport() { curl_global_init(CURL_GLOBAL_DEFAULT); }

  HttpAnswer send(const HttpExchange& exchange, const HttpSink& sink) override {
    Easy easy = take();
    Receiver receiver;
    if (!easy) {
      receiver.answer.failure = "libcurl has no handle";
      return receiver.answer;
    }
    receiver.easy = easy.get();
    receiver.sink = &sink;
    std::array<char, CURL_ERROR_SIZE> why{};
    const HeaderList headers = set_up(easy.get(), exchange);
    curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, why.data());
    curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &take_header);
    curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &receiver);
    curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &take_body);
    curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &receiver);
    const CURLcode code = curl_easy_perform(easy.get());
    if (code == CURLE_OK && !receiver.has_head) {
      // libcurl takes the end of the connection for that of the answer.
      receiver.answer.failure = "the answer's head is cut off";
    } else if (code == CURLE_OK) {
      receiver.answer.status = status_of(easy.get());
    } else {
      receiver.answer.failure = !receiver.refused.empty() ? receiver.refused
                                : why[0] != '\0'          ? why.data()
                                                          : curl_easy_strerror(code);
    }
    // Its connection is used again; what it points to ends here.
    curl_easy_reset(easy.get());
    put_back(std::move(easy));
    return std::move(receiver.answer);
  }

private:
  static HeaderList set_up(CURL* easy, const HttpExchange& exchange) {
    curl_slist* list = nullptr;
    bool has_type = false;
    for (const auto& [name, value] : exchange.headers) {
      has_type = has_type || name == "content-type";
      // A header without a value is sent only so.
      const std::string line = value.empty() ? name + ";" : name + ": " + value;
      list = curl_slist_append(list, line.c_str());
    }
    // libcurl would wait a second for servers that do not know it.
    list = curl_slist_append(list, "Expect:");
    const bool has_body = exchange.method == "PUT" || exchange.method == "POST";
    // Without one libcurl would say that it is a form.
    if (has_body && !has_type) list = curl_slist_append(list, "Content-Type: application/octet-stream");
    curl_easy_setopt(easy, CURLOPT_URL, exchange.url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBuffer);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(exchange.connect_timeout.count()));
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    const auto stall = std::chrono::ceil<std::chrono::seconds>(exchange.stall_timeout);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, std::max<long>(1, static_cast<long>(stall.count())));
    if (!exchange.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, exchange.ca_file.c_str());
    // What goes to this machine goes through no proxy of the environment.
    if (exchange.url.starts_with("http://")) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (has_body) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(exchange.body.size()));
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange.body.empty() ? "" : exchange.body.data());
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange.method.c_str());
    } else if (exchange.method == "HEAD") {
      curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange.method.c_str());
    }
    return HeaderList(list);
  }

  Easy take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return Easy(curl_easy_init());
    Easy easy = std::move(free_.back());
    free_.pop_back();
    return easy;
  }

  void put_back(Easy easy) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(easy));
  }

  std::mutex mutex_;
  std::vector<Easy> free_;  ///< as many as were in use at once, each with its connections
};

}  // namespace
}  // namespace tensormill::storage

extern "C" __attribute__((visibility("default"))) tensormill::storage::HttpTransport*
tensormill_make_http_transport() {
  return std::make_unique<tensormill::storage::CurlTransport>().release();
}
