// Lease to finish, one item a lease: how many cycles a second a catalog makes, with a reader that follows all
// events.
//   bench_catalog FOLDER|URL [WORKERS [CYCLES]]
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/postgres_catalog.h"

namespace tensormill::bench {
namespace {

using std::chrono::steady_clock;
using storage::Catalog;

constexpr int64_t kLeaseMs = 60'000;

std::unique_ptr<Catalog> open(storage::PosixEnv& env, const std::string& place, int workers) {
  if (!storage::is_pg_url(place)) return std::make_unique<storage::SqliteCatalog>(env, place + "/catalog.db");
  storage::PgOptions options;
  options.url = place;
  options.connections = workers;
  return std::make_unique<storage::PostgresCatalog>(std::move(options));
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void submit(Catalog& catalog, int items) {
  for (int i = 0; i < items; ++i) {
    storage::JobSubmission job;
    job.kind = "compile";
    job.action_key = "item " + std::to_string(i);
    job.request = R"({"model":"m","target":"llvm"})";
    catalog.submit_job(job);
  }
}

/// Cycles until nothing is queued.
int64_t work(Catalog& catalog, const std::string& owner) {
  int64_t cycles = 0;
  while (const auto job = catalog.claim_job({"compile"}, owner, kLeaseMs)) {
    storage::JobFinish finish;
    finish.result = R"({"outcome":"done"})";
    if (!catalog.finish_job({job->id, job->attempt, job->owner}, finish))
      throw InternalError("a lease of " + owner + " was lost");
    ++cycles;
  }
  return cycles;
}

int64_t follow(Catalog& catalog, int64_t after, const std::atomic<bool>& done) {
  int64_t seen = 0;
  while (true) {
    const bool last = done;
    const auto events = catalog.all_job_events(after, 1000);
    seen += static_cast<int64_t>(events.size());
    if (!events.empty()) after = events.back().position;
    if (events.empty() && last) return seen;
    if (events.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void run(const std::string& place, int workers, int items) {
  storage::PosixEnv env;
  const auto catalog = open(env, place, workers + 1);
  submit(*catalog, items);
  const int64_t after = catalog->last_event_position();
  std::atomic<bool> done{false};
  std::atomic<int64_t> cycles{0};
  std::atomic<int64_t> events{0};
  const double cpu = cpu_seconds();
  const auto start = steady_clock::now();
  std::jthread reader([&] { events = follow(*catalog, after, done); });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&, i] { cycles += work(*catalog, "worker " + std::to_string(i)); });
    }
  }
  const double took = std::chrono::duration<double>(steady_clock::now() - start).count();
  done = true;
  reader.join();
  if (events != cycles * 3) throw InternalError("events were lost: " + std::to_string(events));
  std::cout << R"({"cycles":)" << cycles << R"(,"seconds":)" << took << R"(,"cycles_per_second":)"
            << static_cast<double>(cycles) / took << R"(,"events":)" << events
            << R"(,"own_cpu_ms_per_cycle":)" << (cpu_seconds() - cpu) * 1000 / static_cast<double>(cycles)
            << "}" << std::endl;
}

}  // namespace
}  // namespace tensormill::bench

int main(int argc, char** argv) {
  try {
    if (argc < 2)
      throw tensormill::Error(tensormill::ErrorCode::kUsage, "bench_catalog FOLDER|URL [WORKERS [CYCLES]]");
    tensormill::bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 8, argc > 3 ? std::atoi(argv[3]) : 2000);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 2;
  }
  return 0;
}
