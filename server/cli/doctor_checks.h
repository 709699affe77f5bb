/// What this machine can do for the program: each thing that it looks at is a finding. Nothing is changed,
/// but for a file that is made in the store's folder and goes at once, and a socket that is bound for a
/// moment. Thread-safety: pure functions of the machine's state.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace tensormill::cli {

enum class Verdict {
  kGood,     ///< there
  kMissing,  ///< something optional is not there; the rest works
  kBad,      ///< the program cannot do its work
};

/// "good", "missing", "bad"
const char* verdict_name(Verdict verdict);

struct Finding {
  std::string group;  ///< heading: "processor"
  std::string name;   ///< "vector instructions"
  Verdict verdict = Verdict::kGood;
  std::string says;    ///< what there is
  std::string advice;  ///< what to do, where it is not good; else ""
};

std::vector<Finding> check_processor();
/// Memory and disk: of the store that `settings` names.
std::vector<Finding> check_room(const config::Settings& settings);
/// What stands between a stranger's bytes and this machine.
std::vector<Finding> check_walls();
/// Where a server with these settings would listen.
std::vector<Finding> check_ports(const config::Settings& settings);
/// Programs and libraries that are looked for when they are needed.
std::vector<Finding> check_tools();

/// The micro-architecture level of x86-64 that a CPU with these features has: 1 to 4. `has` is called for
/// LLVM's names.
template <typename Has>
int x86_level(const Has& has) {
  const auto all = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!has(name)) return false;
    return true;
  };
  if (!all({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"})) return 1;
  if (!all({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})) return 2;
  return all({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? 4 : 3;
}

}  // namespace tensormill::cli
