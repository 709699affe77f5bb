#include "server/worker/worker.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <optional>

#include "compiler/driver/compile.h"
#include "compiler/target/fingerprint.h"
#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/memory_budget.h"
#include "runtime/parallel/thread_pool.h"
#include "server/jobs/child_slots.h"
#include "server/jobs/worker_pool.h"
#include "server/metrics/registry.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/carried_work.h"
#include "server/services/jobs/child_policy.h"
#include "server/services/jobs/compile_runner.h"
#include "server/services/jobs/measure_runner.h"
#include "server/services/jobs/run_runner.h"
#include "server/services/jobs/verify_runner.h"
#include "server/worker/remote_desk.h"
#include "server/worker/remote_source.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/env/posix_env.h"

namespace tensormill::worker {
namespace {

/// How often a server hears of an attempt: a cancel that it was told of takes effect as soon.
constexpr std::chrono::milliseconds kBeat{1'000};

std::string made_folder(storage::Env& env, const std::string& path) {
  storage::make_durable_folders(env, path);
  return path;
}

Json facts_of(const target::Target& host) {
  return {{"arch", host.is_x86() ? "x86_64" : "aarch64"},
          {"cpu", target::cpu_fingerprint(host)},
          {"target", host.canonical()},
          {"cores", host.facts.num_cores},
          {"memory_bytes", memory_of_this_machine()},
          {"version", driver::compiler_version()}};
}

jobs::ChildSlotsOptions slots_options(const config::Settings& settings) {
  jobs::ChildSlotsOptions options;
  options.memory = settings.children_memory > 0 ? settings.children_memory : memory_of_this_machine() / 4 * 3;
  return options;
}

server::CompileRunnerOptions compile_options(const config::Settings& settings, const target::Target& host,
                                             int slots) {
  server::CompileRunnerOptions options;
  options.import_timeout = settings.import_timeout;
  options.import_memory = settings.import_memory;
  options.timeout = settings.job_timeout;
  options.memory = settings.job_memory;
  options.max_model_bytes = settings.max_model_bytes;
  options.threads = std::max(1, host.facts.num_cores / slots);
  options.host = host;
  return options;
}

/// The lease of the item, whose blobs are in the cache then.
std::optional<Json> carried_lease(const WorkerOptions& options, storage::BlobCache& cache) {
  if (options.item.empty()) return std::nullopt;
  const auto file = MappedFile::open(options.item);
  server::CarriedItem item = server::read_item(file->bytes());
  for (const server::CarriedItem::Part& part : item.blobs) {
    const std::string path = cache.temporary();
    const std::string_view bytes(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    write_file(path, bytes);
    cache.admit(path, part.digest, storage::BlobForm::kPlain, true);
  }
  return std::move(item.lease);
}

void write_result(const std::string& path, const std::string& lease, int end,
                  const server::PackageSigner& signer) {
  const auto mapped = MappedFile::map(end, "the end of a lease");
  std::string text = server::result_line(lease);
  text += mapped->text();
  text += signer.sign(Digest::of(text));
  write_file(path, text);
}

}  // namespace

const std::vector<std::string>& known_verbs() {
  static const std::vector<std::string> verbs(services::kWorkerVerbs.begin(), services::kWorkerVerbs.end());
  return verbs;
}

/// In the order of construction: what stands below uses what stands above.
struct Worker::Parts {
  Parts(WorkerOptions with, const config::Settings& settings, std::function<void()> refused)
      : options(std::move(with)),
        link(options.server),
        root(made_folder(env, options.data)),
        lock(env.lock(root + "/lock")),
        host(target::host_target()),
        policy(server::make_child_policy(settings, registry)),
        slots(slots_options(settings)),
        pool(std::max(1, host.facts.num_cores)),
        signer(options.signing_key),
        cache(env, root + "/inputs", options.cache_bytes),
        carried(carried_lease(options, cache)),
        ended(refused),
        made(env, root + "/made"),
        source(link, made, source_options()),
        desk(link, source, cache, settings.max_model_bytes),
        compile({made, desk, signer, compile_options(settings, host, options.slots)}),
        benchmark(desk, pool, {settings.job_timeout, static_cast<uint64_t>(settings.run_memory)}),
        run(made, desk,
            {settings.run_timeout, static_cast<uint64_t>(settings.run_memory),
             static_cast<uint64_t>(settings.max_tensor_bytes), std::max(1, host.facts.num_cores)}),
        verify(desk, {settings.run_timeout, static_cast<uint64_t>(settings.run_memory),
                      std::max(1, host.facts.num_cores)}),
        measure(made, desk, pool,
                {{settings.job_timeout, static_cast<uint64_t>(settings.run_memory)},
                 static_cast<uint64_t>(settings.max_tensor_bytes),
                 policy,
                 host}) {
    // Nothing that is made here stays: what was told is the server's.
    made.keep_roots([] { return std::vector<Digest>(); });
    made.collect();
    source.on_refusal(std::move(refused));
    std::vector<jobs::JobRunner*> runners;
    for (jobs::JobRunner* one :
         std::initializer_list<jobs::JobRunner*>{&compile, &benchmark, &run, &verify, &measure}) {
      if (std::find(options.verbs.begin(), options.verbs.end(), one->kind()) != options.verbs.end())
        runners.push_back(one);
    }
    jobs::WorkerPoolOptions pool_options;
    pool_options.threads = options.slots;
    pool_options.folder = root + "/jobs";
    pool_options.owner = options.name;
    pool_options.lease = 3 * kBeat;
    pool_options.commit_every = kBeat / 2;
    pool_options.policy = policy;
    pool_options.slots = &slots;
    workers.emplace(source, made, runners, pool_options);
  }

  RemoteSourceOptions source_options() {
    RemoteSourceOptions with;
    with.name = options.name;
    with.labels = options.labels;
    with.compiler = driver::compiler_build();
    with.facts = facts_of(host);
    with.status = [this] { return status(); };
    with.folder = root + "/jobs";
    with.tell = options.tell;
    with.carried = carried;
    with.deliver = [this](const std::string& lease, int fd, uint64_t) {
      write_result(options.result, lease, fd, signer);
      ended();
    };
    return with;
  }

  Json status() {
    std::array<double, 1> load{};
    const bool knows_load = ::getloadavg(load.data(), 1) == 1;
    return {{"load", knows_load ? Json(load[0]) : Json()}, {"cache_bytes", cache.bytes()}};
  }

  const WorkerOptions options;
  ServerLink link;  ///< before anything is made on the disk: the URL may be wrong
  storage::PosixEnv env;
  const std::string root;
  std::unique_ptr<storage::EnvLock> lock;
  metrics::Registry registry;
  target::Target host;
  std::shared_ptr<const jobs::ChildPolicy> policy;
  jobs::ChildSlots slots;
  parallel::ThreadPool pool;
  server::PackageSigner signer;
  storage::BlobCache cache;
  std::optional<Json> carried;
  const std::function<void()> ended;
  storage::FolderBlobStore made;
  RemoteSource source;
  RemoteDesk desk;
  server::CompileRunner compile;
  server::BenchmarkRunner benchmark;
  server::RunRunner run;
  server::VerifyItemRunner verify;
  server::MeasureRunner measure;
  std::optional<jobs::WorkerPool> workers;
};

Worker::Worker(WorkerOptions options, const config::Settings& settings, std::function<void()> refused) {
  jobs::become_subreaper();
  parts_ = std::make_unique<Parts>(std::move(options), settings, std::move(refused));
}

Worker::~Worker() { stop(); }

void Worker::drain() {
  parts_->source.leave();
  parts_->workers->drain();
  parts_->source.tell_end();
}

void Worker::stop() {
  parts_->source.give_up();
  parts_->workers->stop();
}

std::string Worker::refusal() { return parts_->source.refusal(); }

}  // namespace tensormill::worker
