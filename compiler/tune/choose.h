/// From records to the schedules of a compile. Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/target/target.h"
#include "compiler/tune/records/record.h"

namespace tensormill::tune {

/// For each kernel that the records name, the best schedule for `target` and this compiler: of records that
/// were measured again in turns with the default the last, else the one with the least time. A kernel whose
/// records are all for another target or compiler, or failed, gets the reason.
std::map<std::string, driver::TunedSchedule> choose_schedules(const std::vector<Record>& records,
                                                              const target::Target& target,
                                                              const std::string& codegen);

}  // namespace tensormill::tune
