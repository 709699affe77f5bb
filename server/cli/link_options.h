/// How a command reaches a server: what --server, --key-file, --ca and --pin say. Thread-safety: pure
/// function.
#pragma once

#include <string>
#include <vector>

#include "server/worker/server_link.h"

namespace tensormill::cli {

/// Throws Error(kUsage), Error(kNotFound).
worker::ServerLinkOptions link_options(const std::string& url, const std::string& key_file,
                                       const std::string& ca_file, const std::vector<std::string>& pins);

}  // namespace tensormill::cli
