/// What compiles here, as packages, records and action keys name it. Thread-safety: pure functions.
#pragma once

#include <string>

namespace tensormill::driver {

/// "0.1.0"
std::string compiler_version();
/// "tensormill 0.1.0, llvm 19.1.7": what measured times of schedules hold for.
std::string code_generator();
/// "tensormill 0.1.0 (36c4...), llvm 19.1.7" with a digest of the sources of compiler/ and runtime/abi/:
/// enters metadata.json and every action key, so that no other compiler's package is taken for this one's.
std::string compiler_build();

}  // namespace tensormill::driver
