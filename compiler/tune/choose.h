/// From records to the schedules and algorithms of a compile. Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "compiler/tune/records/record.h"

namespace tensormill::tune {

/// Of the time of what it takes the place of: what a measured schedule or algorithm has to reach.
inline constexpr double kBeyondNoise = 0.99;

/// For each kernel that usable records name, the best of them: of records that were measured again
/// interleaved with the default the last, else the one with the least time.
std::map<std::string, const Record*> best_records(const std::vector<Record>& records,
                                                  const target::Target& target, const std::string& codegen);

/// For each kernel that the records name, the schedule of its best record for `target` and this compiler: a
/// kernel whose records are all for another target or compiler, or failed, gets the reason.
std::map<std::string, driver::TunedSchedule> choose_schedules(const std::vector<Record>& records,
                                                              const target::Target& target,
                                                              const std::string& codegen);

/// For each layer of which more than one algorithm has usable records, what takes the place of each of them:
/// the fastest one by the records that choose_schedules takes, or itself where nothing is more than 1 %
/// faster. Times are compared of one kind, of records measured interleaved with others, or of single trials.
/// A record that names no layer is of the direct form of its own kernel's layer.
driver::LayerAlgorithms choose_algorithms(const std::vector<Record>& records, const target::Target& target,
                                          const std::string& codegen);

}  // namespace tensormill::tune
