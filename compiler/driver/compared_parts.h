/// Which elements of a kernel's outputs are compared with the reference. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/plan/kernel.h"

namespace tensormill::driver {

/// A part of one output, or all of it.
struct ComparedPart {
  size_t output = 0;
  std::optional<ir::Part> part;
};

/// All of every output.
std::vector<ComparedPart> whole_outputs(const plan::Kernel& kernel);
/// Of large outputs, where the reference computes parts for much less: along one axis the first and the last
/// indices, with all elements beside that axis (so that borders and the tails of loops are among them), and
/// seeded ones between. All of the others.
std::vector<ComparedPart> parts_to_compare(const plan::Kernel& kernel);

}  // namespace tensormill::driver
