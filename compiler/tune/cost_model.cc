#include "compiler/tune/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/tune/features.h"
#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) result[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return result;
}

}  // namespace

CostModel::CostModel(bool ranking, uint64_t seed) : ranking_(ranking), seed_(seed) {}

void CostModel::add(const std::string& task, std::vector<float> features, double seconds) {
  TM_CHECK(features.size() == kFeatureCount, "not the features of a loop nest");
  std::vector<Sample>& samples = tasks_[task];
  if (samples.size() >= kPerTask || count_ >= kInTotal) return;
  samples.push_back({std::move(features), seconds});
  ++count_;
}

size_t CostModel::samples(const std::string& task) const {
  const auto found = tasks_.find(task);
  return found == tasks_.end() ? 0 : found->second.size();
}

void CostModel::update() {
  const auto fresh = static_cast<double>(count_ - trained_count_);
  if (count_ < kFewest || fresh == 0 || fresh < kGrowth * static_cast<double>(trained_count_)) return;
  Matrix rows;
  std::vector<float> labels;
  std::vector<uint32_t> groups;
  for (const auto& [task, samples] : tasks_) {
    std::vector<double> seconds;
    for (const Sample& sample : samples) {
      rows.append(sample.features);
      seconds.push_back(sample.seconds);
    }
    for (double faster : ranks(seconds))
      labels.push_back(static_cast<float>(1 - (faster + 0.5) / static_cast<double>(samples.size())));
    if (!samples.empty()) groups.push_back(static_cast<uint32_t>(samples.size()));
  }
  BoosterOptions options;
  options.ranking = ranking_;
  options.seed = seed_;
  booster_ = train_booster(rows, labels, groups, options);
  trained_count_ = count_;
}

std::vector<float> CostModel::predict(const Matrix& rows) const {
  TM_CHECK(booster_ != nullptr, "the model is not trained");
  return booster_->predict(rows);
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  TM_CHECK(a.size() == b.size() && a.size() >= 2, "two lists of the same length");
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace tensormill::tune
