#include "runtime/package/trim.h"

#include <set>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::package {

namespace {

/// Attribute "axes", or "axis" for one; none where they are no axes of a shape of `rank`.
std::vector<size_t> axes_of(const std::string& attributes, size_t rank) {
  const Json json = parse_json(attributes);
  if (!json.is_object()) return {};
  const Json listed = json.contains("axis") ? Json::array({json["axis"]}) : json.value("axes", Json());
  if (!listed.is_array()) return {};
  std::vector<size_t> axes;
  for (const Json& axis : listed) {
    if (!axis.is_number_unsigned() || axis.get<size_t>() >= rank) return {};
    axes.push_back(axis.get<size_t>());
  }
  return std::set<size_t>(axes.begin(), axes.end()).size() == axes.size() ? axes : std::vector<size_t>();
}

}  // namespace

std::optional<Trim> trim_of(const ExecPlan& plan, const Step& step) {
  if (step.kind != StepKind::kHost || step.function != "trim") return std::nullopt;
  const auto invalid = [&] {
    return Error(ErrorCode::kInvalidPackage, "step \"" + step.name + "\" is no valid trim");
  };
  if (step.args.size() < 3) throw invalid();
  const auto buffer = [&](size_t arg) -> const Buffer& {
    return plan.buffers[static_cast<size_t>(step.args[arg])];
  };
  const size_t result = step.args.size() - 1;
  const Trim trim{step.args[result], axes_of(step.attributes, buffer(result).shape.size())};
  bool fits = step.outputs == std::vector<int32_t>{static_cast<int32_t>(result)} &&
              buffer(0).shape == buffer(result).shape && buffer(0).dtype == buffer(result).dtype &&
              trim.axes.size() + 2 == step.args.size();
  for (size_t arg = 1; arg < result; ++arg)
    fits = fits && buffer(arg).dtype == DType::kInt64 && buffer(arg).shape == Shape{1};
  if (!fits) throw invalid();
  return trim;
}

}  // namespace tensormill::package
