#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <optional>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "compiler/target/features.h"
#include "compiler/target/fingerprint.h"
#include "compiler/target/target.h"
#include "runtime/base/cpu_count.h"

namespace tensormill::target {
namespace {

struct Caches {
  int64_t l1d = 0;
  int64_t l2 = 0;
  bool are_known() const { return l1d > 0 && l2 > 0; }
};

/// A hypervisor may hide what says them to all but the C library, which knows the processor's older words.
Caches caches_from_libc() { return {::sysconf(_SC_LEVEL1_DCACHE_SIZE), ::sysconf(_SC_LEVEL2_CACHE_SIZE)}; }

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "48K" -> 49152; 0 when it is anything else.
int64_t parse_size(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > (int64_t{1} << 30)) return 0;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

Caches caches_from_sys() {
  Caches caches;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string level = read_line(folder + "level");
    const std::string type = read_line(folder + "type");
    const int64_t size = parse_size(read_line(folder + "size"));
    if (level == "1" && type == "Data") caches.l1d = size;
    if (level == "2" && type != "Instruction") caches.l2 = size;
  }
  return caches;
}

#if defined(__x86_64__)

struct Cpuid {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Cpuid cpuid(uint32_t leaf, uint32_t subleaf) {
  Cpuid r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

/// Deterministic cache parameters: leaf 4 (Intel) and 0x8000001d (AMD) have one layout.
Caches caches_from_cpuid(uint32_t leaf) {
  Caches caches;
  for (uint32_t i = 0; i < 8; ++i) {
    const Cpuid r = cpuid(leaf, i);
    const uint32_t type = r.a & 31;
    if (type == 0) break;
    const uint32_t level = (r.a >> 5) & 7;
    const int64_t size =
        int64_t{1 + (r.b >> 22)} * (1 + ((r.b >> 12) & 0x3ff)) * (1 + (r.b & 0xfff)) * (int64_t{r.c} + 1);
    if (level == 1 && type == 1) caches.l1d = size;
    if (level == 2 && type != 2) caches.l2 = size;
  }
  return caches;
}

/// Family, model and stepping as leaf 1 gives them.
std::string signature() { return std::to_string(cpuid(1, 0).a & 0x0fff3fff); }

std::string_view vendor_name() {
  const Cpuid r = cpuid(0, 0);
  if (r.b == 0x756e6547) return "intel";
  if (r.b == 0x68747541 || r.b == 0x6f677948) return "amd";
  return "generic";
}

/// Whether this process may use AMX tiles: the kernel grants them on request only (arch_prctl in main).
bool tiles_granted() {
  constexpr long kGetPermitted = 0x1022;
  uint64_t mask = 0;
  return syscall(SYS_arch_prctl, kGetPermitted, &mask) == 0 && (mask & (uint64_t{1} << 18)) != 0;
}

Caches fallback_caches() {
  Caches caches = caches_from_cpuid(4);
  if (!caches.are_known()) caches = caches_from_cpuid(0x8000001d);
  return caches.are_known() ? caches : caches_from_libc();
}

#else

std::string signature() { return std::to_string(getauxval(AT_HWCAP)); }

std::string_view vendor_name() { return "arm"; }

/// The kernel knows no tiles here.
bool tiles_granted() { return false; }

Caches fallback_caches() { return caches_from_libc(); }

#endif

FeatureSet host_features() {
  FeatureSet set;
  for (const CpuFeature& row : cpu_features()) {
    bool on = row.arch == host_cpu_arch() && host_has_cpu_feature(row.name);
    if (row.state == CpuFeatureState::kTiles) on = on && tiles_granted();
    // Rows stand after what they imply: a hypervisor may hide half of a pair.
    for (std::string_view implied : words(row.implies)) on = on && set.find(implied) != set.end();
    if (on) set.emplace(row.name);
  }
  return set;
}

/// The row of this vendor, or a generic one, with the most features that the machine has all of; AMX, which
/// the kernel may withhold, does not count against a row.
const CpuRow& closest_cpu(const FeatureSet& host) {
  const std::string_view vendor = vendor_name();
  const CpuRow* best = find_cpu(host_cpu_arch(), "generic");
  size_t best_size = 0;
  for (const CpuRow& row : all_cpus()) {
    if (row.arch != host_cpu_arch() || (row.vendor != vendor && row.vendor != "generic")) continue;
    const FeatureSet own = features_of(row);
    bool fits = true;
    size_t common = 0;
    for (const std::string& name : own) {
      const bool present = host.find(name) != host.end();
      fits = fits && (present || name.substr(0, 3) == "amx");
      common += present ? 1 : 0;
    }
    // A vendor's row beats a generic one of the same features: it has a scheduling model.
    const size_t size = 2 * common + (row.vendor == vendor ? 1 : 0);
    if (fits && size > best_size) {
      best = &row;
      best_size = size;
    }
  }
  return *best;
}

}  // namespace

Target host_target() {
  Target target;
  target.triple = std::string(host_cpu_arch()) + "-linux-gnu";
  const FeatureSet set = host_features();
  const CpuRow& cpu = closest_cpu(set);
  target.cpu = cpu.name;
  const FeatureSet own = features_of(cpu);
  for (const std::string& name : set) {
    if (own.find(name) == own.end()) target.features.push_back("+" + name);
  }
  for (const std::string& name : own) {
    if (set.find(name) == set.end()) target.features.push_back("-" + name);
  }
  derive_vector_facts(host_cpu_arch(), set, target.facts);
  derive_rates(cpu, target.facts);
  target.facts.num_cores = usable_cores();
  Caches caches = caches_from_sys();
  if (!caches.are_known()) caches = fallback_caches();
  if (!caches.are_known()) {
    caches = {int64_t{cpu.l1d_kib} * 1024, int64_t{cpu.l2_kib} * 1024};
    target.warnings.push_back("the cache sizes of this machine are unknown, taken from the row of " +
                              target.cpu);
  }
  target.facts.l1d_bytes = caches.l1d;
  target.facts.l2_bytes = caches.l2;
  return target;
}

std::string cpu_fingerprint(const Target& host) {
  std::string features;
  for (const std::string& name : host.required_features()) features += name + ",";
  return std::string(vendor_name()) + "-" + signature() + "-l1d" + std::to_string(host.facts.l1d_bytes) +
         "-l2" + std::to_string(host.facts.l2_bytes) + "-" + Digest::of(features).hex().substr(0, 16);
}

}  // namespace tensormill::target
