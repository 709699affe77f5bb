/// Energy that the processor's own counters (RAPL) say.
/// Thread-safety: a counter belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tensormill::report {

/// The counters of all processor packages together, read below `root`.
class EnergyCounter {
public:
  explicit EnergyCounter(const std::string& root = "/sys/class/powercap");
  /// Whether there is one that this process may read.
  bool is_readable() const { return !zones_.empty(); }
  /// Joules since this was last called, or since the counter was made; nothing where it cannot be read. A
  /// counter that began again at 0 meanwhile did so once.
  std::optional<double> joules();

private:
  struct Zone {
    std::string path;
    int64_t range_uj = 0;
    int64_t last_uj = 0;
  };
  std::vector<Zone> zones_;
};

}  // namespace tensormill::report
