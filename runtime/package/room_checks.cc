#include "runtime/package/room_checks.h"

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/package/loops.h"

namespace tensormill::package {

namespace {

/// Of a step take_first(x, count) that says which rooms the extent is made of.
std::optional<RoomCheck> check_of(const ExecPlan& plan, size_t index) {
  const Step& step = plan.steps[index];
  if (step.kind != StepKind::kHost || step.function != "take_first" || step.args.size() < 2) return {};
  Json json;
  try {
    json = parse_json(step.attributes);
  } catch (const Error&) {
    return {};
  }
  const auto number = [&](const char* name) -> int64_t {
    if (!json.is_object() || !json.contains(name) || !json[name].is_number_integer()) return -1;
    return json[name].get<int64_t>();
  };
  const auto buffer = [&](size_t arg) -> const Buffer& {
    return plan.buffers[static_cast<size_t>(step.args[arg])];
  };
  const int64_t axis = number("axis"), rooms = number("grows");
  const bool is_counted = buffer(1).dtype == DType::kInt64 && buffer(1).shape == Shape{1};
  if (!is_counted || rooms <= 0 || axis < 0 || axis >= static_cast<int64_t>(buffer(0).shape.size()))
    return {};
  return RoomCheck{index, buffer(0).shape[static_cast<size_t>(axis)], static_cast<uint64_t>(rooms),
                   "axis " + std::to_string(axis)};
}

}  // namespace

std::vector<RoomCheck> room_checks_of(const ExecPlan& plan) {
  std::vector<RoomCheck> checks;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (std::optional<RoomCheck> check = check_of(plan, i)) checks.push_back(std::move(*check));
  }
  for (const Loop& loop : loops_of(plan)) {
    if (loop.stacked.empty() || loop.rooms == 0) continue;
    const Shape& shape = plan.buffers[static_cast<size_t>(loop.stacked[0])].shape;
    checks.push_back({loop.end, shape[0], loop.rooms, "loop"});
  }
  std::sort(checks.begin(), checks.end(),
            [](const RoomCheck& a, const RoomCheck& b) { return a.step < b.step; });
  std::map<std::string, int> same;
  for (RoomCheck& check : checks) {
    for (const std::string& origin : plan.steps[check.step].origins) check.name += " " + origin;
    check.name += " " + std::to_string(same[check.name]++);
  }
  return checks;
}

}  // namespace tensormill::package
