#include "compiler/tune/space.h"

#include <algorithm>
#include <cmath>

#include "compiler/schedule/automatic.h"
#include "compiler/tune/features.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

using schedule::Config;
using schedule::Knob;

uint64_t index_of(const std::vector<Knob>& knobs) {
  uint64_t index = 0, weight = 1;
  for (const Knob& knob : knobs) {
    const auto place = std::lower_bound(knob.candidates.begin(), knob.candidates.end(), knob.chosen);
    index += weight * static_cast<uint64_t>(place - knob.candidates.begin());
    weight *= knob.candidates.size();
  }
  return index;
}

int64_t any_of(const Knob& knob, Random& random) {
  return knob.candidates[random.below(knob.candidates.size())];
}

}  // namespace

Config config_of(const std::vector<Knob>& knobs) {
  Config config;
  for (const Knob& knob : knobs) config[knob.name] = knob.chosen;
  return config;
}

Space::Space(const Task& task, const target::Target& target, bool sketches)
    : task_(task), target_(target), sketches_(sketches) {
  const auto analytic = make(schedule::choose_from({}));
  TM_CHECK(analytic.has_value(), "the analytic schedule of " + task.kernel.symbol + " does not apply");
  analytic_ = *analytic;
}

uint64_t Space::size_estimate() const {
  constexpr int kDescents = 48;
  Random random(1);
  double sum = 0, count = 0;
  for (int i = 0; i < kDescents; ++i) {
    // Of choices that do not fit together no more is known; those that do stand for them.
    const std::optional<Point> point = sample(random);
    if (!point) continue;
    double product = 1;
    for (const Knob& knob : point->knobs) product *= static_cast<double>(knob.candidates.size());
    sum += product;
    ++count;
  }
  return count == 0 ? 1 : static_cast<uint64_t>(std::llround(std::min(sum / count, 1e18)));
}

std::vector<float> Space::features(const Point& point) const {
  try {
    return loop_features(with_extents(task_, loops_of(task_, point.schedule)), target_.facts);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidRecords) throw;
    return std::vector<float>(kFeatureCount, 0);
  }
}

std::string Space::digest() const {
  std::string text;
  for (const Knob& knob : analytic_.knobs) {
    text += knob.name;
    for (int64_t candidate : knob.candidates) text += " " + std::to_string(candidate);
    text += "\n";
  }
  return Digest::of(text).hex();
}

std::optional<Point> Space::make(const schedule::Chooser& choose) const {
  try {
    const auto find = sketches_ ? schedule::choose_schedule_or_sketch : schedule::choose_schedule;
    schedule::Tuned tuned = task_.symbolic ? plan::choose_loops(*task_.symbolic->kernel().source, choose)
                                           : find(task_.kernel.program, target_, choose);
    return Point{index_of(tuned.knobs), std::move(tuned.knobs), std::move(tuned.schedule)};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidRecords) throw;
    return std::nullopt;
  }
}

std::optional<Point> Space::at(uint64_t index) const {
  uint64_t left = index;
  std::optional<Point> point = make([&](const Knob& knob) {
    const uint64_t digit = left % knob.candidates.size();
    left /= knob.candidates.size();
    return knob.candidates[digit];
  });
  if (left != 0) return std::nullopt;
  return point;
}

std::optional<Point> Space::next(Walk& walk) const {
  while (!walk.done) {
    std::vector<std::pair<size_t, size_t>> asked;
    std::optional<Point> point = make([&](const Knob& knob) {
      const size_t place = asked.size() < walk.digits.size() ? walk.digits[asked.size()].first : 0;
      asked.emplace_back(place, knob.candidates.size());
      return knob.candidates[place];
    });
    while (!asked.empty() && asked.back().first + 1 == asked.back().second) asked.pop_back();
    walk.done = asked.empty();
    if (!walk.done) ++asked.back().first;
    walk.digits = std::move(asked);
    if (point) return point;
  }
  return std::nullopt;
}

std::optional<Point> Space::sample(Random& random) const {
  return make([&](const Knob& knob) { return any_of(knob, random); });
}

std::optional<Point> Space::near(const Config& config, Random& random) const {
  return make([&](const Knob& knob) {
    const auto found = config.find(knob.name);
    const bool fits = found != config.end() &&
                      std::binary_search(knob.candidates.begin(), knob.candidates.end(), found->second);
    return fits ? found->second : any_of(knob, random);
  });
}

std::optional<Point> Space::mutate(const Point& point, Random& random) const {
  if (point.knobs.empty()) return point;
  Config config = config_of(point.knobs);
  const Knob& changed = point.knobs[random.below(point.knobs.size())];
  config[changed.name] = any_of(changed, random);
  return near(config, random);
}

std::optional<Point> Space::cross(const Point& a, const Point& b, Random& random) const {
  Config config = config_of(a.knobs);
  for (const Knob& knob : b.knobs) {
    if (random.below(2) == 0) config[knob.name] = knob.chosen;
  }
  return near(config, random);
}

}  // namespace tensormill::tune
