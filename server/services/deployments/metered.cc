#include "server/services/deployments/metered.h"

#include <chrono>

#include "runtime/base/error.h"
#include "server/jobs/job_attempt.h"

namespace tensormill::server {

namespace {

std::string_view name_of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return error_code_info(known == nullptr ? ErrorCode::kInternal : known->code()).name;
}

/// Counts one inference: `start` is given what to tell its end.
template <typename Result, typename Start>
void metered(metrics::Registry& registry, metrics::LatencyHistory& history, const std::string& name,
             const std::string& trace_id, services::Done<Result> done, const Start& start) {
  using Outcome = services::Outcome<Result>;
  const auto begun = std::chrono::steady_clock::now();
  const auto leave = [&registry, &history, begun, name](const std::string& version, std::string_view what) {
    const auto now = std::chrono::steady_clock::now();
    what == "ok" ? history.answered(name, now, now - begun) : history.failed(name, now);
    registry.add("infer_queue_depth", {{"model", name}}, -1);
    registry.count("infer_requests_total",
                   {{"model", name}, {"version", version}, {"outcome", std::string(what)}});
  };
  registry.add("infer_queue_depth", {{"model", name}}, 1);
  try {
    start([&registry, name, trace_id, leave, done = std::move(done)](Outcome outcome) {
      done(Outcome::of([&] {
        try {
          Result result = outcome.take();
          const metrics::Labels labels = {{"model", name}, {"version", result.version}};
          registry.observe("infer_queue_seconds", labels, result.timing.queue_ms / 1e3, trace_id);
          registry.observe("infer_compute_seconds", labels, result.timing.compute_ms / 1e3, trace_id);
          registry.observe("infer_batch_size", labels, static_cast<double>(result.batch_rows));
          leave(result.version, "ok");
          return result;
        } catch (const std::exception& error) {
          leave("", name_of(error));
          throw;
        }
      }));
    });
  } catch (const std::exception& error) {
    leave("", name_of(error));
    throw;
  }
}

}  // namespace

std::shared_ptr<void> MeteredDeployments::admit(const std::string& name, const std::string& version) {
  try {
    return inner_.admit(name, version);
  } catch (const std::exception& error) {
    // It comes to no inference, which would count it. A name that no deployment has is a stranger's text: no
    // series.
    const auto* known = dynamic_cast<const Error*>(&error);
    if (known != nullptr && known->code() == ErrorCode::kNotFound) throw;
    registry_.count("infer_requests_total",
                    {{"model", name}, {"version", ""}, {"outcome", std::string(name_of(error))}});
    history_.failed(name, std::chrono::steady_clock::now());
    throw;
  }
}

services::PutResult MeteredDeployments::put(const std::string& name, const services::DeploymentSpec& spec,
                                            const services::CallContext& context) {
  services::PutResult result = inner_.put(name, spec, context);
  forget_gone(result.deployment);
  return result;
}

services::PutResult MeteredDeployments::rollback(const std::string& name,
                                                 const services::CallContext& context) {
  services::PutResult result = inner_.rollback(name, context);
  forget_gone(result.deployment);
  return result;
}

void MeteredDeployments::forget_gone(const services::Deployment& deployment) {
  std::vector<metrics::Labels> kept = {{{"model", deployment.name}, {"version", ""}}};
  for (const services::DeploymentVersion& version : deployment.versions) {
    kept.push_back({{"model", deployment.name}, {"version", version.version}});
  }
  registry_.forget({{"model", deployment.name}}, kept);
}

void MeteredDeployments::remove(const std::string& name, const std::optional<std::string>& version,
                                const services::CallContext& context) {
  inner_.remove(name, version, context);
  metrics::Labels labels = {{"model", name}};
  if (version) labels.emplace_back("version", *version);
  registry_.forget(labels);
  if (!version) history_.forget(name);
}

services::Traffic MeteredDeployments::traffic(const std::string& name) {
  inner_.get(name);
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  const metrics::LatencyHour hour = history_.hour(name, std::chrono::steady_clock::now());
  const auto span = [&](const metrics::LatencySpan& from, int64_t minutes_ago) {
    return services::TrafficSpan{
        {now_ms - (minutes_ago * 60'000)}, from.answered, from.failed, from.p50_ms, from.p95_ms, from.p99_ms};
  };
  services::Traffic traffic;
  const auto minutes = static_cast<int64_t>(hour.minutes.size());
  traffic.hour = span(hour.whole, minutes);
  for (int64_t i = 0; i < minutes; ++i) {
    traffic.minutes.push_back(span(hour.minutes[static_cast<size_t>(i)], minutes - i));
  }
  return traffic;
}

void MeteredDeployments::infer(const std::string& name, const std::string& version,
                               services::NamedTensors inputs, const services::RunOptions& options,
                               const services::CallContext& context,
                               services::Done<services::RunResult> done) {
  const auto infer = [&](services::Done<services::RunResult> end) {
    inner_.infer(name, version, std::move(inputs), options, context, std::move(end));
  };
  // No labels from names that are not there: strangers must not make series.
  inner_.has(name) ? metered(registry_, history_, name, context.trace_id, std::move(done), infer)
                   : infer(std::move(done));
}

void MeteredDeployments::infer_pictures(const std::string& name, const std::string& version,
                                        services::PictureFiles pictures, const services::RunOptions& options,
                                        const services::CallContext& context,
                                        services::Done<services::RunResult> done) {
  const auto infer = [&](services::Done<services::RunResult> end) {
    inner_.infer_pictures(name, version, std::move(pictures), options, context, std::move(end));
  };
  inner_.has(name) ? metered(registry_, history_, name, context.trace_id, std::move(done), infer)
                   : infer(std::move(done));
}

void MeteredDeployments::classify(const std::string& name, std::string_view image, int top,
                                  const services::CallContext& context,
                                  services::Done<services::ClassifyResult> done) {
  const auto classify = [&](services::Done<services::ClassifyResult> end) {
    inner_.classify(name, image, top, context, std::move(end));
  };
  inner_.has(name) ? metered(registry_, history_, name, context.trace_id, std::move(done), classify)
                   : classify(std::move(done));
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
