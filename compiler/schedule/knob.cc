#include "compiler/schedule/knob.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::schedule {

int64_t Knobs::ask(std::string name, int64_t analytic, std::vector<int64_t> candidates) {
  if (!choose_) return analytic;
  std::erase_if(candidates, [](int64_t value) { return value < 0; });
  candidates.push_back(analytic);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  Knob next{std::move(name), analytic, std::move(candidates), 0};
  next.chosen = choose_(next);
  TM_CHECK(std::binary_search(next.candidates.begin(), next.candidates.end(), next.chosen),
           "a value that knob " + next.name + " does not have");
  asked_.push_back(std::move(next));
  return asked_.back().chosen;
}

Chooser choose_from(Config config) {
  return [config = std::move(config)](const Knob& knob) {
    const auto found = config.find(knob.name);
    if (found == config.end()) return knob.analytic;
    if (!std::binary_search(knob.candidates.begin(), knob.candidates.end(), found->second)) {
      throw Error(ErrorCode::kInvalidRecords,
                  "knob " + knob.name + " cannot be " + std::to_string(found->second));
    }
    return found->second;
  };
}

std::vector<int64_t> range_candidates(int64_t first, int64_t last) {
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last; ++value) values.push_back(value);
  return values;
}

std::vector<int64_t> divisors(int64_t extent) { return divisors(extent, extent); }

std::vector<int64_t> divisors(int64_t extent, int64_t most) {
  std::vector<int64_t> values = range_candidates(1, std::min(extent, most));
  std::erase_if(values, [&](int64_t value) { return extent % value != 0; });
  return values;
}

std::vector<int64_t> tile_candidates(int64_t extent, int64_t most) {
  std::vector<int64_t> values;
  for (int64_t value = 1; value <= std::min(extent, most); ++value) {
    if (extent % value == 0 || (value & (value - 1)) == 0) values.push_back(value);
  }
  return values;
}

}  // namespace tensormill::schedule
