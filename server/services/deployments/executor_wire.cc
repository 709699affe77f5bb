#include "server/services/deployments/executor_wire.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "server/jobs/pipe.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

namespace {

using std::chrono::steady_clock;

struct Head {
  uint64_t magic = 0;
  uint32_t kind = 0;
  uint32_t json_bytes = 0;
  uint64_t id = 0;
};

constexpr uint64_t kMagic = 0x6c6c696d6e6574ull;
constexpr uint32_t kMaxJson = 1u << 24;

[[noreturn]] void broken(const char* what) {
  throw Error(ErrorCode::kIo, std::string("the pipe between server and executor: ") + what);
}

/// False at an end before the first byte.
bool read_exactly(int fd, void* target, size_t bytes) {
  auto* at = static_cast<char*>(target);
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::read(fd, at + done, bytes - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(errno, "cannot read from the executor's pipe");
    if (got == 0 && done == 0) return false;
    if (got == 0) broken("it ends inside a frame");
    done += static_cast<size_t>(got);
  }
  return true;
}

/// The tensor that a row of the JSON says, within what is left of the bytes that a frame may have.
std::pair<std::string, Tensor> read_tensor(int fd, const Json& row, uint64_t& left) {
  const auto dtype = dtype_from_name(row.at(1).get<std::string>());
  const auto shape = row.at(2).get<Shape>();
  if (!dtype) broken("a type that there is not");
  uint64_t bytes = dtype_bytes(*dtype);
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) broken("an extent below 0");
    empty = empty || extent == 0;
    if (extent > 0 && bytes > left / static_cast<uint64_t>(extent)) broken("a tensor that is too large");
    bytes *= static_cast<uint64_t>(std::max<int64_t>(extent, 1));
  }
  Tensor tensor(*dtype, shape);
  if (!empty && !read_exactly(fd, tensor.data(), tensor.num_bytes())) broken("it ends inside a frame");
  left -= empty ? 0 : bytes;
  return {row.at(0).get<std::string>(), std::move(tensor)};
}

}  // namespace

std::string frame_head(FrameKind kind, uint64_t id, Json json, const services::NamedTensors& tensors) {
  Json rows = Json::array();
  for (const auto& [name, tensor] : tensors)
    rows.push_back({name, std::string(dtype_name(tensor.dtype())), tensor.shape()});
  json["tensors"] = std::move(rows);
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  TM_CHECK(text.size() <= kMaxJson, "a frame's text is too long");
  const Head head{kMagic, static_cast<uint32_t>(kind), static_cast<uint32_t>(text.size()), id};
  std::string bytes(sizeof(head), '\0');
  std::memcpy(bytes.data(), &head, sizeof(head));
  return bytes + text;
}

std::optional<Frame> read_frame(int fd, uint64_t max_bytes) {
  Head head;
  if (!read_exactly(fd, &head, sizeof(head))) return std::nullopt;
  const bool known = head.kind >= static_cast<uint32_t>(FrameKind::kRun) &&
                     head.kind <= static_cast<uint32_t>(FrameKind::kError);
  if (head.magic != kMagic || !known || head.json_bytes > kMaxJson) broken("this is no frame");
  std::string text(head.json_bytes, '\0');
  if (!text.empty() && !read_exactly(fd, text.data(), text.size())) broken("it ends inside a frame");
  Frame frame{static_cast<FrameKind>(head.kind), head.id, parse_json(text), {}};
  try {
    for (const Json& row : frame.json.at("tensors")) frame.tensors.push_back(read_tensor(fd, row, max_bytes));
  } catch (const Json::exception&) {
    broken("a frame of the wrong form");
  }
  return frame;
}

bool write_frame(int fd, const std::string& head, const services::NamedTensors& tensors,
                 steady_clock::time_point deadline) {
  const auto write = [&](std::string_view bytes) {
    return jobs::write_pipe(fd, bytes, deadline) == jobs::Written::kAll;
  };
  return write(head) && std::all_of(tensors.begin(), tensors.end(), [&](const auto& one) {
           return write({static_cast<const char*>(one.second.data()), one.second.num_bytes()});
         });
}

Json run_options_to_json(const services::RunOptions& options) {
  Json json = {{"seed", options.seed},
               {"repeat", options.repeat},
               {"number", options.number},
               {"profile", options.profile},
               {"priority", options.priority}};
  if (options.fill_mode) json["fill_mode"] = fill_mode_name(*options.fill_mode);
  if (options.timeout) json["timeout_us"] = options.timeout->count();
  return json;
}

services::RunOptions run_options_from_json(const Json& json) {
  services::RunOptions options;
  json.at("seed").get_to(options.seed);
  json.at("repeat").get_to(options.repeat);
  json.at("number").get_to(options.number);
  json.at("profile").get_to(options.profile);
  json.at("priority").get_to(options.priority);
  if (json.contains("fill_mode"))
    options.fill_mode = parse_fill_mode(json.at("fill_mode").get<std::string>());
  if (json.contains("timeout_us"))
    options.timeout = std::chrono::microseconds(json.at("timeout_us").get<int64_t>());
  return options;
}

Json timing_to_json(const services::RunResult& result) {
  return {{"batch_rows", result.batch_rows},
          {"queue_ms", result.timing.queue_ms},
          {"compute_ms", result.timing.compute_ms},
          {"runs_ms", result.timing.runs_ms},
          {"profile", result.timing.profile_json}};
}

void read_timing(const Json& json, services::RunResult& result) {
  json.at("batch_rows").get_to(result.batch_rows);
  json.at("queue_ms").get_to(result.timing.queue_ms);
  json.at("compute_ms").get_to(result.timing.compute_ms);
  json.at("runs_ms").get_to(result.timing.runs_ms);
  json.at("profile").get_to(result.timing.profile_json);
}

}  // namespace tensormill::server
