#include "server/services/server.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "api/services/services.h"
#include "runtime/base/error.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/worker_pool.h"
#include "server/services/benchmark.h"
#include "server/services/blob_collector.h"
#include "server/services/collect_metrics.h"
#include "server/services/compile_runner.h"
#include "server/services/deployment_service.h"
#include "server/services/info_service.h"
#include "server/services/job_service.h"
#include "server/services/key_file.h"
#include "server/services/metered.h"
#include "server/services/model_service.h"
#include "server/services/package_service.h"
#include "server/services/store_service.h"
#include "server/services/tune_runner.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"

namespace tensormill::server {

namespace {

std::string make_root(storage::Env& env, const std::string& path) {
  storage::make_durable_folders(env, path);
  return path;
}

int64_t unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

int run_threads(const config::Settings& settings, const target::Target& host) {
  return settings.run_threads > 0 ? settings.run_threads : std::max(1, host.facts.num_cores);
}

CompileRunnerOptions compile_options(const config::Settings& settings, const target::Target& host) {
  CompileRunnerOptions options;
  options.import_timeout = settings.import_timeout;
  options.import_memory = settings.import_memory;
  options.timeout = settings.job_timeout;
  options.memory = settings.job_memory;
  options.max_model_bytes = settings.max_model_bytes;
  options.threads = std::max(1, host.facts.num_cores / settings.job_workers);
  return options;
}

BenchmarkOptions benchmark_options(const config::Settings& settings) {
  return {settings.job_timeout, static_cast<uint64_t>(settings.run_memory)};
}

std::map<std::string, int64_t> limits_of(const config::Settings& settings) {
  return {{"limits.json_bytes", settings.max_json_bytes},
          {"limits.image_bytes", settings.max_image_bytes},
          {"limits.records_bytes", settings.max_records_bytes},
          {"limits.tensor_bytes", settings.max_tensor_bytes},
          {"limits.model_bytes", settings.max_model_bytes},
          {"jobs.queue", settings.job_queue},
          {"jobs.workers", settings.job_workers}};
}

}  // namespace

/// In the order of construction: what stands below uses what stands above.
struct Server::Parts {
  explicit Parts(const config::Settings& settings)
      : host(target::host_target()),
        root(make_root(env, settings.data)),
        catalog(env, root + "/catalog.db"),
        blobs(env, root),
        children(root + "/children"),
        pool(run_threads(settings, host)),
        executors(make_in_process_host(
            pool,
            {run_threads(settings, host), static_cast<int64_t>(settings.run_memory), settings.run_timeout})),
        info(host, limits_of(settings)),
        targets(host),
        uploads(env, root, blobs, {.max_bytes = static_cast<uint64_t>(settings.max_model_bytes)}, unix_ms),
        collector(blobs, catalog, {.package_expiry = settings.package_expiry, .uploads = &uploads}),
        quota(blobs, uploads, static_cast<uint64_t>(settings.store_quota)),
        store(blobs, catalog, uploads, collector, quota, root),
        models(blobs, catalog, children, collector, uploads, quota,
               {settings.max_model_bytes, host, settings.import_timeout, settings.import_memory}),
        packages(blobs, catalog, children, collector,
                 {settings.run_timeout, settings.run_memory, run_threads(settings, host)}),
        deployments(blobs, catalog, *executors, {settings.load_wait}),
        metered_deployments(deployments, registry),
        records(catalog, host),
        compile({blobs, catalog, records, compile_options(settings, host)}),
        metered_compile(compile, registry),
        tune({blobs, catalog, records, compile_options(settings, host)}, pool, benchmark_options(settings)),
        metered_tune(tune, registry),
        benchmark(blobs, catalog, pool, benchmark_options(settings)),
        metered_benchmark(benchmark, registry),
        queue(catalog) {
    // At start nothing runs, so what no row names is what an earlier process did not finish.
    collector.collect();
    deployments.adopt();
    jobs::WorkerPoolOptions options;
    options.threads = settings.job_workers;
    options.folder = root + "/jobs";
    workers.emplace(queue, blobs,
                    std::vector<jobs::JobRunner*>{&metered_compile, &metered_tune, &metered_benchmark},
                    options);
    jobs.emplace(queue, *workers, blobs, catalog, records, registry, host,
                 JobServiceOptions{settings.job_queue});
    restorer = std::jthread([this] { restore(); });
    if (!settings.keys_file.empty()) keys.emplace(settings.keys_file);
    collect_metrics(registry, blobs, catalog, deployments);
    services = {&info,
                &targets,
                &health,
                &models,
                &*jobs,
                &packages,
                &metered_deployments,
                &store,
                &records,
                keys ? &*keys : nullptr};
  }

  /// Not ready until all deployments that the catalog holds are loaded, or failed.
  void restore() {
    try {
      deployments.restore();
      health.set_restored();
    } catch (const std::exception& error) {
      health.set_broken(std::string("restoring deployments: ") + error.what());
    }
  }

  metrics::Registry registry;
  storage::PosixEnv env;
  target::Target host;
  std::string root;
  storage::SqliteCatalog catalog;
  storage::BlobStore blobs;
  ChildRunner children;
  parallel::ThreadPool pool;
  std::unique_ptr<ExecutorHost> executors;
  InfoServiceImpl info;
  TargetServiceImpl targets;
  HealthServiceImpl health;
  storage::UploadStore uploads;
  BlobCollector collector;
  StoreQuota quota;
  StoreServiceImpl store;
  ModelServiceImpl models;
  PackageServiceImpl packages;
  DeploymentServiceImpl deployments;
  MeteredDeployments metered_deployments;
  TuningRecords records;
  CompileRunner compile;
  MeteredRunner metered_compile;
  TuneRunner tune;
  MeteredRunner metered_tune;
  BenchmarkRunner benchmark;
  MeteredRunner metered_benchmark;
  jobs::JobQueue queue;
  std::optional<jobs::WorkerPool> workers;
  std::optional<JobServiceImpl> jobs;
  std::optional<KeyFile> keys;
  services::Services services;
  std::jthread restorer;
};

Server::Server(const config::Settings& settings) {
  jobs::become_subreaper();
  parts_ = std::make_unique<Parts>(settings);
}

Server::~Server() = default;

const services::Services& Server::services() const { return parts_->services; }

metrics::Registry& Server::metrics() { return parts_->registry; }

void Server::set_draining() { parts_->health.set_draining(); }

void Server::stop() { parts_->workers->stop(); }

}  // namespace tensormill::server
