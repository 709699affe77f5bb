/// What the rooms were with which runs of a package ended of late, so that the next ones begin there.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace tensormill::package {

class RoomHistory {
public:
  /// What a plan for the dims takes, which stands for how long a run with it does; nothing where there is
  /// none.
  using BytesOf = std::function<std::optional<int64_t>(const std::vector<int64_t>& dims)>;

  /// The dims that a run begins with which would begin with `first` were there no runs before it: with those
  /// rooms the runs of late would have taken the least, where a run that lacks room is made again. None that
  /// takes more than `most_bytes`; `first` where there were no runs.
  std::vector<int64_t> best(const std::vector<int64_t>& first, const BytesOf& bytes_of,
                            int64_t most_bytes) const;
  /// A run that begins with `first` ends with `dims`, of which a plan takes `bytes`.
  void note(const std::vector<int64_t>& first, std::vector<int64_t> dims, int64_t bytes);

  static constexpr size_t kRuns = 8;          ///< of late
  static constexpr size_t kMostEntries = 32;  ///< first dims, those of the last runs

private:
  struct Run {
    std::vector<int64_t> dims;
    int64_t bytes;
  };
  struct Entry {
    std::vector<int64_t> first;
    std::vector<Run> runs;  ///< the latest last
  };
  std::vector<Run> runs_of(const std::vector<int64_t>& first) const;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  ///< the latest last
};

}  // namespace tensormill::package
