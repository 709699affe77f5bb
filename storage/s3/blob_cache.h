/// Stored forms of blobs on this machine's disk, up to a bound: what was used longest ago is evicted, but
/// nothing that is mapped, such as the weights of a loaded deployment. It outlives the process.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/blob/blob.h"

namespace tensormill::storage {

class BlobCache {
public:
  /// Uses `root`/cache and `root`/tmp; the latter is emptied. `max_bytes` 0: nothing stays that is not
  /// mapped.
  BlobCache(Env& env, std::string root, uint64_t max_bytes);

  /// A path in `root`/tmp that nobody has.
  std::string temporary();
  /// Null when it is not here. With `check`, damaged bytes are removed, and it is not here.
  std::shared_ptr<const Blob> open(const Digest& digest, BlobForm form, bool check,
                                   const std::stop_token& stop = {});
  /// The file at `path` becomes the entry. With `check`, throws Error(kCorrupt) where it has other bytes;
  /// then, and after any other error, the file is gone.
  std::shared_ptr<const Blob> admit(const std::string& path, const Digest& digest, BlobForm form, bool check,
                                    const std::stop_token& stop = {});
  /// Both forms.
  void erase(const Digest& digest);
  uint64_t bytes() const;
  /// Of these, bytes of entries that are mapped.
  uint64_t pinned_bytes();

private:
  using Name = std::pair<Digest, BlobForm>;
  struct Entry {
    uint64_t bytes = 0;
    std::list<Name>::iterator use;
    std::vector<std::weak_ptr<const MappedFile>> mappings;
  };
  std::string path_of(const Name& name) const;
  std::shared_ptr<const Blob> load(const std::string& path, const Name& name, bool check,
                                   const std::stop_token& stop);
  void read_folders();
  /// With mutex_.
  void learn(const Name& name, uint64_t bytes);
  void forget(const Name& name);
  void touch(const Name& name, const std::shared_ptr<const MappedFile>& mapping);
  void make_room();
  static bool is_pinned(Entry& entry);

  Env& env_;
  const std::string root_;
  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::map<Name, Entry> entries_;
  std::list<Name> uses_;  ///< the latest last
  uint64_t bytes_ = 0;
  uint64_t next_temporary_ = 0;
};

}  // namespace tensormill::storage
