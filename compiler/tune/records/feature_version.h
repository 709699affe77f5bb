/// Which features a record holds (compiler/tune/features.h). Thread-safety: constants.
#pragma once

#include <cstddef>

namespace tensormill::tune {

/// Raised whenever the meaning of a feature changes: features of another version are no samples.
inline constexpr int kFeatureVersion = 4;
inline constexpr size_t kFeatureCount = 3 * (31 + 4 * 5) + 14;

}  // namespace tensormill::tune
