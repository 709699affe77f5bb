#include "server/services/deployments/traffic_split.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace tensormill::server {

int version_at(const services::VersionWeights& weights, uint64_t index) {
  uint64_t sum = 0;
  for (const auto& [version, weight] : weights) sum += static_cast<uint64_t>(weight);
  TM_CHECK(sum > 0, "weights that spread nothing");
  // Steps of the golden ratio's length fall evenly; without a common divisor they meet each place once a
  // round.
  uint64_t step = std::max<uint64_t>(1, sum * 618 / 1000);
  while (std::gcd(step, sum) != 1) ++step;
  uint64_t place = index % sum * step % sum;
  for (const auto& [version, weight] : weights) {
    if (place < static_cast<uint64_t>(weight)) return version;
    place -= static_cast<uint64_t>(weight);
  }
  throw InternalError("a place past the sum of all weights");
}

}  // namespace tensormill::server
