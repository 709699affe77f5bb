// Elementwise and data movement: outer axes fused and run in parallel, the innermost vectorized with a masked
// tail.
#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

void schedule_injective(Builder& builder, const std::string& name) {
  const Stage& stage = builder.stage(name);
  double work = 1;
  for (int64_t extent : stage.shape) work *= static_cast<double>(extent);
  if (stage.shape.empty() || work <= 1) return;
  const int64_t lanes = builder.lanes(name);
  std::vector<std::string> axes = data_axes(stage);
  // Rows that don't fill their vectors are strung together where memory allows it.
  const int64_t row = stage.shape.back();
  const bool flat = axes.size() > 1 && row % lanes != 0 && row < 8 * lanes && builder.is_flat(name);
  if (flat) axes = {builder.fuse(name, axes)};
  const std::string last = axes.back();
  axes.pop_back();
  const int64_t extent = builder.extent(name, last);
  int64_t width = lanes;
  while (width > 1 && width / 2 >= extent) width /= 2;
  if (width > 1) {
    builder.step("split", {name, last, std::to_string(width)});
    builder.step("vectorize", {name, last + ".i"});
    axes.push_back(last + ".o");
  } else {
    axes.push_back(last);
  }
  builder.parallelize(name, builder.fuse(name, axes), work);
}

bool template_injective(Builder& builder) {
  builder.inline_injective();
  schedule_roots(builder);
  return true;
}

void schedule_roots(Builder& builder, const std::vector<std::string>& already) {
  std::vector<std::string> done = already;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.attach == AttachKind::kInline || contains(done, name)) continue;
    if (!stage.reduction) continue;
    for (const std::string& covered : schedule_reduction(builder, name)) done.push_back(covered);
  }
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.attach != AttachKind::kInline && !stage.reduction && !contains(done, name))
      schedule_injective(builder, name);
  }
}

}  // namespace tensormill::schedule
