#include "server/services/server.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "api/services/services.h"
#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_budget.h"
#include "runtime/base/names.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/child_slots.h"
#include "server/jobs/worker_pool.h"
#include "server/services/answers.h"
#include "server/services/collect_metrics.h"
#include "server/services/deployments/deployment_rows.h"
#include "server/services/deployments/deployment_service.h"
#include "server/services/deployments/isolated_package.h"
#include "server/services/deployments/metered.h"
#include "server/services/deployments/run_apart.h"
#include "server/services/info_service.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/child_policy.h"
#include "server/services/jobs/compile_runner.h"
#include "server/services/jobs/crash_mark.h"
#include "server/services/jobs/job_service.h"
#include "server/services/jobs/report_runner.h"
#include "server/services/jobs/tune_runner.h"
#include "server/services/jobs/verify_runner.h"
#include "server/services/keys/audit_trail.h"
#include "server/services/keys/caller_quota.h"
#include "server/services/keys/key_store.h"
#include "server/services/program_id.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/blob_place.h"
#include "server/services/store/model_service.h"
#include "server/services/store/package_import.h"
#include "server/services/store/package_service.h"
#include "server/services/store/replica.h"
#include "server/services/store/store_service.h"
#include "server/services/workers/worker_service.h"
#include "storage/env/memory_env.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/open_catalog.h"
#include "storage/replica/shared_upload_store.h"
#include "storage/upload/folder_upload_store.h"

namespace tensormill::server {

namespace {

constexpr std::chrono::seconds kRestoreRetry{2};

/// How often what is loaded on demand is looked at.
constexpr std::chrono::milliseconds kIdleLook{1000};

std::string make_root(storage::Env& env, const std::string& path) {
  storage::make_durable_folders(env, path);
  return path;
}

std::unique_ptr<storage::Env> make_env(const config::Settings& settings) {
  if (settings.read_only) return std::make_unique<storage::MemoryEnv>();
  return std::make_unique<storage::PosixEnv>();
}

/// Where a read-only server's children work; nothing of the store is there. Goes with the object.
class Scratch {
public:
  explicit Scratch(bool wanted) {
    if (!wanted) return;
    path_ = (std::filesystem::temp_directory_path() / "tensormill-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) throw_errno(errno, "cannot make " + path_);
  }
  ~Scratch() {
    std::error_code ignored;  // the system empties its folder of temporary files
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

/// Name and path of each package, in order of name.
std::map<std::string, std::string> archives_in(const std::string& folder) {
  std::error_code failed;
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".tar") continue;
    if (!is_name(name)) throw Error(ErrorCode::kUsage, "models: " + name + " is no name of a deployment");
    found[name] = entry.path().string();
  }
  if (failed) throw Error(ErrorCode::kUsage, "models: " + folder + " cannot be read: " + failed.message());
  if (found.empty()) throw Error(ErrorCode::kUsage, "models: there is no NAME.tar in " + folder);
  return found;
}

int64_t unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

int run_threads(const config::Settings& settings, const target::Target& host) {
  return settings.run_threads > 0 ? settings.run_threads : std::max(1, host.facts.num_cores);
}

CompileRunnerOptions compile_options(const config::Settings& settings, const target::Target& host,
                                     std::shared_ptr<const jobs::ChildPolicy> policy) {
  CompileRunnerOptions options;
  options.import_timeout = settings.import_timeout;
  options.import_memory = settings.import_memory;
  options.timeout = settings.job_timeout;
  options.memory = settings.job_memory;
  options.max_model_bytes = settings.max_model_bytes;
  options.threads = std::max(1, host.facts.num_cores / std::max(1, settings.job_workers));
  options.policy = std::move(policy);
  return options;
}

uint64_t memory_in_flight(const config::Settings& settings) {
  constexpr uint64_t kLeast = uint64_t{512} << 20;
  if (settings.memory_in_flight > 0) return settings.memory_in_flight;
  return std::max(memory_of_this_machine() / 4, kLeast);
}

uint64_t arena_memory(const config::Settings& settings) {
  return settings.deployments_memory > 0 ? settings.deployments_memory : memory_of_this_machine() / 2;
}

IsolationOptions isolation_options(const config::Settings& settings, const target::Target& host,
                                   std::shared_ptr<const jobs::ChildPolicy> policy,
                                   std::shared_ptr<MemoryBudget> arenas, jobs::ChildSlots& slots) {
  IsolationOptions options;
  options.threads = run_threads(settings, host);
  options.memory = settings.run_memory;
  options.run_timeout = settings.run_timeout;
  options.policy = std::move(policy);
  options.arenas = std::move(arenas);
  options.slots = &slots;
  return options;
}

BenchmarkOptions benchmark_options(const config::Settings& settings) {
  return {settings.job_timeout, static_cast<uint64_t>(settings.run_memory)};
}

/// A read-only server's catalog is in memory, which refused strangers must not fill.
storage::AuditBounds audit_bounds(const config::Settings& settings) {
  constexpr int64_t kMaxInMemory = 10'000;
  const int64_t max_rows = settings.audit_max_rows;
  return {settings.audit_retention.count(), settings.read_only ? std::min(max_rows, kMaxInMemory) : max_rows};
}

std::unique_ptr<storage::UploadStore> make_uploads(const Replica* replica, storage::Env& env,
                                                   const std::string& root, storage::Catalog& catalog,
                                                   storage::BlobStore& blobs,
                                                   storage::UploadOptions options) {
  if (replica == nullptr)
    return std::make_unique<storage::FolderUploadStore>(env, root, blobs, options, unix_ms);
  return std::make_unique<storage::SharedUploadStore>(catalog, blobs, options, unix_ms);
}

std::map<std::string, int64_t> limits_of(const config::Settings& settings) {
  return {{"limits.json_bytes", settings.max_json_bytes},
          {"limits.image_bytes", settings.max_image_bytes},
          {"limits.image_pixels", settings.max_image_pixels},
          {"limits.memory_in_flight", static_cast<int64_t>(memory_in_flight(settings))},
          {"limits.records_bytes", settings.max_records_bytes},
          {"limits.tensor_bytes", settings.max_tensor_bytes},
          {"limits.model_bytes", settings.max_model_bytes},
          {"limits.jobs_per_key", settings.max_jobs_per_key},
          {"limits.bytes_per_key", settings.max_bytes_per_key},
          {"jobs.queue", settings.job_queue},
          {"jobs.workers", settings.job_workers}};
}

}  // namespace

/// In the order of construction: what stands below uses what stands above.
struct Server::Parts {
  Parts(const config::Settings& settings, storage::Env* given)
      : memory(std::make_shared<MemoryBudget>("limits.memory_in_flight", memory_in_flight(settings))),
        own_env(given == nullptr ? make_env(settings) : nullptr),
        env(given == nullptr ? *own_env : *given),
        scratch(settings.read_only),
        host(target::host_target()),
        root(make_root(env, settings.read_only ? scratch.path() : settings.data)),
        opened(storage::open_catalog(
            env, root, {settings.catalog_url, settings.catalog_password_file, settings.catalog_connections})),
        catalog(*opened.catalog),
        replica(Replica::make(settings, env, root, opened)),
        blob_store(open_blobs(settings, env, root, replica ? replica->place() : SharedPlace{})),
        blobs(*blob_store),
        policy(make_child_policy(settings, registry)),
        slots(child_slots_options(settings, host.facts.num_cores, memory_of_this_machine())),
        children(root + "/children", slots, policy),
        crash_mark(root + "/loading.crash"),
        pool(run_threads(settings, host)),
        arenas(std::make_shared<MemoryBudget>("deployments.memory", arena_memory(settings))),
        executors(make_in_process_host(
            pool, {run_threads(settings, host), static_cast<int64_t>(settings.run_memory),
                   settings.run_timeout, arenas})),
        info(host, limits_of(settings), confinement_info(*policy)),
        targets(host),
        upload_store(make_uploads(replica.get(), env, root, catalog, blobs,
                                  {.max_bytes = static_cast<uint64_t>(settings.max_model_bytes)})),
        uploads(*upload_store),
        collector(blobs, catalog, uploads,
                  {.package_expiry = settings.package_expiry,
                   .job_retention = settings.job_retention,
                   .record_expiry = settings.record_expiry}),
        quota(blobs, uploads, static_cast<uint64_t>(settings.store_quota)),
        callers(catalog, uploads,
                {settings.max_jobs_per_key, static_cast<uint64_t>(settings.max_bytes_per_key)}),
        store(blobs, catalog, uploads, collector, quota, callers, root),
        models(blobs, catalog, children, collector, uploads, quota, callers,
               {settings.max_model_bytes, host, settings.import_timeout, settings.import_memory}),
        queue(catalog),
        runs(queue, blobs, callers, settings.run_timeout),
        signer(settings.signing_key),
        trusted(settings.trusted_keys),
        packages(
            blobs, catalog, children, collector, quota, callers, signer, trusted,
            {settings.run_timeout, settings.run_memory, run_threads(settings, host), root + "/tmp", &runs}),
        deployments(blobs, catalog, *executors,
                    {.ready_wait = settings.load_wait,
                     .max_pixels = settings.max_image_pixels,
                     .run_apart =
                         [this, limits = ApartLimits{settings.run_timeout, settings.run_memory, 1}](
                             const MemberBlobs& members, const services::NamedTensors& inputs,
                             const services::RunOptions& options, const std::stop_token& cancelled) {
                           return run_apart(children, members, inputs, options, limits, cancelled);
                         },
                     .load_isolated =
                         [isolation = isolation_options(settings, host, policy, arenas, slots)](
                             const MemberBlobs& members, const HostOptions& options) {
                           return server::load_isolated(members, options, isolation);
                         },
                     .admit = admission(settings),
                     .crash_mark = &crash_mark,
                     .build = program_id(),
                     .replica = replica ? replica->name() : "",
                     .labels = settings.replica_labels,
                     .idle_look = kIdleLook}),
        metered_deployments(deployments, registry),
        records(catalog, host, &quota),
        desk(blobs, catalog, records),
        compile({blobs, desk, signer, compile_options(settings, host, policy)}),
        metered_compile(compile, registry),
        tune({{blobs, desk, signer, compile_options(settings, host, policy)}, catalog, records}, pool,
             benchmark_options(settings), queue),
        metered_tune(tune, registry),
        benchmark(desk, pool, benchmark_options(settings)),
        metered_benchmark(benchmark, registry),
        verify({{blobs, desk, signer, compile_options(settings, host, policy)}, catalog, records}, queue,
               {settings.run_timeout, static_cast<uint64_t>(settings.run_memory), pool.cores()}),
        metered_verify(verify, registry),
        report({blobs, desk, signer, compile_options(settings, host, policy)}, pool,
               benchmark_options(settings), host),
        metered_report(report, registry),
        answers(catalog),
        audit(catalog, registry, audit_bounds(settings)) {
    blobs.bound_by([this](uint64_t more) { quota.check(more); });
    // At start nothing runs, so what no row names is what an earlier process did not finish. Replicas have
    // holds on what they store, and the others have collected meanwhile: nobody waits for it there.
    if (!replica) collector.collect();
    if (settings.read_only) add_models(settings.models);
    deployments.adopt();
    jobs::WorkerPoolOptions options;
    options.threads = settings.job_workers;
    options.folder = root + "/jobs";
    options.lease = settings.job_lease;
    options.policy = policy;
    options.slots = &slots;
    if (replica) options.owner = replica->id();
    options.shares_logs = replica != nullptr;
    options.collect = [this] { collector.collect_released(); };
    workers.emplace(queue, blobs,
                    std::vector<jobs::JobRunner*>{&metered_compile, &metered_tune, &metered_benchmark,
                                                  &metered_verify, &metered_report},
                    options);
    remote.emplace(
        queue, blobs, collector, quota, desk, trusted, registry,
        WorkerServiceOptions{settings.job_lease, options.folder, root + "/tmp", driver::compiler_build(),
                             replica != nullptr, static_cast<uint64_t>(settings.max_tensor_bytes)});
    jobs.emplace(queue, *workers, blobs, catalog, callers, records, registry, host,
                 JobServiceOptions{settings.job_queue});
    restorer = std::jthread([this](const std::stop_token& stop) { restore(stop); });
    if (!settings.keys_file.empty()) keys.emplace(settings.keys_file, catalog, unix_ms);
    // Last of what others tell: all that hears it is there.
    watch = catalog.watch([this] { changed_elsewhere(); });
    collect_metrics(registry, blobs, catalog, deployments, callers, memory, slots, pool, settings.job_lease);
    services = {&info,
                &targets,
                &health,
                &models,
                &*jobs,
                &packages,
                &metered_deployments,
                &store,
                &records,
                keys ? &*keys : nullptr,
                &answers,
                &audit,
                &*remote};
  }

  /// What of the catalog may be mapped.
  std::function<void(const storage::PackageRow&)> admission(const config::Settings& settings) {
    if (!requires_signatures(settings, replica != nullptr)) return {};
    TrustedKeys keys = trusted;
    keys.trust(signer);
    return [this, keys](const storage::PackageRow& package) { check_stored_signature(blobs, keys, package); };
  }

  /// They are loaded as deployments of a store are; one that cannot be is failed and says why.
  void add_models(const std::string& folder) {
    for (const auto& [name, path] : archives_in(folder)) {
      try {
        DesiredVersion version;
        version.spec.package = packages.add_archive(path);
        const Digest package = Digest::parse(version.spec.package).value();
        catalog.put_deployment({name, desired_to_text({{unix_ms()}, 1, {version}, {}}), "{}", {package}});
      } catch (Error& error) {
        error.add_context(path);
        throw;
      }
    }
  }

  /// Not ready until all deployments that the catalog holds are loaded, or failed. A store that cannot be
  /// written, such as one on a full disk, may be well again later.
  void restore(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    while (!stop.stop_requested()) {
      try {
        deployments.restore();
        health.set_restored();
        if (!replica) return;
        collector.collect_soon();
        follow(stop);
        return;
      } catch (const std::exception& error) {
        health.set_broken(std::string("restoring deployments: ") + error.what());
      }
      std::unique_lock lock(mutex);
      never.wait_for(lock, stop, kRestoreRetry, [] { return false; });
    }
  }

  /// Where several processes share the catalog: what serves here becomes what it says, whoever changed it.
  void follow(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(follow_mutex);
        follow_wanted.wait(lock, stop, [&] { return is_behind; });
        is_behind = false;
      }
      if (stop.stop_requested()) return;
      try {
        deployments.follow();
      } catch (const Error&) {
        // The catalog is away: what is loaded serves, and its watch calls again soon.
      }
    }
  }

  void changed_elsewhere() {
    queue.changed_elsewhere();
    if (keys) keys->refresh();
    if (!replica) return;
    deployments.changed_elsewhere();
    const std::lock_guard lock(follow_mutex);
    is_behind = true;
    follow_wanted.notify_all();
  }

  std::mutex follow_mutex;
  std::condition_variable_any follow_wanted;
  bool is_behind = false;
  metrics::Registry registry;
  std::shared_ptr<MemoryBudget> memory;
  std::unique_ptr<storage::Env> own_env;
  storage::Env& env;
  Scratch scratch;
  target::Target host;
  std::string root;
  storage::StoreCatalog opened;
  storage::Catalog& catalog;
  std::unique_ptr<Replica> replica;  ///< null: a lone process
  std::unique_ptr<storage::BlobStore> blob_store;
  storage::BlobStore& blobs;
  std::shared_ptr<const jobs::ChildPolicy> policy;
  jobs::ChildSlots slots;
  ChildRunner children;
  CrashMark crash_mark;
  parallel::ThreadPool pool;
  std::shared_ptr<MemoryBudget> arenas;
  std::unique_ptr<ExecutorHost> executors;
  InfoServiceImpl info;
  TargetServiceImpl targets;
  HealthServiceImpl health;
  std::unique_ptr<storage::UploadStore> upload_store;
  storage::UploadStore& uploads;
  BlobCollector collector;
  StoreQuota quota;
  CallerQuota callers;
  StoreServiceImpl store;
  ModelServiceImpl models;
  jobs::JobQueue queue;
  RemoteRuns runs;
  PackageSigner signer;
  TrustedKeys trusted;
  PackageServiceImpl packages;
  DeploymentServiceImpl deployments;
  MeteredDeployments metered_deployments;
  TuningRecords records;
  StoreDesk desk;
  CompileRunner compile;
  MeteredRunner metered_compile;
  TuneRunner tune;
  MeteredRunner metered_tune;
  BenchmarkRunner benchmark;
  MeteredRunner metered_benchmark;
  VerifyRunner verify;
  MeteredRunner metered_verify;
  ReportRunner report;
  MeteredRunner metered_report;
  std::optional<jobs::WorkerPool> workers;
  std::optional<WorkerServiceImpl> remote;
  std::optional<JobServiceImpl> jobs;
  std::optional<KeyStore> keys;
  Answers answers;
  AuditTrail audit;
  services::Services services;
  std::jthread restorer;
  std::unique_ptr<storage::CatalogWatch> watch;
};

Server::Server(const config::Settings& settings, storage::Env* env) {
  jobs::become_subreaper();
  parts_ = std::make_unique<Parts>(settings, env);
}

Server::~Server() = default;

const services::Services& Server::services() const { return parts_->services; }

std::shared_ptr<MemoryBudget> Server::memory() { return parts_->memory; }

metrics::Registry& Server::metrics() { return parts_->registry; }

void Server::audit(const metrics::AnsweredRequest& request) { parts_->audit.answered(request); }

void Server::on_key_file_change(std::function<void(const Error*)> tell) {
  if (parts_->keys) parts_->keys->on_file_change(std::move(tell));
}

void Server::set_grpc_port(int port) { parts_->info.set_grpc_port(port); }

void Server::set_draining() {
  parts_->health.set_draining();
  parts_->deployments.stop_loading();
  parts_->remote->stop();
}

void Server::stop() { parts_->workers->stop(); }

}  // namespace tensormill::server
