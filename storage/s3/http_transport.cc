#include "storage/s3/http_transport.h"

#include "runtime/base/module.h"

namespace tensormill::storage {

std::unique_ptr<HttpTransport> load_http_transport() {
  using Make = HttpTransport* (*)();
  const auto make = reinterpret_cast<Make>(load_module("tensormill-s3", "tensormill_make_http_transport"));
  return std::unique_ptr<HttpTransport>(make());
}

}  // namespace tensormill::storage
