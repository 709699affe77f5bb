/// Which blobs a store has, in memory, with their sums. Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::storage {

enum class BlobForm {
  kPlain,       ///< stored as it is: code and weights, which are mapped
  kCompressed,  ///< zstd at rest: models, logs, dumps, records
};

struct BlobInfo {
  Digest digest;
  BlobForm form = BlobForm::kPlain;
  uint64_t stored_bytes = 0;
};

/// Sums over all blobs.
struct BlobUsage {
  uint64_t blobs = 0;
  uint64_t compressed = 0;  ///< of these, in the compressed form
  uint64_t stored_bytes = 0;
};

class BlobIndex {
public:
  /// Takes the place of an earlier entry of the same digest.
  void put(const BlobInfo& blob);
  void erase(const Digest& digest);
  std::optional<BlobInfo> find(const Digest& digest) const;
  /// Sorted by digest.
  std::vector<BlobInfo> list() const;
  BlobUsage usage() const;

private:
  struct Entry {
    BlobForm form;
    uint64_t stored_bytes;
  };
  void count(const Entry& entry, bool is_new);

  mutable std::mutex mutex_;
  std::map<Digest, Entry> blobs_;
  BlobUsage usage_;
};

}  // namespace tensormill::storage
