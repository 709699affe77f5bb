#include "compiler/driver/generic_tails.h"

#include <optional>

#include "compiler/driver/symbolic.h"
#include "compiler/te/linear.h"
#include "compiler/te/simplify.h"
#include "compiler/te/stmt.h"

namespace tensormill::driver {

namespace {

/// A tile of more elements than this is passed by few of the extents that are quick to compare.
constexpr int64_t kLargestTile = 1024;
/// Of a symbol.
constexpr int64_t kLargestExtent = 4096;

/// The extent of a tail where a step has it, over the plan's dims.
class TailExtent {
public:
  TailExtent(const package::GenericPlan& plan, const std::vector<const package::PlanHole*>& holes,
             const std::vector<te::Var>& vars, const plan::Tail& tail)
      : plan_(plan), holes_(holes), vars_(vars), tail_(tail) {}

  int64_t at(const std::vector<int64_t>& dims) const {
    const std::vector<int64_t> all = with_derived(dims, plan_.derived);
    te::Expr extent = tail_.extent;
    for (const package::PlanHole* hole : holes_) {
      const te::Var& var = vars_[static_cast<size_t>(hole->position)];
      if (te::mentions(extent, var))
        extent = te::substitute(extent, var, te::Expr(evaluate(hole->value, all)));
    }
    const te::Expr value = te::simplify(extent);
    return te::as_int(value) != nullptr ? *te::as_int(value) : -1;
  }

  /// The least value of dim `which` at which the extent is `wanted`, the others as they are: what it grows
  /// with takes it once from less to more.
  std::optional<int64_t> value_for(std::vector<int64_t> dims, size_t which, int64_t wanted) const {
    const auto extent_at = [&](int64_t value) {
      dims[which] = value;
      return at(dims);
    };
    int64_t low = 0, high = kLargestExtent;
    if (extent_at(high) < wanted || extent_at(low) >= wanted) return std::nullopt;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (extent_at(middle) < wanted ? low : high) = middle;
    }
    return extent_at(high) == wanted ? std::optional(high) : std::nullopt;
  }

private:
  const package::GenericPlan& plan_;
  const std::vector<const package::PlanHole*>& holes_;
  const std::vector<te::Var>& vars_;
  const plan::Tail& tail_;
};

}  // namespace

TailPoints tail_points(const plan::GenericModel& model, const std::vector<std::vector<plan::Tail>>& tails,
                       const std::vector<std::string>& symbols, const ir::SymbolTable& table,
                       const std::vector<int64_t>& base) {
  std::vector<std::vector<const package::PlanHole*>> holes(model.step_kernels.size());
  for (const package::PlanHole& hole : model.plan.step_holes)
    holes[static_cast<size_t>(hole.owner)].push_back(&hole);
  TailPoints points;
  std::set<size_t> seen;
  for (size_t step = 0; step < model.step_kernels.size(); ++step) {
    if (!model.step_kernels[step] || !seen.insert(*model.step_kernels[step]).second) continue;
    const size_t kernel = *model.step_kernels[step];
    const plan::GenericKernel* own = nullptr;
    for (const plan::GenericKernel& each : model.kernels) {
      if (each.symbol == model.plan.plan.steps[step].function) own = &each;
    }
    for (const plan::Tail& tail : tails[kernel]) {
      if (tail.size > kLargestTile) continue;
      const TailExtent extent(model.plan, holes[step], own->source->vars.vars(), tail);
      for (size_t d = 0; d < symbols.size(); ++d) {
        for (const int64_t wanted : {tail.size - 1, tail.size, tail.size + 1}) {
          const std::optional<int64_t> value = extent.value_for(base, d, wanted);
          if (!value) continue;
          std::vector<int64_t> dims = base;
          dims[d] = *value;
          const std::optional<std::vector<int64_t>> taken = taken_point(symbols, table, dims);
          if (taken && extent.at(*taken) == wanted) points[*taken].insert(kernel);
        }
      }
    }
  }
  return points;
}

}  // namespace tensormill::driver
