#include "server/services/metered.h"

#include <chrono>

#include "runtime/base/error.h"
#include "server/jobs/job_attempt.h"

namespace tensormill::server {

namespace {

int64_t batch_rows_of(const services::RunResult& result) { return result.batch_rows; }
int64_t batch_rows_of(const services::ClassifyResult& result) { return result.batch_rows; }

/// Counts one inference.
template <typename Result, typename Function>
Result metered(metrics::Registry& registry, const std::string& name, const Function& function) {
  const auto outcome = [&](const std::string& version, std::string_view what) {
    registry.count("infer_requests_total",
                   {{"model", name}, {"version", version}, {"outcome", std::string(what)}});
  };
  struct InWork {
    metrics::Registry& registry;
    const std::string& name;
    InWork(metrics::Registry& r, const std::string& n) : registry(r), name(n) {
      registry.add("infer_queue_depth", {{"model", name}}, 1);
    }
    ~InWork() { registry.add("infer_queue_depth", {{"model", name}}, -1); }
  };
  try {
    const InWork in_work(registry, name);
    Result result = function();
    const metrics::Labels labels = {{"model", name}, {"version", result.version}};
    registry.observe("infer_queue_seconds", labels, result.timing.queue_ms / 1e3);
    registry.observe("infer_compute_seconds", labels, result.timing.compute_ms / 1e3);
    registry.observe("infer_batch_size", labels, static_cast<double>(batch_rows_of(result)));
    outcome(result.version, "ok");
    return result;
  } catch (const Error& error) {
    outcome("", error_code_info(error.code()).name);
    throw;
  }
}

}  // namespace

services::PutResult MeteredDeployments::put(const std::string& name, const services::DeploymentSpec& spec,
                                            const services::CallContext& context) {
  services::PutResult result = inner_.put(name, spec, context);
  // Versions that went for this one take their series along; errors have no version, the queue is the name's.
  std::vector<metrics::Labels> kept = {{{"model", name}, {"version", ""}}};
  for (const services::DeploymentVersion& version : result.deployment.versions) {
    kept.push_back({{"model", name}, {"version", version.version}});
  }
  registry_.forget({{"model", name}}, kept);
  return result;
}

void MeteredDeployments::remove(const std::string& name, const std::optional<std::string>& version,
                                const services::CallContext& context) {
  inner_.remove(name, version, context);
  metrics::Labels labels = {{"model", name}};
  if (version) labels.emplace_back("version", *version);
  registry_.forget(labels);
}

services::RunResult MeteredDeployments::infer(const std::string& name, const std::string& version,
                                              services::NamedTensors inputs,
                                              const services::RunOptions& options,
                                              const services::CallContext& context) {
  const auto infer = [&] { return inner_.infer(name, version, std::move(inputs), options, context); };
  // No labels from names that are not there: strangers must not make series.
  return inner_.has(name) ? metered<services::RunResult>(registry_, name, infer) : infer();
}

services::ClassifyResult MeteredDeployments::classify(const std::string& name, std::string_view image,
                                                      int top, const services::CallContext& context) {
  const auto classify = [&] { return inner_.classify(name, image, top, context); };
  return inner_.has(name) ? metered<services::ClassifyResult>(registry_, name, classify) : classify();
}

storage::JobFinish MeteredRunner::run(jobs::JobContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const auto ended = [&](const char* state) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    registry_.count("job_total", {{"kind", kind()}, {"state", state}});
    registry_.observe("job_duration_seconds", {{"kind", kind()}}, spent.count());
  };
  try {
    storage::JobFinish finish = inner_.run(context);
    ended("succeeded");
    return finish;
  } catch (const Error&) {
    ended("failed");
    throw;
  } catch (const jobs::JobInterrupted& interruption) {
    // A crash, a lost lease and a shutdown are no end: the job is tried again.
    if (interruption.why() == jobs::Interruption::kCancelled) ended("cancelled");
    throw;
  }
}

}  // namespace tensormill::server
