/// How the capacities of a run grow where it lacks them, and where it would have begun with less.
/// Thread-safety: of one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/no_room.h"
#include "runtime/package/package_reader.h"

namespace tensormill::exec {

/// The capacities of a run, from the first one on.
class Rooms {
public:
  Rooms(const package::LoadedPackage& package, int64_t budget);

  bool empty() const { return dims_.empty(); }

  /// What the run goes on with that lacked capacity at `dims`; nothing where there is no more. Those that no
  /// lack was of may be smaller than before, where the others take much memory. `goes_on`: nothing that is
  /// done is lost, so that less at a time is enough.
  std::optional<std::vector<int64_t>> more(const std::vector<int64_t>& dims, const NoRoom& error,
                                           bool goes_on);
  /// The same for a plan that is made of any capacity.
  std::optional<std::vector<int64_t>> grown(std::vector<int64_t> dims, const NoRoom& error);

private:
  /// What a run lacked, and how large the capacity was.
  struct Lack {
    NoRoom error;
    int64_t room;
  };
  /// Of one run: a few for each capacity, which grows each time.
  static constexpr int kMostRestarts = 256;

  static int64_t wanted_room(const NoRoom& error, int64_t room, const std::optional<Lack>& before);

  const package::LoadedPackage& package_;
  int64_t budget_;
  std::vector<size_t> dims_;    ///< which of the free ones they are
  std::vector<int64_t> least_;  ///< of each: what has been lacking
  std::optional<Lack> before_;
  int restarts_ = 0;
};

/// By RoomCheck::name: how much a run had.
using RoomCounts = std::map<std::string, int64_t>;

/// The dims with which a run of that much ends that begins with `first`; nothing where it does not end.
std::optional<std::vector<int64_t>> rooms_for(const package::LoadedPackage& package, int64_t budget,
                                              const std::vector<int64_t>& first, const RoomCounts& counts);

}  // namespace tensormill::exec
