/// Removes the blobs that no row of the catalog names any more: at once those that a removed row let go of,
/// or that were stored and are named by none, later those that a hold protected then; and, at the start and
/// every hour, all. Holds (storage::BlobHold) stand where other stores have a grace age: whoever writes blobs
/// before the row that names them has one. Thread-safety: all methods from many threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"
#include "storage/upload/upload_store.h"

namespace tensormill::server {

struct CollectorOptions {
  std::chrono::milliseconds retry{10'000};  ///< after which held blobs are looked at again
  std::chrono::milliseconds expire_every{
      3'600'000};  ///< how often unused packages, and all stray blobs, are looked for
  /// Packages that are neither pinned, named nor deployed go when they were not used for so long.
  std::chrono::milliseconds package_expiry{std::chrono::hours(24 * 30)};
  /// Jobs that ended so long ago go, but for those whose package is still there.
  std::chrono::milliseconds job_retention{std::chrono::hours(24 * 30)};
  /// Tuning records that no set has, such as those of jobs that came to nothing, go after this age, but for
  /// so many of the best of each kernel, which later searches and compiles use.
  std::chrono::milliseconds record_expiry{std::chrono::hours(24 * 30)};
  int64_t records_kept = 64;
  /// Processes that shared the catalog and were lost so long ago are forgotten, with what they could not
  /// load.
  std::chrono::milliseconds replica_expiry{std::chrono::hours(24)};
};

class BlobCollector {
public:
  /// Tells the blob store what must stay (storage::store_roots).
  BlobCollector(storage::BlobStore& blobs, storage::Catalog& catalog, storage::UploadStore& uploads,
                CollectorOptions options = {});
  BlobCollector(const BlobCollector&) = delete;
  BlobCollector& operator=(const BlobCollector&) = delete;

  /// Looks at every blob. Throws what the store throws; what was not removed then is looked at again later.
  storage::Collected collect();
  /// The same, on the collector's own thread; does not wait for it.
  void collect_soon();
  /// After the removal of what named `blobs`, or the end of something that stored some and may have no row
  /// for them (these the store knows): looks at them alone. Throws as collect().
  storage::Collected collect_released(std::span<const Digest> blobs = {});
  /// What collect() would do.
  storage::Collected preview();
  /// Removes packages that nobody used for package_expiry; returns how many.
  uint64_t expire_packages();

private:
  template <typename Collect>
  storage::Collected collect_by(const Collect& collect);
  void work(const std::stop_token& stop);
  /// Whether something is left for a later look.
  void set_pending(bool pending);

  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  storage::UploadStore& uploads_;
  const CollectorOptions options_;
  std::mutex collecting_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool pending_ = false;
  bool all_wanted_ = false;  ///< somebody has called collect_soon()
  std::jthread thread_;
};

/// Collects when it goes, unless what was begun came to its end: make it before the hold. An error of the
/// store waits for the next collection.
class CollectOnFailure {
public:
  explicit CollectOnFailure(BlobCollector& collector) : collector_(&collector) {}
  ~CollectOnFailure();
  CollectOnFailure(const CollectOnFailure&) = delete;
  CollectOnFailure& operator=(const CollectOnFailure&) = delete;
  void succeeded() { collector_ = nullptr; }

private:
  BlobCollector* collector_;
};

}  // namespace tensormill::server
