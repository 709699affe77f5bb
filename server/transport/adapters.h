/// The adapters, for make_transport alone.
#pragma once

#include <memory>

#include "server/transport/transport.h"

namespace tensormill::transport {

std::unique_ptr<ServerTransport> make_beast_transport(const TransportOptions& options);
std::unique_ptr<ServerTransport> make_cpprest_transport(const TransportOptions& options);

}  // namespace tensormill::transport
