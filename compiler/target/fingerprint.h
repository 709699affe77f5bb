/// Which machine timings were made on. Thread-safety: pure function of the machine.
#pragma once

#include <string>

#include "compiler/target/target.h"

namespace tensormill::target {

/// What timings of this machine hold for, of `host` = host_target(): vendor, family, model, stepping,
/// features and the caches of a core; not what a virtual machine invents (brand, clock, microcode, L3).
std::string cpu_fingerprint(const Target& host);

}  // namespace tensormill::target
