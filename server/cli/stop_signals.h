/// How a process that goes on until it is to end hears of that. Thread-safety: called once, before there
/// are threads.
#pragma once

#include "runtime/base/file.h"

namespace tensormill::cli {

/// SIGINT and SIGTERM as a descriptor; blocked in all threads that are made later.
FileDescriptor stop_signals();

}  // namespace tensormill::cli
