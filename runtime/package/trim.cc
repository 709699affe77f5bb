#include "runtime/package/trim.h"

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::package {

std::optional<Trim> trim_of(const ExecPlan& plan, const Step& step) {
  if (step.kind != StepKind::kHost || step.function != "trim") return std::nullopt;
  const auto invalid = [&] {
    return Error(ErrorCode::kInvalidPackage, "step \"" + step.name + "\" is no valid trim");
  };
  if (step.args.size() != 3 || step.outputs != std::vector<int32_t>{2}) throw invalid();
  const Json attributes = parse_json(step.attributes);
  if (!attributes.is_object() || !attributes.contains("axis") || !attributes["axis"].is_number_unsigned())
    throw invalid();
  const auto buffer = [&](size_t arg) -> const Buffer& {
    return plan.buffers[static_cast<size_t>(step.args[arg])];
  };
  const Trim trim{step.args[2], step.args[1], attributes["axis"].get<size_t>()};
  const bool fits = buffer(0).shape == buffer(2).shape && buffer(0).dtype == buffer(2).dtype &&
                    trim.axis < buffer(2).shape.size() && buffer(1).dtype == DType::kInt64 &&
                    buffer(1).shape == Shape{1};
  if (!fits) throw invalid();
  return trim;
}

}  // namespace tensormill::package
