/// The variables that Kubernetes and Docker links put into a container's environment for each service beside
/// it. A service that is called as this program is (tensormill, tensormill-ops) has variables that look like
/// settings. Thread-safety: immutable after construction.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::config {

class ServiceVariables {
public:
  /// Finds the services: each has NAME_SERVICE_HOST with an address.
  explicit ServiceVariables(const std::map<std::string, std::string>& environment);
  /// Whether the variable belongs to one of them, by its name and by the form of its value:
  ///   NAME_SERVICE_HOST=10.96.0.7                NAME_SERVICE_PORT=8080, NAME_SERVICE_PORT_HTTP=8080
  ///   NAME_PORT=tcp://10.96.0.7:8080             NAME_PORT_8080_TCP=tcp://10.96.0.7:8080
  ///   NAME_PORT_8080_TCP_PROTO=tcp               NAME_PORT_8080_TCP_PORT=8080
  ///   NAME_PORT_8080_TCP_ADDR=10.96.0.7
  /// A setting that someone has mistyped has no service beside it, or another value, and is none of these.
  bool has(std::string_view variable, std::string_view value) const;

private:
  std::vector<std::string> services_;
};

}  // namespace tensormill::config
