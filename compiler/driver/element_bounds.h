/// Between what elements of a kernel's results may lie. Operators that are not exact may be off by what their
/// rows allow; where such a value is then rounded to a whole number or compared, an error of any size is a
/// whole step if the value lies at the middle of two, and several steps once it is scaled. So each operator
/// is evaluated at the ends of what its operands may be, and the ends are followed to the results.
/// Thread-safety: an object belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/driver/compared_parts.h"
#include "compiler/plan/kernel.h"
#include "runtime/base/tensor.h"

namespace tensormill::driver {

/// So many times what results move by when their operands are off by a rounding, they may differ: sums round
/// at each of their terms.
inline constexpr double kMovements = 16;

/// The largest magnitude among the finite elements; 0 where there is none.
double largest_of(const Tensor& tensor);

/// The least and the largest value of each element; both are the same tensor where nothing is uncertain.
struct ElementBounds {
  Tensor value;  ///< what the reference gives
  Tensor low, high;
  bool is_exact = true;
};

class BoundsOfParts {
public:
  /// Both outlive the object. `inputs`: of the kernel's region.
  BoundsOfParts(const plan::Kernel& kernel, const std::vector<ComparedPart>& parts,
                const std::vector<Tensor>& inputs)
      : kernel_(kernel), parts_(parts), inputs_(inputs) {}

  /// Whether `actual` has an element between its bounds, which are wider by `allowance` where it is a float.
  /// Evaluates at the first call.
  bool contain(size_t part, int64_t element, const Tensor& actual, double allowance);
  /// The same of what the operators' tolerances alone explain.
  bool contain_unmoved(size_t part, int64_t element, const Tensor& actual, double allowance);

private:
  std::vector<ElementBounds> evaluate(bool with_movement) const;

  const plan::Kernel& kernel_;
  const std::vector<ComparedPart>& parts_;
  const std::vector<Tensor>& inputs_;
  /// By the rows' tolerances alone; and with what a rounding of their operands moves inexact operators by.
  std::optional<std::vector<ElementBounds>> narrow_, wide_;
};

/// Whether the kernel has an inexact operator before one whose result changes in steps.
bool steps_behind_inexact(const plan::Kernel& kernel);

}  // namespace tensormill::driver
