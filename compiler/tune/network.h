/// What records are worth within their model. Alone in a loop a kernel finds its tensors where its last run
/// left them; within a model they come from the kernels before it and go to those behind it. So the model
/// runs untuned and tuned interleaved, kernel by kernel: what does not pay there is left out, and a tuned
/// model that is slower as a whole is not taken. Thread-safety: a NetworkBench belongs to one thread; the
/// rest are pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/tune/records/record.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::tune {

/// A kernel in one run of a model.
struct KernelTime {
  int64_t calls = 0;
  double seconds = 0;  ///< of all calls together
};
/// By the kernel's key (Record::task_key).
using KernelTimes = std::map<std::string, KernelTime>;

/// A block of runs of one package.
struct NetworkRun {
  std::vector<double> seconds;  ///< of a whole run, one per measurement
  KernelTimes kernels;          ///< of one run
};

/// Runs of one package at several extents, as one: geometric means of their measurements, the shortest ones
/// together, and of each kernel's times where it is called, with the calls at the first of them. Not zero,
/// each of as many measurements.
NetworkRun mean_run(std::vector<NetworkRun> at_extents);

/// A kernel, or a layer that may be computed by several, which records change.
struct NetworkPart {
  std::string name;  ///< Record::task
  std::string key;   ///< the layer's, or the kernel's where there is no layer
  int64_t calls = 0;
  double untuned_seconds = 0;  ///< of all calls in a run: the lower quartile of the rounds
  double tuned_seconds = 0;
  bool pays = false;  ///< faster by more than noise
};

/// Untuned and tuned runs, a round an element of each.
struct NetworkRounds {
  std::vector<NetworkRun> untuned, tuned;
};

/// [{"name","key","calls","untuned_ms","tuned_ms"}]
Json to_json(const std::vector<NetworkPart>& parts);

/// The parts that the tuned package has otherwise than the untuned one, where `records` are what it was
/// tuned with. Both lists of rounds have the same, not zero, length.
std::vector<NetworkPart> changed_parts(const std::vector<Record>& records, const target::Target& target,
                                       const std::string& codegen, const NetworkRounds& rounds);

/// Final records by which choose_schedules and choose_algorithms take, for these parts, what the model has
/// untuned: the times are those within the model. An algorithm that did not pay there gets no time below the
/// one it was to take the place of. A part of which no record has the default schedule has none.
std::vector<Record> records_against(const std::vector<NetworkPart>& parts, const std::vector<Record>& records,
                                    const target::Target& target, const std::string& codegen,
                                    const NetworkRounds& rounds, double timestamp);

/// Compiles a model with and without records, and runs it.
class NetworkBench {
public:
  virtual ~NetworkBench() = default;
  /// The model's records as they are now.
  virtual std::vector<Record> records() = 0;
  /// Adds one.
  virtual void keep(const Record& record) = 0;
  /// Makes the tuned package anew with what the records say now; the first time also the untuned one.
  virtual void compile() = 0;
  /// The untuned and the tuned package, each for so many rounds, interleaved.
  virtual NetworkRounds run(int rounds) = 0;
};

struct NetworkOutcome {
  NetworkRounds rounds;               ///< of the packages as they are now
  std::vector<NetworkPart> left_out;  ///< as they were measured
  double gain = 1;                    ///< untuned ÷ tuned time of a run: the middle one of the rounds
  bool is_tuned = false;  ///< the tuned package is not slower; else the untuned one is to be taken
};

/// Compiles and measures, `rounds` times at least and more where the times scatter, writes records against
/// what does not pay, and compiles and measures again where there was something. Where the whole is slower
/// even so, records against all that is left are written. `clock` gives seconds since 1970.
NetworkOutcome settle_in_network(NetworkBench& bench, const target::Target& target,
                                 const std::string& codegen, int rounds,
                                 const std::function<double()>& clock);

}  // namespace tensormill::tune
