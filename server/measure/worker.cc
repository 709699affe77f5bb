#include "server/measure/worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::measure {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tune::Measurement;
using tune::TrialError;

constexpr int64_t kAlignment = 64;
constexpr double kStartSeconds = 20;  // for a child to come up, on a busy machine

FileDescriptor memory_file(const char* name) {
  FileDescriptor fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd.valid()) throw_errno(errno, std::string("cannot make the memory file ") + name);
  return fd;
}

void resize(int fd, int64_t bytes) {
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw_errno(errno, "cannot size a memory file");
}

void write_at(int fd, const void* data, size_t bytes, int64_t offset) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(fd, at, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_errno(errno, "cannot write to a memory file");
    at += put;
    offset += put;
    bytes -= static_cast<size_t>(put);
  }
}

void read_at(int fd, void* data, size_t bytes, int64_t offset) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_errno(errno, "cannot read a memory file");
    at += got;
    offset += got;
    bytes -= static_cast<size_t>(got);
  }
}

}  // namespace

WorkerMeasurer::WorkerMeasurer(WorkerOptions options)
    : options_(std::move(options)), code_(memory_file("code")), tensors_(memory_file("tensors")) {}

WorkerMeasurer::~WorkerMeasurer() = default;

void WorkerMeasurer::set_task(const tune::Task& task, const driver::KernelReference& reference) {
  task_ = &task;
  reference_ = &reference;
  regions_.clear();
  int64_t end = 0;
  const auto add = [&](int64_t bytes, bool is_output) {
    regions_.push_back({end, bytes, is_output});
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const Tensor& input : reference.inputs) add(static_cast<int64_t>(input.num_bytes()), false);
  const ir::Graph& region = *task.kernel.region;
  for (ir::ValueId output : region.outputs()) {
    const ir::ValueType& type = region.value(output).type;
    add(num_elements(type.shape) * static_cast<int64_t>(dtype_bytes(type.dtype)), true);
  }
  resize(tensors_.get(), end);
  for (size_t i = 0; i < reference.inputs.size(); ++i)
    write_at(tensors_.get(), reference.inputs[i].data(), reference.inputs[i].num_bytes(), regions_[i].offset);
}

void WorkerMeasurer::start_child() {
  child_.reset();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno(errno, "cannot make a pipe");
  const FileDescriptor read_end(ends[0]);
  requests_ = FileDescriptor(ends[1]);
  jobs::ChildSpec spec;
  spec.command = "child-measure";
  spec.descriptors = {read_end.get(), code_.get(), tensors_.get()};
  spec.program = options_.program;
  spec.folder = "/";
  spec.limits.nice = 0;
  spec.limits.files = false;
  spec.limits.confine = options_.confine;
  child_ = std::make_unique<jobs::ChildProcess>(spec);
  left_ = options_.candidates;
  ++children_;
}

Measurement WorkerMeasurer::measure(const codegen::Object& object, const plan::KernelWorkspace& workspace,
                                    const tune::MeasureOptions& options) {
  TM_CHECK(task_ != nullptr, "a measurement without a task");
  if (!child_ || left_ <= 0) start_child();
  --left_;
  resize(code_.get(), static_cast<int64_t>(object.bytes.size()));
  write_at(code_.get(), object.bytes.data(), object.bytes.size(), 0);
  Json buffers = Json::array();
  for (const Region& region : regions_) buffers.push_back({region.offset, region.bytes, region.is_output});
  const Json request = {{"symbol", object.symbol},
                        {"code_bytes", object.bytes.size()},
                        {"buffers", buffers},
                        {"shared_bytes", workspace.shared_bytes},
                        {"worker_bytes", workspace.worker_bytes},
                        {"threads", options.threads},
                        {"number", options.number},
                        {"repeat", options.repeat},
                        {"min_seconds", options.min_repeat_ms / 1000},
                        {"flush_cache", options.flush_cache}};
  write_all(requests_.get(), request.dump() + "\n", "the measuring child");
  Measurement result = await(options);
  if (result.error == TrialError::kRuntime || result.error == TrialError::kRunTimeout) child_.reset();
  return result;
}

Measurement WorkerMeasurer::await(const tune::MeasureOptions& options) {
  answer_.clear();
  const bool fresh = left_ == options_.candidates - 1;
  auto deadline = steady_clock::now() +
                  std::chrono::duration_cast<steady_clock::duration>(
                      std::chrono::duration<double>(options.timeout_seconds + (fresh ? kStartSeconds : 0)));
  const auto on_event = [&](const std::string& type, const std::string& json) {
    if (type == "measured") answer_ = json;
  };
  while (answer_.empty()) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return {TrialError::kRunTimeout, "ran for longer than the limit", {}};
    const std::optional<jobs::ChildOutcome> end = child_->poll(left, on_event);
    if (end && answer_.empty())
      return {TrialError::kRuntime, end->error ? end->error->message() : "the child ended", {}};
  }
  const Json answer = parse_json(answer_);
  Measurement result = check(answer.at("code").get<int32_t>());
  if (result.error == TrialError::kNone && answer.at("overrun").get<bool>())
    result = {TrialError::kWrongAnswer, "wrote past the end of a buffer", {}};
  if (result.error == TrialError::kNone) answer.at("seconds").get_to(result.seconds);
  return result;
}

Measurement WorkerMeasurer::check(int32_t code) {
  std::vector<Tensor> outputs;
  const ir::Graph& region = *task_->kernel.region;
  for (size_t i = 0; i < region.outputs().size(); ++i) {
    const ir::ValueType& type = region.value(region.outputs()[i]).type;
    outputs.emplace_back(type.dtype, type.shape);
    const Region& place = regions_[region.inputs().size() + i];
    read_at(tensors_.get(), outputs.back().data(), static_cast<size_t>(place.bytes), place.offset);
  }
  try {
    driver::check_outputs(task_->kernel, *reference_, code, outputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kWrongAnswer) throw;
    return {TrialError::kWrongAnswer, error.message(), {}};
  }
  return {};
}

}  // namespace tensormill::measure
