// What is always valid: every stage that is not inlined is computed at the root, each in a nest of its own.
#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

void schedule_reduction(Builder& builder, const std::string& name) {
  const Stage& stage = builder.stage(name);
  double work = 1;
  for (const StageAxis& axis : stage.axes) work *= static_cast<double>(axis.extent);
  if (stage.shape.empty()) return;
  builder.parallelize(name, builder.fuse(name, data_axes(stage)), work);
}

bool template_fallback(Builder& builder) { return template_injective(builder); }
bool template_fallback_conv(Builder& builder) { return template_injective(builder); }
bool template_fallback_pool(Builder& builder) { return template_injective(builder); }
bool template_fallback_matmul(Builder& builder) { return template_injective(builder); }
bool template_fallback_softmax(Builder& builder) { return template_injective(builder); }

}  // namespace tensormill::schedule
