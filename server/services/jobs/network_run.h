/// A package's runs, as tune::settle_in_network compares them. Thread-safety: pure functions.
#pragma once

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

}  // namespace tensormill::server
