#include "server/measure/exchange.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"

namespace tensormill::measure {

namespace {

using tune::Measurement;
using tune::TrialError;

constexpr int64_t kAlignment = 64;

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

/// A place or a number of bytes. Two of them have a sum.
uint64_t bytes_from(const Json& value) {
  constexpr int64_t kMost = int64_t{1} << 62;
  // What is above the greatest signed number is negative there.
  const int64_t bytes = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (bytes < 0 || bytes > kMost)
    throw Error(ErrorCode::kWrongAnswer, "a request for a measurement names no bytes: " + value.dump());
  return static_cast<uint64_t>(bytes);
}

}  // namespace

std::vector<NamedBuffer> buffers_of(const Json& request) {
  std::vector<NamedBuffer> buffers;
  const Json listed = request.is_object() ? request.value("buffers", Json::array()) : Json();
  const auto is_buffer = [](const Json& one) {
    return one.is_array() && one.size() == 3 && one[2].is_boolean();
  };
  if (!listed.is_array() || !std::all_of(listed.begin(), listed.end(), is_buffer))
    throw Error(ErrorCode::kWrongAnswer, "a request for a measurement without a list of buffers");
  for (const Json& one : listed)
    buffers.push_back({bytes_from(one[0]), bytes_from(one[1]), one[2].get<bool>()});
  return buffers;
}

uint64_t code_end_of(const Json& request) {
  if (!request.is_object() || !request.contains("code_bytes")) return 0;
  return bytes_from(request.value("code_offset", Json(0))) + bytes_from(request["code_bytes"]);
}

Json failure_json(TrialError error, const std::string& message) {
  return {{"error", static_cast<int>(error)}, {"message", message}};
}

void Exchange::set_workload(const tune::Workload& workload) {
  workload_ = &workload;
  regions_.clear();
  int64_t end = 0;
  const auto add = [&](int64_t bytes, bool is_output) {
    regions_.push_back({end, bytes, is_output});
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  for (const Tensor& input : workload.inputs) add(static_cast<int64_t>(input.num_bytes()), false);
  inputs_end_ = end;
  for (const ir::ValueType& type : workload.outputs)
    add(num_elements(type.shape) * static_cast<int64_t>(dtype_bytes(type.dtype)), true);
  outputs_bytes_ = end - inputs_end_;
  resize(tensor_fd_, end);
  for (size_t i = 0; i < workload.inputs.size(); ++i)
    write_at(tensor_fd_, workload.inputs[i].data(), workload.inputs[i].num_bytes(), regions_[i].offset);
}

std::vector<Json> Exchange::requests(std::span<const tune::Run> runs, const tune::MeasureOptions& options) {
  TM_CHECK(workload_ != nullptr, "a measurement without a task");
  int64_t code_end = 0;
  for (const tune::Run& run : runs) code_end += static_cast<int64_t>(run.object.bytes.size());
  resize(code_fd_, code_end);
  resize(tensor_fd_, inputs_end_ + outputs_bytes_ * static_cast<int64_t>(runs.size()));
  std::vector<Json> requests;
  int64_t code_at = 0;
  for (const tune::Run& run : runs) {
    write_at(code_fd_, run.object.bytes.data(), run.object.bytes.size(), code_at);
    const int64_t moved = outputs_bytes_ * static_cast<int64_t>(requests.size());
    Json buffers = Json::array();
    for (const Region& region : regions_)
      buffers.push_back({region.offset + (region.is_output ? moved : 0), region.bytes, region.is_output});
    requests.push_back({{"symbol", run.object.symbol},
                        {"code_offset", code_at},
                        {"code_bytes", run.object.bytes.size()},
                        {"buffers", std::move(buffers)},
                        {"shared_bytes", run.workspace.shared_bytes},
                        {"worker_bytes", run.workspace.worker_bytes},
                        {"dims", workload_->dims},
                        {"threads", options.threads},
                        {"number", options.number},
                        {"repeat", options.repeat},
                        {"min_seconds", options.min_repeat_ms / 1000},
                        {"flush_cache", options.flush_cache}});
    code_at += static_cast<int64_t>(run.object.bytes.size());
  }
  return requests;
}

Measurement Exchange::read(size_t place, const Json& answer) const {
  if (answer.contains("error")) {
    return {
        static_cast<TrialError>(answer.at("error").get<int>()), answer.at("message").get<std::string>(), {}};
  }
  Measurement result = check(place, answer.at("code").get<int32_t>());
  if (result.error == TrialError::kNone && answer.at("overrun").get<bool>())
    result = {TrialError::kWrongAnswer, "wrote past the end of a buffer", {}};
  if (result.error == TrialError::kNone) answer.at("seconds").get_to(result.seconds);
  if (result.error == TrialError::kNone && result.seconds.empty())
    result = {TrialError::kRuntime,
              "the reference refuses all data that was tried, so there is nothing to time",
              {}};
  return result;
}

Measurement Exchange::check(size_t place, int32_t code) const {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < workload_->outputs.size(); ++i) {
    const ir::ValueType& type = workload_->outputs[i];
    outputs.emplace_back(type.dtype, type.shape);
    const Region& at = regions_[workload_->inputs.size() + i];
    read_at(tensor_fd_, outputs.back().data(), static_cast<size_t>(at.bytes),
            at.offset + outputs_bytes_ * static_cast<int64_t>(place));
  }
  try {
    workload_->check(code, outputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kWrongAnswer) throw;
    return {TrialError::kWrongAnswer, error.message(), {}};
  }
  return {};
}

}  // namespace tensormill::measure
