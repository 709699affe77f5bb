#include "compiler/tune/model_tuner.h"

#include <algorithm>
#include <cmath>

#include "compiler/tune/features.h"
#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

constexpr size_t kChains = 32;
constexpr size_t kSteps = 24;
constexpr size_t kFreshPoints = 128;   // visited in one round at most: features cost time
constexpr double kRandomShare = 0.1;   // of what is proposed
constexpr size_t kFewestOfTask = 8;    // own trials before the model is asked
constexpr size_t kStartsFromBest = 8;  // chains that start at the best points known
constexpr double kSameness = 0.5;      // of the scores' spread: the price of being a neighbour

std::string text_of(const std::vector<schedule::Knob>& knobs) {
  std::string text;
  for (const schedule::Knob& knob : knobs) text += knob.name + "=" + std::to_string(knob.chosen) + " ";
  return text;
}

double equal_share(const Point& a, const Point& b) {
  if (a.knobs.size() != b.knobs.size() || a.knobs.empty()) return 0;
  double same = 0;
  for (size_t i = 0; i < a.knobs.size(); ++i) same += a.knobs[i].chosen == b.knobs[i].chosen ? 1 : 0;
  return same / static_cast<double>(a.knobs.size());
}

double spread(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace

ModelTuner::ModelTuner(const Space& space, uint64_t seed, std::string task, CostModel& model)
    : Tuner(space), task_(std::move(task)), model_(model), random_(seed) {}

size_t ModelTuner::visit(Point point) {
  const std::string text = text_of(point.knobs);
  const auto found = places_.find(text);
  if (found != places_.end()) return found->second;
  Visited fresh;
  fresh.features = space().features(point);
  fresh.is_taken = is_known(point);
  fresh.point = std::move(point);
  visited_.push_back(std::move(fresh));
  places_.emplace(text, visited_.size() - 1);
  return visited_.size() - 1;
}

void ModelTuner::observe(const std::vector<Trial>& trials) {
  Tuner::observe(trials);
  for (const Trial& trial : trials) {
    Visited& visited = visited_[visit(trial.point)];
    visited.is_taken = true;
    model_.add(task_, visited.features, trial.seconds);
    if (std::isfinite(trial.seconds)) best_.push_back(trial);
  }
  std::stable_sort(best_.begin(), best_.end(),
                   [](const Trial& a, const Trial& b) { return a.seconds < b.seconds; });
  if (best_.size() > kStartsFromBest) best_.resize(kStartsFromBest);
}

std::vector<Point> ModelTuner::propose(size_t count) {
  const auto is_fresh = [this](const Point& point) { return is_new(point); };
  model_.update();
  if (!model_.is_trained() || model_.samples(task_) < kFewestOfTask)
    return sample_points(space(), random_, count, is_fresh);
  score(0);
  anneal();
  size_t guided = 0;
  for (size_t i = 0; i < count; ++i) guided += random_.unit() < kRandomShare ? 0 : 1;
  std::vector<Point> points = choose(guided);
  for (Point& point : sample_points(space(), random_, count - points.size(), is_fresh))
    points.push_back(std::move(point));
  // A space in which random draws find nothing new any more may still hold what the annealing saw.
  if (points.size() < count) {
    for (Point& point : choose(count - points.size())) points.push_back(std::move(point));
  }
  return points;
}

void ModelTuner::score(size_t first) {
  Matrix rows;
  for (size_t i = first; i < visited_.size(); ++i) rows.append(visited_[i].features);
  const std::vector<float> scores = model_.predict(rows);
  for (size_t i = first; i < visited_.size(); ++i) visited_[i].score = static_cast<double>(scores[i - first]);
}

void ModelTuner::anneal() {
  const size_t known = visited_.size();
  chains_.resize(std::min(chains_.size(), kChains - best_.size()));
  for (const Trial& trial : best_) chains_.push_back(visit(trial.point));
  for (size_t tries = 0; chains_.size() < kChains && tries < 4 * kChains; ++tries) {
    std::optional<Point> point = space().sample(random_);
    if (point) chains_.push_back(visit(std::move(*point)));
  }
  score(known);
  const auto scores_of_chains = [this] {
    std::vector<double> scores;
    for (size_t place : chains_) scores.push_back(visited_[place].score);
    return scores;
  };
  const double scale = spread(scores_of_chains()) + 1e-9;
  for (size_t step = 0; step < kSteps && visited_.size() - known < kFreshPoints; ++step) {
    const size_t before = visited_.size();
    std::vector<size_t> next = chains_;
    for (size_t& place : next) {
      std::optional<Point> point = space().mutate(visited_[place].point, random_);
      if (point) place = visit(std::move(*point));
    }
    score(before);
    const double temperature = scale * (1 - static_cast<double>(step) / kSteps);
    for (size_t i = 0; i < chains_.size(); ++i) {
      const double gain = visited_[next[i]].score - visited_[chains_[i]].score;
      if (gain >= 0 || random_.unit() < std::exp(gain / temperature)) chains_[i] = next[i];
    }
  }
}

std::vector<Point> ModelTuner::choose(size_t count) {
  std::vector<size_t> order;
  std::vector<double> scores;
  for (size_t i = 0; i < visited_.size(); ++i) {
    scores.push_back(visited_[i].score);
    if (!visited_[i].is_taken) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return visited_[a].score > visited_[b].score; });
  if (order.size() > 8 * count) order.resize(8 * count);
  const double price = kSameness * (scores.empty() ? 0 : spread(scores));
  std::vector<Point> chosen;
  std::vector<double> sameness(order.size(), 0);
  while (chosen.size() < count) {
    size_t best = order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      if (visited_[order[i]].is_taken) continue;
      const auto value = [&](size_t place) { return visited_[order[place]].score - price * sameness[place]; };
      if (best == order.size() || value(i) > value(best)) best = i;
    }
    if (best == order.size()) break;
    Visited& taken = visited_[order[best]];
    taken.is_taken = true;
    if (!is_new(taken.point)) continue;
    chosen.push_back(taken.point);
    for (size_t i = 0; i < order.size(); ++i)
      sameness[i] = std::max(sameness[i], equal_share(visited_[order[i]].point, taken.point));
  }
  return chosen;
}

}  // namespace tensormill::tune
