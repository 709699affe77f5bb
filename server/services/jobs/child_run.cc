#include "server/services/jobs/child_run.h"

#include "runtime/base/json.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

std::vector<int> descriptors_of(const MemberBlobs& members) {
  std::vector<int> descriptors;
  for (const std::string_view name : package::kMembers) {
    const auto member = members.find(name);
    TM_CHECK(member != members.end(), "a package without " + std::string(name));
    descriptors.push_back(member->second->fd());
  }
  return descriptors;
}

jobs::ChildSpec child_run_spec(std::vector<int> members, const FileDescriptor& feed,
                               const FileDescriptor& answer, const ChildRun& run) {
  Json request = {{"seed", run.options.seed},
                  {"repeat", run.options.repeat},
                  {"number", run.options.number},
                  {"profile", run.options.profile},
                  {"threads", run.threads},
                  {"memory_budget", run.memory},
                  {"timeout_ms", run.timeout.count()},
                  {"dims", run.dims}};
  if (run.options.fill_mode) request["fill_mode"] = fill_mode_name(*run.options.fill_mode);
  jobs::ChildSpec spec;
  spec.command = "child-run";
  spec.arguments = {request.dump()};
  spec.descriptors = std::move(members);
  spec.descriptors.push_back(feed.get());
  spec.descriptors.push_back(answer.get());
  spec.limits.data_bytes = run.memory;
  spec.limits.kind = jobs::ChildKind::kRun;
  spec.limits.nice = run.nice;
  return spec;
}

}  // namespace tensormill::server
