/// Targets: what code is generated for. A target string is tvmc's: "llvm -mcpu=core-avx2
/// -mattr=+avx2,-avx512f -mtriple=x86_64-linux-gnu -num-cores=2", or the JSON form {"kind":"llvm","mcpu":…}.
/// The canonical form spells everything that influences code: equal canonical strings give equal bytes.
/// "native" is resolved by the caller (CLI or server) through resolve_native; compilation itself never looks
/// at the host. Thread-safety: values and pure functions; host_target reads cpuid and /sys once per call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"

namespace tensormill::target {

/// Facts that schedules are chosen by; for a named CPU they come from config's table, never from the host.
struct CpuFacts {
  int vector_bits = 128;
  int vector_registers = 16;
  bool fma = false;
  bool dot4 = false;     ///< instructions that add the products of four pairs of bytes, as wide as vectors
  bool scaling = false;  ///< instructions that scale by powers of two and that estimate reciprocals
  bool byte_lookup = false;  ///< instructions that look the bytes of a vector up in a table of 64 or more
  int64_t l1d_bytes = 32 * 1024;
  int64_t l2_bytes = 512 * 1024;
  int num_cores = 1;
  int products_per_cycle = 2;  ///< fused multiply-adds of whole vectors that a core starts
  int streamed_bytes = 4;      ///< a cycle, that one core reads past its L2
  int lanes(int element_bits) const { return vector_bits / element_bits; }
};

struct Target {
  std::string kind = "llvm";
  std::string triple;  ///< "x86_64-linux-gnu"
  std::string cpu;     ///< LLVM's name, "sapphirerapids"; never "native"
  std::vector<std::string>
      features;  ///< sorted, "+avx2" or "-avx512f": the full resolved difference to the cpu
  CpuFacts facts;
  std::vector<std::string> warnings;  ///< not part of the identity

  /// The canonical string; parse_target(canonical()) gives an equal target.
  std::string canonical() const;
  Digest digest() const { return Digest::of(canonical()); }
  /// Names of CPU features that the machine must have ("avx512f"), for metadata.json; sorted.
  std::vector<std::string> required_features() const;
  bool is_x86() const;
};

/// Parses a target string, a JSON object text, or the text of a JSON file's content. "native" (alone or as
/// -mcpu) needs `host`. Throws Error(kInvalidTarget) naming the option, and Error(kNotSupported) for a kind
/// that is known in the field but not built here.
Target parse_target(std::string_view text, const Target& host);
/// The machine that this process runs on: cpuid, cores, L1d and L2 (defaults with a warning where /sys is
/// absent).
Target host_target();
/// The CPU names that parse_target knows, with their facts: config/cpus.def.
std::vector<std::string> known_cpus();

}  // namespace tensormill::target
