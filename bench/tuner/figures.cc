#include "bench/tuner/figures.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "bench/support/seconds.h"
#include "compiler/tune/cost_model.h"

namespace tensormill::bench {

namespace {

constexpr int64_t kBatch = 8;

double mean_gflops(const Tasks& tasks, const std::vector<double>& best) {
  double sum = 0;
  for (size_t i = 0; i < tasks.size(); ++i)
    sum += static_cast<double>(tasks[i]->task.kernel.flops) / best[i] / 1e9;
  return sum / static_cast<double>(tasks.size());
}

// Some more than `count`: a few may fail.
std::vector<tune::Point> uniform_points(const TunedTask& task, size_t count, uint64_t seed) {
  count += count / 8;
  tune::Random random(seed);
  std::set<std::string> seen;
  return tune::sample_points(task.space, random, count, [&](const tune::Point& fresh) {
    return seen.insert(schedule::print(fresh.schedule)).second;
  });
}

// Measures all points of the samples in so many rounds, one of them drawn already; each keeps its least time.
// Returns by sample the correlation of the least times of the odd rounds with those of the even ones.
std::vector<double> measure_rounds(const std::vector<const TunedTask*>& tasks, std::vector<Sample>& samples,
                                   size_t rounds, Table& table) {
  std::vector<std::array<std::vector<double>, 2>> least(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    least[i][0] = samples[i].seconds;
    least[i][1].assign(samples[i].seconds.size(), std::numeric_limits<double>::infinity());
  }
  for (size_t round = 1; round < rounds; ++round) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const std::vector<double> seconds = table.seconds_again(*tasks[i], samples[i].points);
      for (size_t p = 0; p < seconds.size(); ++p)
        least[i][round % 2][p] = std::min(least[i][round % 2][p], seconds[p]);
    }
  }
  std::vector<double> rulers;
  for (size_t i = 0; i < samples.size(); ++i) {
    rulers.push_back(tune::rank_correlation(least[i][0], least[i][1]));
    for (size_t p = 0; p < samples[i].seconds.size(); ++p)
      samples[i].seconds[p] = std::min(least[i][0][p], least[i][1][p]);
  }
  return rulers;
}

double correlation(const tune::CostModel& model, const TunedTask& task, const Sample& sample, size_t first) {
  tune::Matrix rows;
  std::vector<double> speed;
  for (size_t i = first; i < sample.points.size(); ++i) {
    rows.append(task.space.features(sample.points[i]));
    speed.push_back(1 / sample.seconds[i]);
  }
  const std::vector<float> scores = model.predict(rows);
  return tune::rank_correlation({scores.begin(), scores.end()}, speed);
}

}  // namespace

Progress run_tuner(const std::string& name, const Tasks& tasks, uint64_t seed,
                   const std::vector<int64_t>& marks, Table& table) {
  tune::CostModel model(tune::ranks(name), seed);
  std::vector<std::unique_ptr<tune::Tuner>> tuners;
  for (size_t i = 0; i < tasks.size(); ++i)
    tuners.push_back(
        tune::make_tuner(name, tasks[i]->space, seed * 1000003 + i, tasks[i]->task.key(), model));
  std::vector<double> best(tasks.size(), std::numeric_limits<double>::infinity());
  Progress progress;
  for (int64_t done = 0; done < marks.back(); done += kBatch) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      const double start = now();
      std::vector<tune::Point> points = tuners[i]->propose(kBatch);
      const double proposed = now();
      const std::vector<double> seconds = table.seconds_of_all(*tasks[i], points);
      std::vector<tune::Trial> trials;
      for (size_t p = 0; p < points.size(); ++p) {
        best[i] = std::min(best[i], seconds[p]);
        trials.push_back({std::move(points[p]), seconds[p]});
      }
      progress.trials += static_cast<int64_t>(trials.size());
      const double measured = now();
      tuners[i]->observe(trials);
      progress.search_seconds += proposed - start + now() - measured;
    }
    for (int64_t mark : marks) {
      if (done + kBatch == mark) progress.gflops[mark] = mean_gflops(tasks, best);
    }
  }
  return progress;
}

void prepare(const TunedTask& task, size_t count, uint64_t seed, Table& table) {
  table.prepare(task, uniform_points(task, count, seed));
}

Sample draw(const TunedTask& task, size_t count, uint64_t seed, Table& table) {
  Sample sample;
  std::vector<tune::Point> points = uniform_points(task, count, seed);
  const std::vector<double> seconds = table.seconds_of_all(task, points);
  for (size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(seconds[i]) || sample.points.size() == count) continue;
    sample.points.push_back(std::move(points[i]));
    sample.seconds.push_back(seconds[i]);
  }
  return sample;
}

Correlations correlate(const Tasks& tasks, const Tasks& foreign, size_t training, size_t tested,
                       size_t rounds, uint64_t seed, Table& table) {
  std::vector<const TunedTask*> all;
  std::vector<Sample> samples;
  for (const auto& task : tasks) all.push_back(task.get());
  for (const auto& task : foreign) all.push_back(task.get());
  for (size_t i = 0; i < all.size(); ++i)
    samples.push_back(draw(*all[i], i < tasks.size() ? training + tested : tested, seed, table));
  Correlations result;
  if (rounds > 1) {
    const std::vector<double> rulers = measure_rounds(all, samples, rounds, table);
    for (size_t i = 0; i < all.size(); ++i) result.ruler.emplace_back(all[i]->task.name, rulers[i]);
  }
  tune::CostModel model(false, seed);
  for (size_t i = 0; i < tasks.size(); ++i) {
    for (size_t p = 0; p < std::min(training, samples[i].points.size()); ++p)
      model.add(all[i]->task.key(), all[i]->space.features(samples[i].points[p]), samples[i].seconds[p]);
  }
  model.update();
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t first = i < tasks.size() ? training : 0;
    if (samples[i].points.size() < first + tested) continue;
    auto& rows = i < tasks.size() ? result.within : result.foreign;
    rows.emplace_back(all[i]->task.name, correlation(model, *all[i], samples[i], first));
  }
  return result;
}

}  // namespace tensormill::bench
