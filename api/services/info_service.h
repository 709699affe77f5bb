/// What this server is and can: GET /v1/info, /v1/targets, /healthz, /readyz.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::services {

/// What stands around the children that work on strangers' bytes.
struct ConfinementInfo {
  bool required = false;  ///< a child without its walls does not work
  bool seccomp = false;
  int landlock_abi = 0;  ///< 0: the kernel has no Landlock
  int64_t user = 0;      ///< that children become; 0: the server's own
  std::string memory;    ///< what bounds their memory
};

struct ServerInfo {
  std::string version;      ///< "0.1.0"
  std::string compiler_id;  ///< what enters the package's cache key
  std::string llvm_version;
  int abi_version = 0;
  std::string host_cpu;                    ///< "icelake-server"
  std::vector<std::string> host_features;  ///< "+avx2" …, sorted
  int host_cores = 0;
  std::string native_target;               ///< canonical form of `llvm -mcpu=native`
  std::vector<std::string> model_formats;  ///< "onnx", "tflite" ...: those that can be imported
  std::map<std::string, int64_t> limits;   ///< by the names that errors use: "limits.model_bytes"
  ConfinementInfo confinement;
  int grpc_port = 0;  ///< of KServe v2 over gRPC; 0: there is none
};

/// Thread-safety: all methods from many threads.
class InfoService {
public:
  virtual ~InfoService() = default;
  virtual ServerInfo info() = 0;
};

struct TargetPreset {
  std::string name;    ///< "skylake-avx512"
  std::string target;  ///< "llvm -mcpu=skylake-avx512"
  std::string description;
};

struct ParsedTarget {
  std::string canonical;              ///< "llvm -mcpu=haswell -num-cores=2 …"
  std::vector<std::string> features;  ///< "+avx2" …, sorted
  Digest digest;                      ///< of the canonical form
  std::vector<std::string> warnings;
  std::string facts_json;  ///< lanes, caches, cores …: an object
};

/// Thread-safety: all methods from many threads.
class TargetService {
public:
  virtual ~TargetService() = default;
  virtual std::vector<TargetPreset> list() = 0;
  /// Parses and resolves a target string (or its JSON text form), `native` included. Throws
  /// Error(kInvalidTarget) naming the wrong part.
  virtual ParsedTarget parse(const std::string& target) = 0;
};

struct Readiness {
  bool ready = true;
  std::string reason;  ///< "draining", "starting"; "" when ready
};

/// Both are asked on a lane of their own and must not wait for a worker, a lock that is held for long, or a
/// disk. Thread-safety: all methods from many threads.
class HealthService {
public:
  virtual ~HealthService() = default;
  virtual bool live() = 0;
  /// A failed deployment does not unready the server.
  virtual Readiness ready() = 0;
};

}  // namespace tensormill::services
