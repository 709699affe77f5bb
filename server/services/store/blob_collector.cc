#include "server/services/store/blob_collector.h"

#include <utility>

#include "runtime/base/error.h"
#include "server/jobs/confine.h"
#include "storage/upload/store_roots.h"

namespace tensormill::server {

BlobCollector::BlobCollector(storage::BlobStore& blobs, storage::Catalog& catalog,
                             storage::UploadStore& uploads, CollectorOptions options)
    : blobs_(blobs), catalog_(catalog), uploads_(uploads), options_(options) {
  blobs_.keep_roots([&catalog, &uploads] { return storage::store_roots(catalog, uploads); },
                    [&catalog, &uploads](const std::vector<Digest>& blobs) {
                      return storage::store_roots_among(catalog, uploads, blobs);
                    });
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void BlobCollector::set_pending(bool pending) {
  const std::lock_guard lock(mutex_);
  pending_ = pending;
  changed_.notify_all();
}

template <typename Collect>
storage::Collected BlobCollector::collect_by(const Collect& collect) {
  // One at a time: each tells all that it removed, and the last one what is left for later.
  const std::lock_guard turn(collecting_);
  try {
    const storage::Collected done = collect();
    set_pending(done.held != 0);
    return done;
  } catch (const Error&) {
    set_pending(true);
    throw;
  }
}

storage::Collected BlobCollector::collect() {
  return collect_by([this] { return blobs_.collect(); });
}

void BlobCollector::collect_soon() {
  const std::lock_guard lock(mutex_);
  all_wanted_ = true;
  changed_.notify_all();
}

storage::Collected BlobCollector::collect_released(std::span<const Digest> blobs) {
  blobs_.release(blobs);
  return collect_by([this] { return blobs_.collect_released(); });
}

storage::Collected BlobCollector::preview() { return blobs_.collect(true); }

uint64_t BlobCollector::expire_packages() {
  return static_cast<uint64_t>(catalog_.expire_packages(options_.package_expiry.count()));
}

void BlobCollector::work(const std::stop_token& stop) {
  // Of this thread: nobody waits for what it collects.
  jobs::lower_priority(0, jobs::kImportNice);
  bool is_first = true, again = false;
  auto next_expiry = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    bool wanted = false, all = std::exchange(again, false);
    try {
      if (std::chrono::steady_clock::now() >= next_expiry) {
        next_expiry += options_.expire_every;
        // Blobs that a row let go of without a word, such as the labels of a deployment, go here. Who makes
        // this says when the first collection is.
        all = !std::exchange(is_first, false) || all;
        all = expire_packages() > 0 || all;
        all = catalog_.expire_jobs(options_.job_retention.count()) > 0 || all;
        all = uploads_.expire() > 0 || all;
        catalog_.expire_replicas(options_.replica_expiry.count());
        catalog_.expire_tuning_records(options_.record_expiry.count(), options_.records_kept);
      }
      {
        std::unique_lock lock(mutex_);
        wanted = pending_;
        all = std::exchange(all_wanted_, false) || all;
      }
      if (all) collect();
      if (!all && wanted) collect_released();
    } catch (const Error&) {
      // The store is full or broken just now; pending_ stays, and the next round tries again.
      again = all;
    }
    std::unique_lock lock(mutex_);
    const bool pending = pending_;
    changed_.wait_for(lock, stop, pending || again ? options_.retry : options_.expire_every,
                      [&] { return pending_ != pending || all_wanted_; });
  }
}

CollectOnFailure::~CollectOnFailure() {
  if (collector_ == nullptr) return;
  try {
    collector_->collect_released();
  } catch (const Error&) {
    // The store is broken just now; the collector's thread tries again.
  }
}

}  // namespace tensormill::server
