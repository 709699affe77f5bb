#include "server/services/blob_collector.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::server {

BlobCollector::BlobCollector(storage::BlobStore& blobs, storage::Catalog& catalog, CollectorOptions options)
    : blobs_(blobs),
      catalog_(catalog),
      options_(options),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

storage::Collected BlobCollector::collect() {
  {
    const std::lock_guard lock(mutex_);
    pending_ = true;
  }
  try {
    const storage::Collected done = blobs_.collect([this] { return roots(); });
    if (done.held == 0) {
      const std::lock_guard lock(mutex_);
      pending_ = false;
    } else {
      changed_.notify_all();
    }
    return done;
  } catch (const Error&) {
    changed_.notify_all();
    throw;
  }
}

storage::Collected BlobCollector::preview() {
  return blobs_.collect([this] { return roots(); }, true);
}

std::vector<Digest> BlobCollector::roots() {
  std::vector<Digest> kept = catalog_.referenced_blobs();
  if (options_.uploads == nullptr) return kept;
  const std::vector<Digest> uploaded = options_.uploads->roots();
  kept.insert(kept.end(), uploaded.begin(), uploaded.end());
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

uint64_t BlobCollector::expire_packages() {
  return static_cast<uint64_t>(catalog_.expire_packages(options_.package_expiry.count()));
}

void BlobCollector::work(const std::stop_token& stop) {
  auto next_expiry = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    bool wanted = false;
    try {
      if (std::chrono::steady_clock::now() >= next_expiry) {
        next_expiry += options_.expire_every;
        wanted = expire_packages() > 0;
        wanted = catalog_.expire_jobs(options_.job_retention.count()) > 0 || wanted;
        if (options_.uploads != nullptr) wanted = options_.uploads->expire() > 0 || wanted;
        catalog_.expire_tuning_records(options_.record_expiry.count(), options_.records_kept);
      }
      {
        std::unique_lock lock(mutex_);
        wanted = wanted || pending_;
      }
      if (wanted) collect();
    } catch (const Error&) {
      // The store is full or broken just now; pending_ stays, and the next round tries again.
    }
    std::unique_lock lock(mutex_);
    const bool pending = pending_;
    changed_.wait_for(lock, stop, pending ? options_.retry : options_.expire_every,
                      [&] { return pending_ != pending; });
  }
}

CollectOnFailure::~CollectOnFailure() {
  if (collector_ == nullptr) return;
  try {
    collector_->collect();
  } catch (const Error&) {
    // The store is broken just now; the collector's thread tries again.
  }
}

}  // namespace tensormill::server
