#include "server/report/remarks.h"

#include <cstdio>
#include <map>

#include "runtime/base/json.h"

namespace tensormill::report {

namespace {

std::string count_of(int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void add_log(const std::string& log, std::vector<std::string>& lines) {
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    if (end > at) lines.push_back(log.substr(at, end - at));
    at = end + 1;
  }
}

void add_schedules(const package::Metadata& metadata, std::vector<std::string>& lines) {
  std::map<std::string, int64_t> untuned;
  int64_t unverified = 0;
  for (const package::KernelInfo& kernel : metadata.kernels) {
    if (!kernel.tuning_reason.empty()) ++untuned[kernel.tuning_reason];
    unverified += kernel.verified == "not_run";
  }
  for (const auto& [reason, count] : untuned)
    lines.push_back(count_of(count, "kernel has its", "kernels have their") + " default schedule: " + reason);
  if (unverified > 0) {
    lines.push_back(count_of(unverified, "kernel was", "kernels were") +
                    " not compared with the reference: too large, or for another machine");
  }
}

void add_target(const target::Target& target, const target::Target& host, std::vector<std::string>& lines) {
  if (target.triple == host.triple && target.facts.vector_bits < host.facts.vector_bits) {
    lines.push_back("vectors of " + std::to_string(target.facts.vector_bits) + " bits, this machine has " +
                    std::to_string(host.facts.vector_bits));
  }
  if (target.triple == host.triple && !target.facts.fma && host.facts.fma)
    lines.push_back("no fused multiply-adds, which this machine has");
}

}  // namespace

std::vector<std::string> remarks(const package::Metadata& metadata, const std::string& compile_log,
                                 const target::Target& target, const target::Target& host,
                                 const Json& evaluation) {
  std::vector<std::string> lines;
  add_log(compile_log, lines);
  if (metadata.host_steps > 0) {
    lines.push_back(count_of(metadata.host_steps, "step is", "steps are") +
                    " no compiled kernel but the runtime's own code");
  }
  add_schedules(metadata, lines);
  add_target(target, host, lines);
  if (evaluation.is_null()) return lines;
  if (evaluation["interpreted"].get<bool>())
    lines.push_back("shapes of the set have no kernels and were interpreted, some hundred times as slow");
  for (const Json& step : evaluation["steps"]) {
    char share[16];
    std::snprintf(share, sizeof share, "%.0f %%", 100 * step["share"].get<double>());
    lines.push_back("step " + step["name"].get<std::string>() + " takes " + share + " of a run");
  }
  return lines;
}

}  // namespace tensormill::report
