#include "runtime/package/room_history.h"

#include <algorithm>

namespace tensormill::package {

namespace {

/// Whether runs that need `needed` lack no room with `dims`.
bool hold(const std::vector<int64_t>& dims, const std::vector<int64_t>& needed) {
  return std::equal(dims.begin(), dims.end(), needed.begin(), needed.end(),
                    [](int64_t room, int64_t own) { return room >= own; });
}

}  // namespace

std::vector<RoomHistory::Run> RoomHistory::runs_of(const std::vector<int64_t>& first) const {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Entry& entry) { return entry.first == first; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  return found == entries_.end() ? std::vector<Run>() : found->runs;
}

std::vector<int64_t> RoomHistory::best(const std::vector<int64_t>& first, const BytesOf& bytes_of,
                                       int64_t most_bytes) const {
  const std::vector<Run> runs = runs_of(first);
  std::vector<int64_t> most = first;
  for (const Run& run : runs) {
    for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], run.dims[i]);
  }
  if (most == first) return first;
  std::vector<int64_t> best;
  double least = 0;
  const auto consider = [&](const std::vector<int64_t>& dims, std::optional<int64_t> bytes) {
    if (!bytes || *bytes > most_bytes) return;
    double cost = 0;
    for (const Run& run : runs)
      cost += static_cast<double>(*bytes) + (hold(dims, run.dims) ? 0 : static_cast<double>(run.bytes));
    if (!best.empty() && cost >= least) return;
    best = dims;
    least = cost;
  };
  consider(first, bytes_of(first));
  for (const Run& run : runs) consider(run.dims, run.bytes);
  consider(most, bytes_of(most));
  return best.empty() ? first : best;
}

void RoomHistory::note(const std::vector<int64_t>& first, std::vector<int64_t> dims, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const Entry& entry) { return entry.first == first; };
  const auto found = std::find_if(entries_.begin(), entries_.end(), same);
  Entry entry{first, {}};
  if (found != entries_.end()) {
    entry = std::move(*found);
    entries_.erase(found);
  }
  if (entry.runs.size() == kRuns) entry.runs.erase(entry.runs.begin());
  entry.runs.push_back({std::move(dims), bytes});
  if (entries_.size() == kMostEntries) entries_.erase(entries_.begin());
  entries_.push_back(std::move(entry));
}

}  // namespace tensormill::package
