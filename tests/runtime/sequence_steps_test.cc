// Sequences of labels by host steps: beside what all ways to say them give, and by hand.
#include "runtime/host_ops/sequence_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "tests/expect_error.h"

namespace tensormill::host_ops {
namespace {

using Labels = std::vector<int64_t>;

/// Results: where each lies, and of how many bytes it is.
void run(void (*step)(const HostCall&), const std::vector<Tensor>& operands,
         const std::vector<std::pair<void*, size_t>>& results, const std::string& attributes) {
  std::vector<TensorView> inputs;
  for (const Tensor& each : operands) inputs.push_back({each.dtype(), each.shape(), each.data()});
  std::vector<void*> outputs;
  std::vector<size_t> bytes;
  for (const auto& [data, size] : results) {
    outputs.push_back(data);
    bytes.push_back(size);
  }
  step({inputs, outputs, bytes, attributes});
}

Tensor row_of(const Labels& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

/// How far rows of labels are from those that are right.
std::vector<float> distances(const std::vector<Labels>& rows, const std::vector<Labels>& right,
                             bool is_share) {
  const auto joined = [](const std::vector<Labels>& all) {
    Labels labels, lengths;
    for (const Labels& row : all) {
      labels.insert(labels.end(), row.begin(), row.end());
      lengths.push_back(static_cast<int64_t>(row.size()));
    }
    return std::vector<Tensor>{row_of(labels), row_of(lengths)};
  };
  std::vector<Tensor> tensors = joined(rows);
  for (const Tensor& each : joined(right)) tensors.push_back(each);
  std::vector<float> made(rows.size());
  run(&edit_distances, tensors, {{made.data(), made.size() * sizeof(float)}},
      is_share ? R"({"normalized": 1})" : R"({"normalized": 0})");
  return made;
}

/// By all ways to go on, of labels from these places on.
size_t distance_from(const Labels& a, const Labels& b, size_t i, size_t j) {
  if (i == a.size() || j == b.size()) return (a.size() - i) + (b.size() - j);
  if (a[i] == b[j]) return distance_from(a, b, i + 1, j + 1);
  return 1 + std::min({distance_from(a, b, i + 1, j + 1), distance_from(a, b, i + 1, j),
                       distance_from(a, b, i, j + 1)});
}

TEST(EditDistances, KnowTheirNumbers) {
  const auto labels = [](const std::string& text) { return Labels(text.begin(), text.end()); };
  const std::vector<Labels> rows = {labels("kitten"), labels(""), labels(""), labels("ab"), labels("same")},
                            right = {labels("sitting"), labels(""), labels("abc"), labels(""),
                                     labels("same")};
  EXPECT_EQ(distances(rows, right, false), (std::vector<float>{3, 0, 3, 2, 0}));
  EXPECT_EQ(distances(rows, right, true),
            (std::vector<float>{3.0F / 7, 0, 1, std::numeric_limits<float>::infinity(), 0}));
}

TEST(EditDistances, AreThoseOfAllWays) {
  for (int64_t seed = 0; seed < 40; ++seed) {
    Labels a, b;
    for (int64_t i = 0; i < seed % 6; ++i) a.push_back((i * i + seed) % 3);
    for (int64_t i = 0; i < seed % 7; ++i) b.push_back((i * seed + i / 2) % 3);
    EXPECT_EQ(distances({a}, {b}, false)[0], static_cast<float>(distance_from(a, b, 0, 0))) << seed;
  }
}

TEST(EditDistances, OfPlansOfStrangers) {
  const Tensor labels = row_of({1, 2}), floats = Tensor::zeros(DType::kFloat32, {2});
  const auto refused = [](const std::vector<Tensor>& operands, size_t rows) {
    std::vector<float> made(rows);
    expect_error(ErrorCode::kInvalidPackage, "host step", [&] {
      run(&edit_distances, operands, {{made.data(), rows * sizeof(float)}}, R"({"normalized": 0})");
    });
  };
  const Tensor whole = row_of({2});
  for (const int64_t wrong : {int64_t{-1}, int64_t{3}, std::numeric_limits<int64_t>::max()})
    refused({labels, row_of({wrong}), labels, whole}, 1);
  refused({labels, row_of({1, 1}), labels, whole}, 2);
  refused({floats, whole, labels, whole}, 1);
  refused({labels, whole, labels, whole}, 2);
}

struct Found {
  std::vector<Labels> labels;  ///< of each path
  std::vector<double> logs;
};

/// The best sequences of one row of scores [steps,classes], of which `count` steps count.
Found found(const std::vector<double>& scores, int64_t classes, int64_t count, size_t paths, size_t width,
            bool merges = false) {
  const auto steps = static_cast<int64_t>(scores.size()) / classes;
  const Tensor given = Tensor::from<double>({steps, 1, classes}, scores), counts = row_of({count});
  Labels labels(paths * static_cast<size_t>(steps)), lengths(paths);
  Found made{{}, std::vector<double>(paths)};
  run(&likely_labels, {given, counts},
      {{labels.data(), labels.size() * sizeof(int64_t)},
       {lengths.data(), paths * sizeof(int64_t)},
       {made.logs.data(), paths * sizeof(double)}},
      R"({"width": )" + std::to_string(width) + R"(, "merges": )" + std::to_string(int{merges}) + "}");
  for (size_t path = 0; path < paths; ++path) {
    const auto begin = labels.begin() + static_cast<int64_t>(path) * steps;
    made.labels.emplace_back(begin, begin + lengths[path]);
    EXPECT_TRUE(std::all_of(begin + lengths[path], begin + steps, [](int64_t each) { return each == 0; }));
  }
  return made;
}

/// How likely each sequence is, by what is said at each step in all ways: the softmax of each step.
std::map<Labels, double> of_all_ways(const std::vector<double>& scores, int64_t classes) {
  const int64_t steps = static_cast<int64_t>(scores.size()) / classes;
  std::map<Labels, double> made;
  for (int64_t way = 0; way < std::llround(std::pow(classes, steps)); ++way) {
    Labels labels;
    double log = 0;
    for (int64_t step = 0, rest = way, before = classes - 1; step < steps; ++step, rest /= classes) {
      const int64_t label = rest % classes;
      const auto own = scores.begin() + step * classes;
      double whole = 0;
      for (int64_t each = 0; each < classes; ++each) whole += std::exp(own[each]);
      log += own[label] - std::log(whole);
      if (label != classes - 1 && label != before) labels.push_back(label);
      before = label;
    }
    made[labels] += std::exp(log);
  }
  return made;
}

TEST(LikelyLabels, AreTheBestOfAllWays) {
  constexpr int64_t kClasses = 3;
  std::vector<double> scores;
  for (int i = 0; i < 5 * kClasses; ++i) scores.push_back(2 * std::sin(i * i + 1));
  std::vector<std::pair<double, Labels>> want;
  for (const auto& [labels, likely] : of_all_ways(scores, kClasses)) want.emplace_back(likely, labels);
  std::sort(want.rbegin(), want.rend());
  // Wide enough for all of them.
  const Found made = found(scores, kClasses, 5, 6, 64);
  for (size_t path = 0; path < made.labels.size(); ++path) {
    EXPECT_EQ(made.labels[path], want[path].second) << path;
    EXPECT_NEAR(made.logs[path], std::log(want[path].first), 1e-12) << path;
  }
}

TEST(LikelyLabels, StopAtTheirSteps) {
  const std::vector<double> scores = {3, 0, 0, 0, 0, 9, 3, 0, 0, 0, 9, 0};
  EXPECT_EQ(found(scores, 3, 4, 1, 8).labels[0], (Labels{0, 0, 1}));
  EXPECT_EQ(found(scores, 3, 4, 1, 8, true).labels[0], (Labels{0, 1}));
  EXPECT_EQ(found(scores, 3, 1, 1, 8).labels[0], (Labels{0}));
  const Found none = found(scores, 3, 0, 1, 8);
  EXPECT_EQ(none.labels[0], Labels{});
  EXPECT_EQ(none.logs[0], 0);
}

TEST(LikelyLabels, EndForNumbersThatAreNone) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {nan, infinity, -infinity})
    EXPECT_LE(found({wrong, 0, 1, wrong, wrong, wrong, 1, 0, 0}, 3, 3, 1, 4).labels[0].size(), 3u) << wrong;
}

TEST(LikelyLabels, SayWhatIsNotThere) {
  expect_error(ErrorCode::kTensorData, "a sequence of 3 steps in scores of 2", [] {
    found({0, 0, 0, 0}, 2, 3, 1, 4);
  });
  expect_error(ErrorCode::kTensorData, "3 sequences of labels, of which 1 are possible", [] {
    found({0, 0, 0, 0}, 2, 0, 3, 4);
  });
}

}  // namespace
}  // namespace tensormill::host_ops
