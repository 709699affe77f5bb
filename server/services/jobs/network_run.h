/// A package's runs, as tune::settle_in_network compares them. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/tune/network.h"
#include "runtime/base/json_fwd.h"
#include "runtime/package/metadata.h"

namespace tensormill::server {

inline constexpr int kNetworkSamples = 3;  ///< of one package in a round

/// How many runs, of which one takes `run_ms`, make a measurement that is long enough to be timed.
int runs_of_a_sample(double run_ms);

/// `runs_ms` and `profile` are those of services::Timing; `metadata` is the package's.
tune::NetworkRun network_run(const std::vector<double>& runs_ms, const Json& profile,
                             const package::Metadata& metadata);

/// One of the two packages at extents of the free dims; none: the package's first ones.
using RunAt =
    std::function<tune::NetworkRun(int round, bool is_tuned, const std::vector<int64_t>& dims, int number)>;
/// Runs of both packages in turns at each of `extents` (never none), so that whatever else changes on the
/// machine changes both. `first_run_ms`: what one run takes there.
tune::NetworkRounds rounds_of(int rounds, const std::vector<std::vector<int64_t>>& extents,
                              const std::function<double(const std::vector<int64_t>& dims)>& first_run_ms,
                              const RunAt& run);

}  // namespace tensormill::server
