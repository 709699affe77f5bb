#include "server/rpc/listener.h"

#include "runtime/base/module.h"

namespace tensormill::rpc {

std::unique_ptr<Listener> load_listener() {
  using Make = Listener* (*)();
  const auto make = reinterpret_cast<Make>(load_module("tensormill-grpc", "tensormill_make_rpc_listener"));
  return std::unique_ptr<Listener>(make());
}

}  // namespace tensormill::rpc
