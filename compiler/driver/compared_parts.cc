#include "compiler/driver/compared_parts.h"

#include <algorithm>

#include "compiler/driver/seeded.h"
#include "compiler/ir/parts.h"

namespace tensormill::driver {

namespace {

/// The reference of a kernel below both takes some milliseconds.
constexpr int64_t kSmallElements = int64_t{1} << 18;
constexpr int64_t kSmallFlops = int64_t{1} << 24;

/// At each end of the axis are at least so many indices and so many elements of one row-major run: more than
/// the rows or the lanes of any tile.
constexpr int64_t kEndIndices = 8, kEndElements = 128;

/// Parts begin at a multiple: what is computed in tiles is then computed in parts.
constexpr int64_t kWholeTiles = 4;

bool is_small(const plan::Kernel& kernel) {
  int64_t elements = 0;
  for (const std::vector<ir::ValueId>* values : {&kernel.region->inputs(), &kernel.region->outputs()}) {
    for (const ir::ValueId id : *values) elements += num_elements(kernel.region->value(id).type.shape);
  }
  return elements <= kSmallElements && kernel.flops <= kSmallFlops;
}

uint64_t seed_of(const std::string& symbol) {
  uint64_t seed = symbol.size();
  for (const char letter : symbol) {
    seed += static_cast<unsigned char>(letter);
    next_random(seed);
  }
  return seed;
}

/// The parts along one axis; none where these are most of it.
std::vector<ir::Part> parts_along(const Shape& shape, size_t axis, uint64_t seed) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  if (inner == 0) return {};
  const int64_t extent = shape[axis];
  const int64_t at_end = std::max(kEndIndices, (kEndElements + inner - 1) / inner);
  const int64_t between = (at_end / 2 + kWholeTiles - 1) / kWholeTiles * kWholeTiles,
                free = extent - 2 * at_end;
  if (extent < 6 * at_end) return {};
  const auto begin = [&](int64_t from, int64_t count) {
    const auto room = static_cast<uint64_t>(count - between + 1);
    return (from + static_cast<int64_t>(next_random(seed) % room)) / kWholeTiles * kWholeTiles;
  };
  const int64_t first = begin(at_end, free / 2), second = begin(at_end + free / 2, free - free / 2);
  return {{axis, 0, at_end},
          {axis, first, first + between},
          {axis, second, second + between},
          {axis, (extent - at_end) / kWholeTiles * kWholeTiles, extent}};
}

}  // namespace

std::vector<ComparedPart> whole_outputs(const plan::Kernel& kernel) {
  std::vector<ComparedPart> parts(kernel.region->outputs().size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i].output = i;
  return parts;
}

std::vector<ComparedPart> parts_to_compare(const plan::Kernel& kernel) {
  if (is_small(kernel)) return whole_outputs(kernel);
  const ir::Graph& region = *kernel.region;
  std::vector<ComparedPart> result;
  for (size_t i = 0; i < region.outputs().size(); ++i) {
    const ir::ValueId output = region.outputs()[i];
    ir::PartPlan whole(region);
    whole.add(output, std::nullopt);
    std::vector<ir::Part> best;
    int64_t least = whole.elements() / 2;
    const Shape& shape = region.value(output).type.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const std::vector<ir::Part> parts = parts_along(shape, axis, seed_of(kernel.symbol));
      if (parts.empty()) continue;
      ir::PartPlan plan(region);
      for (const ir::Part& part : parts) plan.add(output, part);
      if (plan.elements() >= least) continue;
      least = plan.elements();
      best = parts;
    }
    if (best.empty()) result.push_back({i, std::nullopt});
    for (const ir::Part& part : best) result.push_back({i, part});
  }
  return result;
}

}  // namespace tensormill::driver
