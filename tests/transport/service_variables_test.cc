// Variables that a cluster makes for services are no settings; what someone mistypes is told.
#include <gtest/gtest.h>

#include "config/settings.h"
#include "runtime/base/error.h"

namespace tensormill::config {
namespace {

std::string refused(std::map<std::string, std::string> environment) {
  SettingSources sources;
  sources.environment = std::move(environment);
  try {
    load_settings(sources);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  return "";
}

/// As kubelet makes them for the services `tensormill` and `tensormill-ops`, and Docker for a linked
/// container.
TEST(ServiceVariables, OfServicesBesideTheProgramAreNoSettings) {
  std::map<std::string, std::string> environment = {{"TENSORMILL_LISTEN", "127.0.0.1:2"}};
  for (const std::string service : {"TENSORMILL", "TENSORMILL_OPS"}) {
    for (const auto& [tail, value] : std::map<std::string, std::string>{
             {"_SERVICE_HOST", "10.96.0.7"},
             {"_SERVICE_PORT", "8080"},
             {"_SERVICE_PORT_HTTP", "8080"},
             {"_SERVICE_PORT_HTTP_ALT", "8081"},
             {"_PORT", "tcp://10.96.0.7:8080"},
             {"_PORT_8080_TCP", "tcp://10.96.0.7:8080"},
             {"_PORT_8080_TCP_PROTO", "tcp"},
             {"_PORT_8080_TCP_PORT", "8080"},
             {"_PORT_8080_TCP_ADDR", "10.96.0.7"},
             {"_PORT_53_UDP", "udp://10.96.0.7:53"},
         })
      environment[service + tail] = value;
  }
  EXPECT_EQ(refused(environment), "");
  EXPECT_EQ(refused({{"TENSORMILL_SERVICE_HOST", "fd00::7"}, {"TENSORMILL_PORT", "tcp://[fd00::7]:8080"}}),
            "");
}

TEST(ServiceVariables, AMistypedSettingIsStillOne) {
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"TENSORMILL_PORT", "9000"},
           {"TENSORMILL_PORT_8080_TCP_WHAT", "x"},
           {"TENSORMILL_PORT_HTTP", "8080"},
           {"TENSORMILL_SERVICE_PORT", "many"},
           {"TENSORMILL_SERVICE", "x"},
           {"TENSORMILL_PORT_8080_TCP_PORT", "9090"},
           {"TENSORMILL_HTTP_WORKER", "3"},
       }) {
    EXPECT_NE(refused({{"TENSORMILL_SERVICE_HOST", "10.96.0.7"}, {name, value}}).find(name),
              std::string::npos)
        << name;
  }
  EXPECT_NE(refused({{"TENSORMILL_SERVICE_HOST", "mill.example"}}), "")
      << "no service has a name for an address";
  EXPECT_NE(refused({{"TENSORMILL_SERVICE_PORT", "8080"}}), "") << "there is no service without a host";
}

}  // namespace
}  // namespace tensormill::config
