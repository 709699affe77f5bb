/// Whether a machine can run code for a target. Thread-safety: pure function.
#pragma once

#include "compiler/target/target.h"

namespace tensormill::server {

bool host_runs(const target::Target& target, const target::Target& host);

}  // namespace tensormill::server
