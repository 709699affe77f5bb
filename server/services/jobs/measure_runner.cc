#include "server/services/jobs/measure_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "compiler/target/fingerprint.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/memory_file.h"
#include "server/measure/exchange.h"
#include "server/measure/host.h"
#include "server/services/deployments/host_runs.h"
#include "server/services/jobs/child_run.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

namespace {

/// What candidates computed, each distinct text once.
class DistinctOutputs {
public:
  DistinctOutputs(storage::BlobStore& blobs, uint64_t max_bytes)
      : writer_(blobs.writer({.max_bytes = max_bytes})) {}
  uint64_t place_of(const std::string& bytes) {
    const auto [found, is_new] = places_.try_emplace(Digest::of(bytes).text(), places_.size());
    if (is_new) writer_->write(bytes);
    return found->second;
  }
  Json commit() { return places_.empty() ? Json() : Json(writer_->commit().text()); }

private:
  std::unique_ptr<storage::BlobWriter> writer_;
  std::map<std::string, uint64_t> places_;
};

/// Room for all that the requests name, in bytes from the file's beginning.
uint64_t room_of(const Json& requests, uint64_t max_bytes) {
  uint64_t room = 0;
  for (const Json& request : requests) {
    for (const measure::NamedBuffer& buffer : measure::buffers_of(request)) {
      if (buffer.end() > max_bytes)
        throw Error(ErrorCode::kTooLarge,
                    "the batch's tensors take more than " + std::to_string(max_bytes) + " bytes");
      room = std::max(room, buffer.end());
    }
  }
  return room;
}

std::string computed_outputs(const Json& request, int tensors) {
  std::string all;
  for (const measure::NamedBuffer& buffer : measure::buffers_of(request)) {
    if (!buffer.is_output) continue;
    const size_t begin = all.size();
    all.resize(begin + buffer.bytes);
    for (size_t at = begin; at < all.size();) {
      const auto offset = static_cast<off_t>(buffer.offset + (at - begin));
      const ssize_t got = ::pread(tensors, all.data() + at, all.size() - at, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw_errno(errno, "cannot read a memory file");
      at += static_cast<size_t>(got);
    }
  }
  return all;
}

Json measure_stage(size_t done, size_t total) {
  return {{"stage", "measure"}, {"done", done}, {"total", total}};
}

}  // namespace

storage::JobFinish MeasureRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const target::Target target = target::parse_target(resolved.at("target").get<std::string>(), {});
  if (!host_runs(target, options_.host))
    throw Error(ErrorCode::kNotSupported, "what is to be measured is for " + target.canonical() +
                                              ", and this machine is " + options_.host.canonical());
  Json result =
      resolved.contains("requests") ? run_candidates(context, resolved) : run_package(context, resolved);
  result["cpu"] = target::cpu_fingerprint(options_.host);
  result["cores"] = options_.host.facts.num_cores;
  storage::JobFinish finish;
  finish.result = result.dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

Json MeasureRunner::run_candidates(jobs::JobContext& context, const Json& resolved) {
  const Json& requests = resolved.at("requests");
  const FileDescriptor code = memory_file("code", desk_.open_blob(context, resolved, "code")->text());
  const FileDescriptor tensors =
      memory_file("tensors", desk_.open_blob(context, resolved, "tensors")->text());
  const uint64_t room = room_of(requests, options_.max_tensor_bytes);
  if (::ftruncate(tensors.get(), static_cast<off_t>(room)) != 0)
    throw_errno(errno, "cannot size a memory file");
  // No file needs to become larger than the tensors' is.
  measure::MeasureHost host({.memory = options_.benchmark.memory,
                             .file_bytes = std::max<uint64_t>(room, 1),
                             .policy = options_.policy},
                            code.get(), tensors.get());
  DistinctOutputs outputs(blobs_, options_.max_tensor_bytes);
  Json answers = Json::array();
  for (const Json& request : requests) {
    context.progress(measure_stage(answers.size(), requests.size()).dump());
    const parallel::Lease lease = lease_cores(pool_, request.at("threads").get<int>(), context);
    const auto quiet = context.quiet();
    Json answer =
        host.measure(request, resolved.at("timeout_s").get<double>(), [&] { context.keep_alive(); });
    if (answer.contains("code"))
      answer["outputs"] = outputs.place_of(computed_outputs(request, tensors.get()));
    answers.push_back(std::move(answer));
  }
  context.progress(measure_stage(requests.size(), requests.size()).dump());
  return {{"answers", std::move(answers)}, {"outputs", outputs.commit()}};
}

Json MeasureRunner::run_package(jobs::JobContext& context, const Json& resolved) {
  const MemberBlobs members = desk_.open_members(context, resolved);
  BenchmarkRequest request;
  resolved.at("repeat").get_to(request.repeat);
  resolved.at("number").get_to(request.number);
  resolved.at("threads").get_to(request.threads);
  resolved.at("profile").get_to(request.profile);
  request.fill_mode = parse_fill_mode(resolved.at("fill_mode").get<std::string>());
  // Servers of older versions name none.
  request.dims = resolved.value("dims", std::vector<int64_t>());
  context.progress(measure_stage(0, 1).dump());
  PackageTiming timing =
      benchmark_package(context, pool_, descriptors_of(members), request, options_.benchmark);
  context.progress(measure_stage(1, 1).dump());
  return {{"timing", {{"runs_ms", std::move(timing.runs_ms)}, {"profile", std::move(timing.profile)}}}};
}

}  // namespace tensormill::server
