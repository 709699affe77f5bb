#include "server/services/deployments/run_apart.h"

#include <algorithm>

#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "runtime/npz/npz.h"
#include "server/services/jobs/child_run.h"

namespace tensormill::server {

namespace {

FileDescriptor feed_of(const services::NamedTensors& inputs) {
  std::vector<npz::NamedTensor> tensors;
  for (const auto& [name, tensor] : inputs) tensors.push_back({name, tensor});
  return memory_file("inputs", npz::write_npz(tensors));
}

}  // namespace

services::RunResult run_apart(ChildRunner& children, const MemberBlobs& members,
                              const services::NamedTensors& inputs, const services::RunOptions& options,
                              const ApartLimits& limits, const std::stop_token& cancelled) {
  const ChildRunner::Clock::time_point deadline =
      ChildRunner::Clock::now() + options.timeout.value_or(limits.timeout);
  FileDescriptor feed;
  const FileDescriptor answer = memory_file("outputs");
  const std::chrono::microseconds timeout =
      std::min(limits.timeout, options.timeout.value_or(limits.timeout));
  const auto make = [&] {
    feed = feed_of(inputs);
    jobs::ChildSpec spec = child_run_spec(
        descriptors_of(members), feed, answer,
        {options, limits.threads, limits.memory, std::chrono::ceil<std::chrono::milliseconds>(timeout),
         jobs::kRunNice});  // measurements are jobs of their own
    // The start of the process and the transfers are not the run's.
    spec.time_limit = std::chrono::ceil<std::chrono::milliseconds>(limits.timeout) + std::chrono::seconds(5);
    return spec;
  };
  const Json timing = parse_json(children.run(limits.memory, make, cancelled, deadline));
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
