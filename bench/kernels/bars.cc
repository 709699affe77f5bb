#include "bench/kernels/bars.h"

#include <cstdio>

namespace tensormill::bench {

namespace {

constexpr const char* kNet = "resnet50";
constexpr double kLayer = 0.82, kSmallLayer = 0.75;  // of the FMA peak; the second for results of 7 x 7
constexpr double kMean = 0.86;
constexpr double kOneRow = 0.80;  // of the read bandwidth

bool is_direct(const Layer& layer) { return layer.op == "conv_blocked"; }

/// Rows of the result: the windows of these layers fit the image at every step of the stride.
int64_t result_rows(const Layer& layer) {
  const int64_t stride = layer.attrs.has("strides") ? layer.attrs.ints_of("strides")[0] : 1;
  return (layer.inputs[0][2] + stride - 1) / stride;
}

std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * value);
  return text;
}

}  // namespace

double mean_fraction(const std::vector<Row>& rows, const std::string& net) {
  double flops = 0, time = 0;
  for (const Row& row : rows) {
    if (row.layer.net != net || !is_direct(row.layer)) continue;
    flops += row.layer.flops * row.layer.count;
    time += row.layer.flops * row.layer.count / row.timing.peak_fraction;
  }
  return time > 0 ? flops / time : 0;
}

std::vector<Bar> kernel_bars(const std::vector<Row>& rows) {
  std::vector<Bar> bars;
  for (const Row& row : rows) {
    if (row.layer.net != kNet) continue;
    const std::string name = row.layer.net + ", " + row.layer.name;
    if (is_direct(row.layer)) {
      const double limit = result_rows(row.layer) == 7 ? kSmallLayer : kLayer;
      bars.push_back({name + ": share of the FMA peak", row.timing.peak_fraction, limit});
    }
    if (row.read_fraction > 0)
      bars.push_back({name + ": share of the read bandwidth", row.read_fraction, kOneRow});
  }
  const double mean = mean_fraction(rows, kNet);
  if (mean > 0) {
    bars.push_back(
        {std::string(kNet) + ", convolutions behind the first, weighted by operations", mean, kMean});
  }
  return bars;
}

std::string bars_table(const std::vector<Bar>& bars) {
  std::string text = "| bar | figure | limit |  |\n|---|---|---|---|\n";
  for (const Bar& bar : bars) {
    text += "| " + bar.what + " | " + percent(bar.figure) + " | ≥ " + percent(bar.limit) + " | " +
            (bar.passed() ? "pass" : "FAIL") + " |\n";
  }
  return text;
}

}  // namespace tensormill::bench
