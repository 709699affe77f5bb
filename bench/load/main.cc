// bench_load PORT PATH BODY.bin CLIENTS SECONDS TAIL [--cpu-of=PID] [HEADER...]: keep-alive clients, each a
// thread with a socket of its own, that send the same POST again and again and check every answer: status 200
// and a body that ends in the last TAIL bytes of the first answer's. One line of JSON: requests, seconds,
// latency percentiles, and, where the answer has a Server-Timing with a compute part, the percentiles of what
// is around it; with --cpu-of the CPU seconds of that process meanwhile.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Plan {
  uint16_t port = 0;
  std::string request;  ///< head and body
  int clients = 1;
  double seconds = 1;
  size_t tail = 0;
  std::string cpu_of;  ///< a process
};

struct Answer {
  int status = 0;
  std::string body;
  double compute_ms = -1;
};

/// One connection.
class Client {
public:
  explicit Client(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!fd_.valid()) throw_errno(errno, "socket");
    const int one = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    const timeval limit{60, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw_errno(errno, "connect");
    }
  }

  Answer exchange(const std::string& request) {
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t count = ::send(fd_.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (count < 0) throw_errno(errno, "send");
      sent += static_cast<size_t>(count);
    }
    size_t head = std::string::npos;
    while ((head = buffer_.find("\r\n\r\n")) == std::string::npos) receive();
    std::string lower = buffer_.substr(0, head + 2);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    Answer answer;
    answer.status = std::stoi(lower.substr(lower.find(' ') + 1, 3));
    const size_t length_at = lower.find("\r\ncontent-length:");
    if (length_at == std::string::npos) throw Error(ErrorCode::kInvalidRequest, "an answer without a length");
    const size_t length = std::stoull(lower.substr(length_at + 17));
    const size_t compute_at = lower.find("compute;dur=");
    if (compute_at != std::string::npos) answer.compute_ms = std::stod(lower.substr(compute_at + 12));
    while (buffer_.size() < head + 4 + length) receive();
    answer.body = buffer_.substr(head + 4, length);
    buffer_.erase(0, head + 4 + length);
    return answer;
  }

private:
  void receive() {
    char bytes[65536];
    const ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (count < 0) throw_errno(errno, "recv");
    if (count == 0) throw Error(ErrorCode::kInvalidRequest, "the server closed the connection");
    buffer_.append(bytes, static_cast<size_t>(count));
  }

  FileDescriptor fd_;
  std::string buffer_;
};

struct Results {
  std::mutex mutex;
  std::vector<double> latency_ms;
  std::vector<double> around_ms;
  size_t wrong = 0;
};

std::string tail_of(const std::string& body, size_t tail) {
  return body.substr(body.size() - std::min(tail, body.size()));
}

void run_client(const Plan& plan, const std::string& expected, Clock::time_point end, Results& results) {
  Client client(plan.port);
  std::vector<double> latency, around;
  size_t wrong = 0;
  while (Clock::now() < end) {
    const Clock::time_point start = Clock::now();
    const Answer answer = client.exchange(plan.request);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    wrong += answer.status == 200 && tail_of(answer.body, plan.tail) == expected ? 0 : 1;
    latency.push_back(ms);
    if (answer.compute_ms >= 0) around.push_back(ms - answer.compute_ms);
  }
  const std::lock_guard lock(results.mutex);
  results.latency_ms.insert(results.latency_ms.end(), latency.begin(), latency.end());
  results.around_ms.insert(results.around_ms.end(), around.begin(), around.end());
  results.wrong += wrong;
}

std::string percentiles(std::vector<double> values) {
  if (values.empty()) return "null";
  std::sort(values.begin(), values.end());
  const auto at = [&](double p) {
    return std::to_string(values[static_cast<size_t>(p * static_cast<double>(values.size() - 1))]);
  };
  return "{\"p50\":" + at(0.5) + ",\"p90\":" + at(0.9) + ",\"p99\":" + at(0.99) + "}";
}

/// CPU seconds of the threads that a process has now. Those of /proc/PID/stat come in ticks of 10 ms.
double cpu_seconds(const std::string& pid) {
  uint64_t total = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
    uint64_t ns = 0;
    // A thread that has just ended has no file any more.
    if (std::ifstream(task.path() / "schedstat") >> ns) total += ns;
  }
  return static_cast<double>(total) * 1e-9;
}

int load(const Plan& plan) {
  Client first(plan.port);
  const Answer model = first.exchange(plan.request);
  if (model.status != 200) {
    std::cerr << "error: status " << model.status << ": " << model.body << std::endl;
    return 3;
  }
  const std::string expected = tail_of(model.body, plan.tail);
  Results results;
  // The first request, which is in no batch with others, is not of the load.
  const double cpu_before = plan.cpu_of.empty() ? 0 : cpu_seconds(plan.cpu_of);
  const Clock::time_point start = Clock::now();
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan.seconds));
  std::vector<std::jthread> threads;
  for (int i = 0; i < plan.clients; ++i) {
    threads.emplace_back([&] { run_client(plan, expected, end, results); });
  }
  threads.clear();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::cout << "{\"requests\":" << results.latency_ms.size() << ",\"seconds\":" << seconds
            << ",\"wrong\":" << results.wrong << ",\"latency_ms\":" << percentiles(results.latency_ms)
            << ",\"around_compute_ms\":" << percentiles(results.around_ms);
  if (!plan.cpu_of.empty()) std::cout << ",\"cpu_seconds\":" << cpu_seconds(plan.cpu_of) - cpu_before;
  std::cout << "}" << std::endl;
  return results.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tensormill::bench

int main(int argc, char** argv) {
  if (argc < 7) {
    std::cerr << "usage: bench_load PORT PATH BODY.bin CLIENTS SECONDS TAIL [--cpu-of=PID] [HEADER...]"
              << std::endl;
    return 2;
  }
  try {
    tensormill::bench::Plan plan;
    plan.port = static_cast<uint16_t>(std::stoi(argv[1]));
    const std::string body = tensormill::read_file(argv[3]);
    plan.clients = std::stoi(argv[4]);
    plan.seconds = std::stod(argv[5]);
    plan.tail = std::stoull(argv[6]);
    plan.request = "POST " + std::string(argv[2]) +
                   " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
    for (int i = 7; i < argc; ++i) {
      const std::string argument = argv[i];
      const std::string option = "--cpu-of=";
      if (argument.starts_with(option)) {
        plan.cpu_of = argument.substr(option.size());
      } else {
        plan.request += argument + "\r\n";
      }
    }
    plan.request += "\r\n" + body;
    return tensormill::bench::load(plan);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 5;
  }
}
