#include "server/services/run_apart.h"

#include <algorithm>

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "runtime/npz/npz.h"
#include "server/services/run_package.h"

namespace tensormill::server {

namespace {

Json run_request(const services::RunOptions& options, const ApartLimits& limits) {
  const std::chrono::microseconds timeout =
      std::min(limits.timeout, options.timeout.value_or(limits.timeout));
  Json request = {{"seed", options.seed},
                  {"repeat", options.repeat},
                  {"number", options.number},
                  {"profile", options.profile},
                  {"threads", limits.threads},
                  {"memory_budget", limits.memory},
                  {"timeout_ms", std::chrono::ceil<std::chrono::milliseconds>(timeout).count()}};
  if (options.fill_mode) request["fill_mode"] = fill_mode_name(*options.fill_mode);
  return request;
}

}  // namespace

services::RunResult run_apart(ChildRunner& children, const MemberBlobs& members,
                              const services::NamedTensors& inputs, const services::RunOptions& options,
                              const ApartLimits& limits, const std::stop_token& cancelled) {
  std::vector<npz::NamedTensor> tensors;
  for (const auto& [name, tensor] : inputs) tensors.push_back({name, tensor});
  const FileDescriptor feed = memory_file("inputs", npz::write_npz(tensors));
  const FileDescriptor answer = memory_file("outputs");
  jobs::ChildSpec spec;
  spec.command = "child-run";
  spec.arguments = {run_request(options, limits).dump()};
  spec.descriptors = {members.at(std::string(package::kMetadataMember))->fd(),
                      members.at(std::string(package::kPlanMember))->fd(),
                      members.at(std::string(package::kCodeMember))->fd(),
                      members.at(std::string(package::kParamsMember))->fd(),
                      feed.get(),
                      answer.get()};
  spec.limits.data_bytes = limits.memory;
  spec.limits.files = false;
  spec.limits.nice = jobs::kRunNice;  // measurements are jobs of their own
  // The start of the process and the transfers are not the run's.
  spec.time_limit = std::chrono::ceil<std::chrono::milliseconds>(limits.timeout) + std::chrono::seconds(5);
  const Json timing = parse_json(children.run(std::move(spec), cancelled));
  services::RunResult result;
  result.timing.compute_ms = timing.at("compute_ms").get<double>();
  result.timing.runs_ms = timing.at("runs_ms").get<std::vector<double>>();
  if (timing.contains("profile")) result.timing.profile_json = timing.at("profile").dump();
  const auto file = MappedFile::map(answer.get(), "outputs");
  for (npz::NamedTensor& tensor : npz::read_npz(file->bytes())) {
    result.outputs.emplace_back(std::move(tensor.name), std::move(tensor.tensor));
  }
  return result;
}

}  // namespace tensormill::server
