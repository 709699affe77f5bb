/// Which input elements an output element of a resized axis is made of, and their weights (ONNX operator
/// specification, Resize). Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::build {

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  /// Cubic weights are those of a table of so many steps between two elements; 0: of no table.
  int64_t cubic_steps = 0;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

/// `nearest` of what rounds up where it makes the axis shorter, and down elsewhere.
inline constexpr const char* kNearestByScale = "ceil_below_1";

/// One axis of the resize.
struct ResizeAxis {
  ir::SymInt in = 1;
  ir::SymInt out = 1;
  double scale = 1;
  bool by_size = false;  ///< scale is out / in
  double roi_start = 0;
  double roi_end = 1;
  ir::ValueId computed = ir::kAbsent;  ///< the scale [1], where nodes compute it, of free extents or of a run
  /// Where the part begins and how long it is, as f64 [1], where a run has them.
  ir::ValueId dynamic_start = ir::kAbsent, dynamic_span = ir::kAbsent;
  bool is_dynamic = false;  ///< a run works out how the axis is resized

  bool is_symbolic() const { return !in.is_constant() || !out.is_constant(); }
  bool is_whole() const { return roi_start == 0 && roi_end == 1 && dynamic_start == ir::kAbsent; }
};

/// For each output element as many taps: element of the axis, weight.
struct ResizeTaps {
  int64_t count = 1;
  std::vector<int64_t> elements;
  std::vector<double> weights;
  std::vector<bool> outside;
};

/// Which elements around a position weigh: from `first` on, relative to the one below it.
struct ResizeReach {
  double shrink = 1;  ///< of distances, for the filter to be as wide as an output element
  int64_t first = 0, count = 1;

  ResizeReach(const ResizeAxis& axis, const ResizeOptions& options);
};

ResizeTaps make_taps(const ResizeAxis& axis, const ResizeOptions& options);

}  // namespace tensormill::build
