#include "server/report/energy.h"

#include <fstream>

namespace tensormill::report {

namespace {

std::optional<int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return value;
}

}  // namespace

EnergyCounter::EnergyCounter(const std::string& root) {
  constexpr int kMaxPackages = 64;
  for (int i = 0; i < kMaxPackages; ++i) {
    const std::string path = root + "/intel-rapl:" + std::to_string(i);
    const std::optional<int64_t> now = number_in(path + "/energy_uj");
    if (!now) break;
    zones_.push_back({path, number_in(path + "/max_energy_range_uj").value_or(0), *now});
  }
}

std::optional<double> EnergyCounter::joules() {
  if (zones_.empty()) return std::nullopt;
  int64_t sum = 0;
  for (Zone& zone : zones_) {
    const std::optional<int64_t> now = number_in(zone.path + "/energy_uj");
    if (!now) return std::nullopt;
    sum += *now - zone.last_uj + (*now < zone.last_uj ? zone.range_uj : 0);
    zone.last_uj = *now;
  }
  return static_cast<double>(sum) / 1e6;
}

}  // namespace tensormill::report
