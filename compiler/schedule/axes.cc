// Extents and values of a stage's axes.
#include <algorithm>

#include "compiler/schedule/nest.h"

namespace tensormill::schedule {

using te::Expr;

void bind_axis_range(te::BoundsContext& ranges, const te::Var& var, const Extent& extent) {
  if (extent.is_known()) return ranges.bind(var, {0, std::max<int64_t>(extent - 1, 0)});
  ranges.bind_extent(var, Expr(0), extent.expr());
}

std::vector<Extent> axis_extents(const Stage& stage, const std::vector<Extent>& region) {
  std::vector<Extent> extent(stage.axes.size(), 0);
  for (size_t i = 0; i < extent.size(); ++i) {
    extent[i] = i < region.size()                          ? region[i]
                : i < static_cast<size_t>(stage.num_roots) ? stage.axes[i].extent
                                                           : Extent(0);
  }
  for (const AxisRelation& relation : stage.relations) {
    const size_t parent = static_cast<size_t>(relation.parent), first = static_cast<size_t>(relation.first),
                 second = static_cast<size_t>(relation.second);
    if (relation.is_split) {
      extent[first] = divided(extent[parent], relation.factor);
      extent[second] = relation.factor;
    } else {
      extent[parent] = product(extent[first], extent[second]);
    }
  }
  return extent;
}

AxisValues::AxisValues(const Stage& stage, const StagePlan& plan, std::vector<te::Var> names)
    : stage_(stage),
      plan_(plan),
      names_(std::move(names)),
      values_(stage.axes.size()),
      definitions_(stage.axes.size()) {}

void AxisValues::set(int axis, const Expr& value, std::vector<int>& fresh) {
  const size_t i = static_cast<size_t>(axis);
  if (values_[i]) return;
  definitions_[i] = value;
  values_[i] = plan_.is_let[i] ? Expr(names_[i]) : value;
  fresh.push_back(axis);
}

void AxisValues::bind(int axis, Expr value) {
  definitions_[static_cast<size_t>(axis)] = value;
  values_[static_cast<size_t>(axis)] = std::move(value);
}

std::vector<int> AxisValues::propagate() {
  std::vector<int> fresh;
  for (size_t before = static_cast<size_t>(-1); before != fresh.size();) {
    before = fresh.size();
    for (const AxisRelation& relation : stage_.relations) {
      const size_t parent = static_cast<size_t>(relation.parent);
      if (relation.is_split) {
        if (values_[parent] || !known(relation.first) || !known(relation.second)) continue;
        set(relation.parent, value(relation.first) * Expr(relation.factor) + value(relation.second), fresh);
      } else if (values_[parent] && (!known(relation.first) || !known(relation.second))) {
        if (plan_.extent[static_cast<size_t>(relation.first)].is(1)) {
          // Behind an uneven split the parent passes its end, where no remainder of it would be a range.
          set(relation.first, Expr(0), fresh);
          set(relation.second, values_[parent], fresh);
          continue;
        }
        const Expr inner(std::max<int64_t>(plan_.extent[static_cast<size_t>(relation.second)], 1));
        set(relation.first, te::floordiv(values_[parent], inner), fresh);
        set(relation.second, te::floormod(values_[parent], inner), fresh);
      }
    }
  }
  return fresh;
}

}  // namespace tensormill::schedule
