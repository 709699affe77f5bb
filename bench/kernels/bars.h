/// What single layers must reach. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "bench/kernels/layers.h"
#include "bench/kernels/measure.h"

namespace tensormill::bench {

struct Row {
  Layer layer;
  Timing timing;
  double bytes = 0;
  std::string bound;         ///< roofline class: "compute" or "memory"
  double read_fraction = 0;  ///< products of one row: weights read a second ÷ the read probe's; else 0
};

struct Bar {
  std::string what;
  double figure = 0, limit = 0;  ///< shares of the peak or of the read bandwidth
  bool passed() const { return figure >= limit; }
};

/// Weighted by operations over the network's calls of direct convolutions behind the first layer: all
/// operations ÷ the time they would take at the peak, over the time they took. 0 when there is none.
double mean_fraction(const std::vector<Row>& rows, const std::string& net);
/// One bar for each direct convolution and product of one row of ResNet-50 in `rows`, batch 1, and one for
/// the mean; none for what is not there.
std::vector<Bar> kernel_bars(const std::vector<Row>& rows);
/// A Markdown table: bar, figure, limit, pass or FAIL.
std::string bars_table(const std::vector<Bar>& bars);

}  // namespace tensormill::bench
