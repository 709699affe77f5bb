/// One GET of a server's health, for programs that watch it. Over cpprestsdk's client.
/// Thread-safety: pure function over sockets.
#pragma once

#include <chrono>
#include <string>

namespace tensormill::transport {

struct ProbeResult {
  int status = 0;
  std::string body;  ///< its first 1000 bytes, without a line's end
};

/// Throws Error(kUsage) for what is no http or https address, Error(kUnavailable) when nothing answers within
/// `timeout`. A certificate is not checked: what is probed stands on the same machine, whatever name it
/// serves.
ProbeResult probe(const std::string& url, std::chrono::milliseconds timeout);

}  // namespace tensormill::transport
