#include "server/measure/measure_child.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "compiler/codegen/jit.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/parallel/kernel_parallel.h"
#include "server/measure/roof.h"

namespace tensormill::measure {

namespace {

constexpr int kRequestFd = jobs::kFirstInheritedFd;
constexpr int kCodeFd = kRequestFd + 1;
constexpr int kTensorFd = kCodeFd + 1;
constexpr size_t kPadding = 64;  // readable bytes after each buffer, by the kernel ABI
constexpr unsigned char kPaddingByte = 0xa5;
constexpr size_t kFlushBytes = size_t{64} << 20;

/// Memory between two pages that cannot be touched; its end, with the padding, touches the second.
class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t aligned = (bytes + 63) / 64 * 64 + kPadding;
    const size_t inner = (aligned + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    base_ = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) throw_unmapped();
    char* first = static_cast<char*>(base_) + page;
    if (::mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) throw_unmapped();
    data_ = first + inner - aligned;
    std::memset(data_ + bytes_, kPaddingByte, aligned - bytes_);
    tail_ = aligned - bytes_;
  }
  ~GuardedBuffer() { ::munmap(base_, mapped_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  char* data() { return data_; }
  size_t bytes() const { return bytes_; }
  /// Something was written past the end.
  bool overrun() const {
    return !std::all_of(data_ + bytes_, data_ + bytes_ + tail_,
                        [](char c) { return static_cast<unsigned char>(c) == kPaddingByte; });
  }

private:
  /// Of a child that reaches its bound as wherever else it takes memory.
  [[noreturn]] static void throw_unmapped() {
    if (errno == ENOMEM) throw std::bad_alloc();
    throw_errno(errno, "cannot map a buffer");
  }
  size_t bytes_;
  size_t mapped_ = 0;
  size_t tail_ = 0;
  void* base_ = nullptr;
  char* data_ = nullptr;
};

void transfer(bool to_file, char* data, size_t bytes, int64_t offset) {
  while (bytes > 0) {
    const ssize_t moved = to_file ? ::pwrite(kTensorFd, data, bytes, static_cast<off_t>(offset))
                                  : ::pread(kTensorFd, data, bytes, static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) throw_errno(errno, "cannot move a tensor");
    data += moved;
    offset += moved;
    bytes -= static_cast<size_t>(moved);
  }
}

/// One request's kernel with its buffers.
class Trial {
public:
  Trial(const Json& request, parallel::ThreadPool& pool)
      : lease_(pool.lease(request.at("threads").get<int>())),
        parallel_(lease_, errors_),
        shared_(request.at("shared_bytes").get<size_t>()),
        workers_(request.at("worker_bytes").get<size_t>() * static_cast<size_t>(lease_.workers())) {
    load(request);
    for (const Json& buffer : request.at("buffers")) {
      buffers_.push_back(std::make_unique<GuardedBuffer>(buffer[1].get<size_t>()));
      if (!buffer[2].get<bool>()) {
        transfer(false, buffers_.back()->data(), buffers_.back()->bytes(), buffer[0].get<int64_t>());
      } else {
        std::memset(buffers_.back()->data(), 0, buffers_.back()->bytes());
      }
      pointers_.push_back(buffers_.back()->data());
    }
    call_.abi_version = TM_ABI_VERSION;
    call_.num_buffers = static_cast<uint32_t>(pointers_.size());
    call_.buffers = pointers_.data();
    // Of a worker's server that is older there are none.
    dims_ = request.value("dims", std::vector<int64_t>());
    call_.dims = dims_.data();
    call_.num_dims = static_cast<uint32_t>(dims_.size());
    call_.shared_workspace = shared_.data();
    call_.worker_workspace = workers_.data();
    call_.worker_workspace_stride = request.at("worker_bytes").get<int64_t>();
    call_.parallel = parallel_.get();
    call_.error_index = &error_index_;
  }

  int32_t run() { return entry_(&call_); }
  double run_seconds(int64_t number) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < number; ++i) entry_(&call_);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           static_cast<double>(number);
  }
  bool overrun() const {
    return shared_.overrun() || workers_.overrun() ||
           std::any_of(buffers_.begin(), buffers_.end(),
                       [](const auto& buffer) { return buffer->overrun(); });
  }
  void write_outputs(const Json& request) {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Json& buffer = request.at("buffers")[i];
      if (buffer[2].get<bool>())
        transfer(true, buffers_[i]->data(), buffers_[i]->bytes(), buffer[0].get<int64_t>());
    }
  }

private:
  void load(const Json& request) {
    codegen::Object object;
    object.symbol = request.at("symbol").get<std::string>();
    const auto code = MappedFile::map(kCodeFd, "code");
    const auto offset = request.at("code_offset").get<size_t>();
    const auto bytes = request.at("code_bytes").get<size_t>();
    TM_CHECK(offset <= code->text().size() && bytes <= code->text().size() - offset,
             "the code has another size");
    object.bytes = std::string(code->text().substr(offset, bytes));
    library_ = codegen::JitLibrary::load(object);
    entry_ = library_->kernel(object.symbol);
  }

  parallel::Lease lease_;
  parallel::KernelErrors errors_;
  parallel::KernelParallel parallel_;
  GuardedBuffer shared_, workers_;
  std::unique_ptr<codegen::JitLibrary> library_;
  tm_kernel entry_ = nullptr;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
  std::vector<void*> pointers_;
  std::vector<int64_t> dims_;
  tm_call call_{};
  int64_t error_index_ = 0;
};

void flush_caches(std::vector<char>& memory) {
  memory.resize(kFlushBytes);
  for (size_t i = 0; i < memory.size(); i += 64) ++memory[i];
}

Json measure_one(const Json& request, parallel::ThreadPool& pool, std::vector<char>& flush_memory) {
  Trial trial(request, pool);
  const int32_t code = trial.run();
  trial.write_outputs(request);
  Json seconds = Json::array();
  const bool flush = request.at("flush_cache").get<bool>();
  const double shortest = flush ? 0 : request.at("min_seconds").get<double>();
  int64_t number = flush ? 1 : std::max<int64_t>(request.at("number").get<int64_t>(), 1);
  if (code == TM_OK && !trial.overrun()) {
    // The first timed run says how many runs a sample needs, and warms up.
    const double once = std::max(trial.run_seconds(1), 1e-9);
    number = std::max(number, static_cast<int64_t>(std::min(shortest / once, 1e7)) + 1);
    for (int64_t i = 0; i < request.at("repeat").get<int64_t>(); ++i) {
      if (flush) flush_caches(flush_memory);
      seconds.push_back(trial.run_seconds(flush ? 1 : number));
    }
  }
  return {{"code", code}, {"overrun", trial.overrun()}, {"seconds", std::move(seconds)}};
}

Json measured_roof(const Json& request) {
  RoofOptions options;
  request.at("threads").get_to(options.threads);
  request.at("vector_bits").get_to(options.vector_bits);
  request.at("l2_bytes").get_to(options.l2_bytes);
  const Roof roof = measure_roof(options);
  return {{"gflops", roof.flops / 1e9},
          {"memory_gbytes_per_s", roof.memory_bytes / 1e9},
          {"l2_gbytes_per_s", roof.l2_bytes / 1e9}};
}

/// The next line of the request pipe; false at its end.
bool next_line(std::string& pending, std::string& line) {
  for (size_t end = pending.find('\n'); end == std::string::npos; end = pending.find('\n')) {
    char buffer[4096];
    const ssize_t got = ::read(kRequestFd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    pending.append(buffer, static_cast<size_t>(got));
  }
  const size_t end = pending.find('\n');
  line = pending.substr(0, end);
  pending.erase(0, end + 1);
  return true;
}

}  // namespace

std::string child_measure(jobs::ChildChannel& channel, std::span<const std::string>) {
  std::unique_ptr<parallel::ThreadPool> pool;
  std::vector<char> flush_memory;
  std::string pending, line;
  while (next_line(pending, line)) {
    const Json request = parse_json(line);
    if (request.contains("vector_bits")) {
      channel.event("measured", measured_roof(request).dump());
      continue;
    }
    const int threads = request.at("threads").get<int>();
    if (!pool || pool->cores() != threads) pool = std::make_unique<parallel::ThreadPool>(threads);
    channel.event("measured", measure_one(request, *pool, flush_memory).dump());
  }
  return "{}";
}

}  // namespace tensormill::measure
