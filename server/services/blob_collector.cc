#include "server/services/blob_collector.h"

#include "runtime/base/error.h"
#include "storage/upload/store_roots.h"

namespace tensormill::server {

BlobCollector::BlobCollector(storage::BlobStore& blobs, storage::Catalog& catalog,
                             storage::UploadStore& uploads, CollectorOptions options)
    : blobs_(blobs), catalog_(catalog), uploads_(uploads), options_(options) {
  blobs_.keep_roots([&catalog, &uploads] { return storage::store_roots(catalog, uploads); });
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void BlobCollector::set_pending(bool pending) {
  const std::lock_guard lock(mutex_);
  pending_ = pending;
  changed_.notify_all();
}

storage::Collected BlobCollector::collect() {
  // One at a time: each tells all that it removed, and the last one what is left for later.
  const std::lock_guard turn(collecting_);
  try {
    const storage::Collected done = blobs_.collect();
    set_pending(done.held != 0);
    return done;
  } catch (const Error&) {
    set_pending(true);
    throw;
  }
}

storage::Collected BlobCollector::preview() { return blobs_.collect(true); }

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
        wanted = uploads_.expire() > 0 || wanted;
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
