#include "bench/tuner/figures.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/tune/cost_model.h"

namespace tensormill::bench {

namespace {

constexpr int64_t kBatch = 8;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

// Between the times of the first `count` points and those of one more measurement, which the sample takes
// where it is faster.
double repeatability(const TunedTask& task, Sample& sample, size_t count, Table& table) {
  const auto end = static_cast<std::ptrdiff_t>(std::min(count, sample.points.size()));
  const std::vector<double> before(sample.seconds.begin(), sample.seconds.begin() + end);
  const std::vector<double> after =
      table.seconds_again(task, {sample.points.begin(), sample.points.begin() + end});
  for (size_t i = 0; i < before.size(); ++i) sample.seconds[i] = std::min(before[i], after[i]);
  return tune::rank_correlation(before, after);
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

Correlations correlate(const Tasks& tasks, const Tasks& foreign, size_t training, size_t tested, size_t again,
                       uint64_t seed, Table& table) {
  tune::CostModel model(false, seed);
  Correlations result;
  std::vector<Sample> samples;
  for (const auto& task : tasks) {
    samples.push_back(draw(*task, training + tested, seed, table));
    Sample& sample = samples.back();
    if (again > 1) result.ruler.emplace_back(task->task.name, repeatability(*task, sample, again, table));
    for (size_t i = 0; i < std::min(training, sample.points.size()); ++i)
      model.add(task->task.key(), task->space.features(sample.points[i]), sample.seconds[i]);
  }
  model.update();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (samples[i].points.size() < training + tested) continue;
    result.within.emplace_back(tasks[i]->task.name, correlation(model, *tasks[i], samples[i], training));
  }
  for (const auto& task : foreign) {
    Sample sample = draw(*task, tested, seed, table);
    if (again > 1) result.ruler.emplace_back(task->task.name, repeatability(*task, sample, again, table));
    if (sample.points.size() == tested)
      result.foreign.emplace_back(task->task.name, correlation(model, *task, sample, 0));
  }
  return result;
}

}  // namespace tensormill::bench
