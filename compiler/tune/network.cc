#include "compiler/tune/network.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/tune/choose.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"

namespace tensormill::tune {

namespace {

constexpr double kSteady = 0.0025;  // standard error of the gain: rounds enough
constexpr size_t kMostRounds = 5;   // times as many as are asked for, where the machine is not steady

/// A part of the model in all rounds.
struct Part {
  std::set<std::string> untuned_kernels, tuned_kernels;
  std::vector<double> untuned, tuned;  ///< seconds of all calls, by round
  int64_t calls = 0;
};
using Parts = std::map<std::string, Part>;

std::map<std::string, std::string> layers_of(const std::vector<Record>& records) {
  std::map<std::string, std::string> layers;
  for (const Record& record : records) {
    if (!record.layer.empty()) layers.emplace(record.task_key, record.layer);
  }
  return layers;
}

Parts parts_of(const std::vector<Record>& records, const NetworkRounds& rounds) {
  TM_CHECK(rounds.untuned.size() == rounds.tuned.size() && !rounds.tuned.empty(), "rounds without a pair");
  const std::map<std::string, std::string> layers = layers_of(records);
  Parts parts;
  const auto add = [&](const std::vector<NetworkRun>& runs, auto seconds, auto kernels, bool counts) {
    for (size_t round = 0; round < runs.size(); ++round) {
      for (const auto& [key, time] : runs[round].kernels) {
        const auto layer = layers.find(key);
        Part& part = parts[layer == layers.end() ? key : layer->second];
        (part.*kernels).insert(key);
        (part.*seconds).resize(runs.size());
        (part.*seconds)[round] += time.seconds;
        if (counts && round == 0) part.calls += time.calls;
      }
    }
  };
  add(rounds.untuned, &Part::untuned, &Part::untuned_kernels, true);
  add(rounds.tuned, &Part::tuned, &Part::tuned_kernels, false);
  return parts;
}

bool is_changed(const Part& part, const std::map<std::string, const Record*>& best) {
  if (part.untuned.empty() || part.tuned.empty()) return false;
  if (part.untuned_kernels != part.tuned_kernels) return true;
  return std::any_of(part.tuned_kernels.begin(), part.tuned_kernels.end(), [&](const std::string& key) {
    const auto record = best.find(key);
    return record != best.end() && !record->second->is_default;
  });
}

std::vector<double> each_call(const std::vector<double>& seconds, int64_t calls) {
  std::vector<double> each;
  for (const double all : seconds) each.push_back(all / static_cast<double>(calls));
  return each;
}

const Record* default_record(const std::vector<Record>& records, const std::string& kernel,
                             const target::Target& target, const std::string& codegen) {
  const auto found = std::find_if(records.begin(), records.end(), [&](const Record& record) {
    return record.task_key == kernel && record.is_default && record.error == TrialError::kNone &&
           record.target == target.canonical() && record.codegen == codegen;
  });
  return found == records.end() ? nullptr : &*found;
}

Record final_record(Record record, std::vector<double> seconds, double timestamp) {
  record.final = true;
  record.seconds = std::move(seconds);
  record.all_seconds = 0;
  record.timestamp = timestamp;
  return record;
}

// What else runs on the machine only adds time.
double least(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

double lower_quartile(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 4);
}

/// Untuned ÷ tuned time of whole runs, by round.
std::vector<double> gains_of(const NetworkRounds& rounds) {
  std::vector<double> gains;
  for (size_t i = 0; i < rounds.tuned.size(); ++i)
    gains.push_back(least(rounds.untuned[i].seconds) / least(rounds.tuned[i].seconds));
  return gains;
}

/// Standard error of the median: 1.25 times the mean's, its deviation from the median absolute one.
double error_of_median(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> deviations;
  for (const double value : values) deviations.push_back(std::abs(value - middle));
  return 1.2533 * 1.4826 * median(std::move(deviations)) / std::sqrt(static_cast<double>(values.size()));
}

/// A clock that saw nothing pass has none of the others count for nothing.
double geometric_mean(const std::vector<double>& seconds) {
  double sum = 0;
  for (const double each : seconds) sum += std::log(std::max(each, 1e-9));
  return std::exp(sum / static_cast<double>(seconds.size()));
}

void append(NetworkRounds more, NetworkRounds& rounds) {
  std::move(more.untuned.begin(), more.untuned.end(), std::back_inserter(rounds.untuned));
  std::move(more.tuned.begin(), more.tuned.end(), std::back_inserter(rounds.tuned));
}

}  // namespace

NetworkRun mean_run(std::vector<NetworkRun> at_extents) {
  TM_CHECK(!at_extents.empty(), "a mean of no runs");
  NetworkRun mean;
  std::map<std::string, std::vector<double>> kernels;
  for (NetworkRun& run : at_extents) {
    std::sort(run.seconds.begin(), run.seconds.end());
    for (const auto& [key, time] : run.kernels) {
      mean.kernels.try_emplace(key, time);
      kernels[key].push_back(time.seconds);
    }
  }
  for (size_t i = 0; i < at_extents.front().seconds.size(); ++i) {
    std::vector<double> each;
    for (const NetworkRun& run : at_extents) each.push_back(run.seconds.at(i));
    mean.seconds.push_back(geometric_mean(each));
  }
  for (auto& [key, time] : mean.kernels) time.seconds = geometric_mean(kernels.at(key));
  return mean;
}

Json to_json(const std::vector<NetworkPart>& parts) {
  Json list = Json::array();
  for (const NetworkPart& part : parts) {
    list.push_back({{"name", part.name},
                    {"key", part.key},
                    {"calls", part.calls},
                    {"untuned_ms", part.untuned_seconds * 1e3},
                    {"tuned_ms", part.tuned_seconds * 1e3}});
  }
  return list;
}

std::vector<NetworkPart> changed_parts(const std::vector<Record>& records, const target::Target& target,
                                       const std::string& codegen, const NetworkRounds& rounds) {
  const std::map<std::string, const Record*> best = best_records(records, target, codegen);
  std::vector<NetworkPart> changed;
  for (const auto& [key, part] : parts_of(records, rounds)) {
    if (!is_changed(part, best)) continue;
    const auto record = best.find(*part.tuned_kernels.begin());
    NetworkPart one;
    one.name = record == best.end() ? key : record->second->task;
    one.key = key;
    one.calls = part.calls;
    one.untuned_seconds = lower_quartile(part.untuned);
    one.tuned_seconds = lower_quartile(part.tuned);
    one.pays = one.tuned_seconds < one.untuned_seconds * kBeyondNoise;
    changed.push_back(std::move(one));
  }
  return changed;
}

std::vector<Record> records_against(const std::vector<NetworkPart>& parts, const std::vector<Record>& records,
                                    const target::Target& target, const std::string& codegen,
                                    const NetworkRounds& rounds, double timestamp) {
  const std::map<std::string, const Record*> best = best_records(records, target, codegen);
  const Parts all = parts_of(records, rounds);
  std::vector<Record> against;
  for (const NetworkPart& one : parts) {
    const Part& part = all.at(one.key);
    std::vector<Record> own;
    for (const std::string& kernel : part.untuned_kernels) {
      const Record* record = default_record(records, kernel, target, codegen);
      if (record != nullptr)
        own.push_back(final_record(*record, each_call(part.untuned, part.calls), timestamp));
    }
    if (own.size() != part.untuned_kernels.size()) continue;
    for (const std::string& kernel : part.tuned_kernels) {
      if (part.untuned_kernels.contains(kernel) || !best.contains(kernel)) continue;
      std::vector<double> seconds;
      for (size_t i = 0; i < part.tuned.size(); ++i)
        seconds.push_back(std::max(part.tuned[i], part.untuned[i]));
      own.push_back(final_record(*best.at(kernel), each_call(seconds, part.calls), timestamp));
    }
    std::move(own.begin(), own.end(), std::back_inserter(against));
  }
  return against;
}

NetworkOutcome settle_in_network(NetworkBench& bench, const target::Target& target,
                                 const std::string& codegen, int rounds,
                                 const std::function<double()>& clock) {
  NetworkOutcome outcome;
  std::vector<NetworkPart> parts;
  const auto measure = [&] {
    bench.compile();
    outcome.rounds = bench.run(rounds);
    std::vector<double> gains = gains_of(outcome.rounds);
    while (gains.size() < kMostRounds * static_cast<size_t>(rounds) && error_of_median(gains) > kSteady) {
      append(bench.run(rounds), outcome.rounds);
      gains = gains_of(outcome.rounds);
    }
    outcome.gain = median(std::move(gains));
    parts = changed_parts(bench.records(), target, codegen, outcome.rounds);
  };
  // How many of them there were records against.
  const auto leave_out = [&](const std::vector<NetworkPart>& which) {
    const std::vector<Record> against =
        records_against(which, bench.records(), target, codegen, outcome.rounds, clock());
    for (const Record& record : against) bench.keep(record);
    outcome.left_out.insert(outcome.left_out.end(), which.begin(), which.end());
    return against.size();
  };
  measure();
  std::vector<NetworkPart> idle;
  std::copy_if(parts.begin(), parts.end(), std::back_inserter(idle),
               [](const NetworkPart& part) { return !part.pays; });
  if (!idle.empty() && leave_out(idle) > 0) measure();
  // Without changed parts both packages are the same code.
  outcome.is_tuned = parts.empty() || outcome.gain >= 1;
  if (!outcome.is_tuned) leave_out(parts);
  return outcome;
}

}  // namespace tensormill::tune
