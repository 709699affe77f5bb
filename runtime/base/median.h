/// The middle of measured values.
/// Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill {

/// The middle of the values in order, of an even count the mean of the two in the middle. There is at least
/// one value.
inline double median(std::vector<double> values) {
  TM_CHECK(!values.empty(), "a median of nothing");
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tensormill
