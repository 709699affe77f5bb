#include "server/services/info_service.h"

#include "compiler/driver/compile.h"
#include "compiler/frontend/formats/detect.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/json.h"

namespace tensormill::server {

InfoServiceImpl::InfoServiceImpl(const target::Target& host, std::map<std::string, int64_t> limits,
                                 services::ConfinementInfo confinement) {
  info_.version = driver::compiler_version();
  info_.compiler_id = driver::compiler_build();
  const size_t llvm = info_.compiler_id.rfind("llvm");
  info_.llvm_version = llvm == std::string::npos ? "" : info_.compiler_id.substr(llvm);
  info_.abi_version = TM_ABI_VERSION;
  info_.host_cpu = host.cpu;
  for (const std::string& feature : host.required_features()) info_.host_features.push_back("+" + feature);
  info_.host_cores = host.facts.num_cores;
  info_.native_target = host.canonical();
  info_.model_formats = frontend::importable_formats();
  info_.limits = std::move(limits);
  info_.confinement = std::move(confinement);
}

services::ServerInfo InfoServiceImpl::info() {
  services::ServerInfo info = info_;
  info.grpc_port = grpc_port_;
  return info;
}

std::vector<services::TargetPreset> TargetServiceImpl::list() {
  std::vector<services::TargetPreset> presets;
  presets.push_back({"native", "llvm -mcpu=native", "this machine: " + host_.canonical()});
  for (const std::string& cpu : target::known_cpus()) {
    presets.push_back({cpu, "llvm -mcpu=" + cpu, "LLVM's " + cpu});
  }
  return presets;
}

services::ParsedTarget TargetServiceImpl::parse(const std::string& text) {
  const target::Target target = target::parse_target(text, host_);
  services::ParsedTarget parsed;
  parsed.canonical = target.canonical();
  parsed.features = target.features;
  parsed.digest = target.digest();
  parsed.warnings = target.warnings;
  parsed.facts_json = Json{{"vector_bits", target.facts.vector_bits},
                           {"vector_registers", target.facts.vector_registers},
                           {"fma", target.facts.fma},
                           {"l1d_bytes", target.facts.l1d_bytes},
                           {"l2_bytes", target.facts.l2_bytes},
                           {"num_cores", target.facts.num_cores}}
                          .dump();
  return parsed;
}

void HealthServiceImpl::set_broken(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reason_ = reason;
}

services::Readiness HealthServiceImpl::ready() {
  if (draining_) return {false, "draining"};
  if (restored_) return {true, ""};
  const std::lock_guard lock(mutex_);
  return {false, reason_};
}

}  // namespace tensormill::server
