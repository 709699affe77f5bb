/// An item of work taken from a server in a file, for a machine that does not reach it.
/// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/worker/server_link.h"

namespace tensormill::worker {

struct TakeOptions {
  std::string name;
  std::vector<std::string> verbs;
  std::vector<std::string> labels;
  int hold_s = 86'400;     ///< so long the server waits for what comes of it
  uint64_t max_bytes = 0;  ///< of one blob
  int wait_s = 0;          ///< for an item
};

/// The item's lease. Throws Error(kNotFound) where there is none now, and what the server says.
std::string take_item(ServerLink& link, const TakeOptions& options, const std::string& file);

}  // namespace tensormill::worker
