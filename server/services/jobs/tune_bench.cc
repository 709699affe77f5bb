#include "server/services/jobs/tune_bench.h"

namespace tensormill::server {

std::vector<int> descriptors_of(const PackageFiles& package) {
  return {package.metadata.get(), package.plan.get(), package.code.get(), package.params.get()};
}

Json LocalBench::measure(const Json& requests, double timeout_seconds) {
  Json answers = Json::array();
  for (const Json& request : requests) {
    const parallel::Lease lease = lease_cores(pool_, threads_, context_);
    const auto quiet = context_.quiet();
    answers.push_back(host_.measure(request, timeout_seconds, [this] { context_.keep_alive(); }));
  }
  return answers;
}

Json LocalBench::roof(const target::Target& target) {
  const parallel::Lease lease = lease_cores(pool_, threads_, context_);
  const auto quiet = context_.quiet();
  return host_.measure_roof(threads_, target.facts.vector_bits, target.facts.l2_bytes,
                            [this] { context_.keep_alive(); });
}

PackageTiming LocalBench::benchmark(const PackageFiles& package, const BenchmarkRequest& request) {
  return benchmark_package(context_, pool_, descriptors_of(package), request, options_);
}

}  // namespace tensormill::server
