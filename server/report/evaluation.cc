#include "server/report/evaluation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"
#include "server/report/energy.h"

namespace tensormill::report {

namespace {

/// An input with what the set has for it.
struct Feed {
  size_t index = 0;
  const Tensor* tensor = nullptr;
  int64_t rows = 1;     ///< of a batch
  int64_t batches = 1;  ///< that the tensor has
};

const DimShape& declared_shape(const exec::GraphExecutor& executor, size_t index) {
  const std::vector<DimShape>& declared = executor.package().package().plans().input_shapes;
  return index < declared.size() ? declared[index] : executor.inputs()[index].shape;
}

Feed feed_of(const exec::GraphExecutor& executor, size_t index, const std::vector<npz::NamedTensor>& set) {
  const std::string& name = executor.inputs()[index].name;
  const auto found = std::find_if(set.begin(), set.end(), [&](const auto& one) { return one.name == name; });
  if (found == set.end()) throw Error(ErrorCode::kInvalidTensor, "input \"" + name + "\" is not in the set");
  Feed feed{index, &found->tensor};
  const DimShape& declared = declared_shape(executor, index);
  const Shape& shape = feed.tensor->shape();
  if (declared.empty() || shape.empty()) return feed;
  const int64_t* rows = std::get_if<int64_t>(&declared.front());
  feed.rows = rows == nullptr ? 1 : *rows;
  if (feed.rows < 1 || shape.front() < 1 || shape.front() % feed.rows != 0) {
    throw Error(ErrorCode::kInvalidTensor, "input \"" + name + "\": " + std::to_string(shape.front()) +
                                               " rows are no multiple of the package's batch of " +
                                               std::to_string(feed.rows));
  }
  feed.batches = shape.front() / feed.rows;
  return feed;
}

std::vector<Feed> feeds_of(const exec::GraphExecutor& executor, const std::vector<npz::NamedTensor>& set) {
  for (const npz::NamedTensor& entry : set) executor.input_index(entry.name);
  std::vector<Feed> feeds;
  int64_t batches = 1;
  for (size_t i = 0; i < executor.inputs().size(); ++i) {
    feeds.push_back(feed_of(executor, i, set));
    batches = std::max(batches, feeds.back().batches);
  }
  for (const Feed& feed : feeds) {
    if (feed.batches == batches || feed.batches == 1) continue;
    throw Error(ErrorCode::kInvalidTensor, "input \"" + executor.inputs()[feed.index].name + "\" has " +
                                               std::to_string(feed.batches) + " batches, another one " +
                                               std::to_string(batches));
  }
  return feeds;
}

void set_batch(exec::GraphExecutor& executor, const std::vector<Feed>& feeds, int64_t batch) {
  for (const Feed& feed : feeds) {
    TensorView view{feed.tensor->dtype(), feed.tensor->shape(), feed.tensor->data()};
    if (feed.batches > 1) {
      const size_t bytes = feed.tensor->num_bytes() / static_cast<size_t>(feed.batches);
      view.shape.front() = feed.rows;
      view.data = static_cast<const std::byte*>(view.data) + bytes * static_cast<size_t>(batch);
    }
    executor.set_input(feed.index, view);
  }
}

/// The class with the largest score of each row, the first of equal ones; false where there are no rows.
bool add_best(const TensorView& scores, int64_t rows, std::vector<int64_t>& best) {
  const int64_t elements = num_elements(scores.shape);
  if (scores.dtype == kString || rows < 1 || elements % rows != 0 || elements / rows < 2) return false;
  const Tensor tensor(scores.dtype, scores.shape, nullptr, const_cast<void*>(scores.data));
  const int64_t classes = elements / rows;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = 0;
    for (int64_t c = 1; c < classes; ++c) {
      if (tensor.element_as_double(row * classes + c) > tensor.element_as_double(row * classes + at)) at = c;
    }
    best.push_back(at);
  }
  return true;
}

Json slowest_steps(const exec::GraphExecutor& executor, std::vector<exec::StepTime> profile) {
  constexpr size_t kShown = 3;
  int64_t total = 0;
  for (const exec::StepTime& time : profile) total += time.duration_ns;
  std::stable_sort(profile.begin(), profile.end(),
                   [](const auto& a, const auto& b) { return a.duration_ns > b.duration_ns; });
  Json rows = Json::array();
  for (size_t i = 0; i < std::min(kShown, profile.size()); ++i) {
    const auto ns = static_cast<double>(profile[i].duration_ns);
    rows.push_back({{"name", executor.plan().steps[profile[i].step].name},
                    {"us", ns / 1e3},
                    {"share", ns / static_cast<double>(std::max<int64_t>(total, 1))}});
  }
  return rows;
}

}  // namespace

Json evaluate(exec::GraphExecutor& executor, parallel::ThreadPool& pool, const exec::RunOptions& run_options,
              const std::vector<npz::NamedTensor>& set, const EvaluationOptions& options) {
  const std::vector<Feed> feeds = feeds_of(executor, set);
  // The one that has the samples; others may go with all of them.
  const auto lead = std::max_element(feeds.begin(), feeds.end(),
                                     [](const Feed& a, const Feed& b) { return a.batches < b.batches; });
  const int64_t rows = lead == feeds.end() ? 1 : lead->rows;
  int64_t batches = lead == feeds.end() ? 1 : lead->batches;
  if (options.samples > 0) batches = std::min(batches, std::max<int64_t>(1, options.samples / rows));
  set_batch(executor, feeds, 0);
  const std::vector<double> times = measure_times(options.times, [&] { executor.run(pool, run_options); });
  std::vector<exec::StepTime> profile;
  exec::RunOptions with_profile = run_options;
  with_profile.profile = &profile;
  executor.run(pool, with_profile);
  const size_t output = options.scores.empty() ? 0 : executor.output_index(options.scores);
  std::vector<int64_t> best;
  bool has_best = true;
  bool interpreted = false;
  std::optional<EnergyCounter> energy;
  if (!options.energy_root.empty()) energy.emplace(options.energy_root);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t batch = 0; batch < batches; ++batch) {
    set_batch(executor, feeds, batch);
    executor.run(pool, run_options);
    has_best = has_best && add_best(executor.output(output), rows, best);
    interpreted = interpreted || executor.is_interpreted();
  }
  const double pass_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::optional<double> joules = energy ? energy->joules() : std::nullopt;
  Json summary = times_json(times);
  summary["p95_ms"] = percentile(times, 0.95);
  return {{"times", summary},
          {"batch", rows},
          {"samples", batches * rows},
          {"pass_s", pass_s},
          {"samples_per_s", static_cast<double>(batches * rows) / pass_s},
          {"energy_j", joules ? Json(*joules) : Json()},
          {"interpreted", interpreted},
          {"steps", slowest_steps(executor, profile)},
          {"best", has_best ? Json(best) : Json()}};
}

}  // namespace tensormill::report
