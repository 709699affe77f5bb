// Softmax over the last axis: a task takes rows; maximum, sum and result of a row follow each other while it
// is in cache, each vectorized along the row.
#include <algorithm>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

/// Whether leaving out another axis of `shape` than the last gives the same extents.
bool has_equal_axis(const Shape& shape) { return shape[shape.size() - 2] == shape.back(); }

/// Whether memory runs along the reduction's one axis.
bool runs_along_memory(const Builder& builder, const std::string& reduction) {
  const size_t axis = builder.stage(reduction).shape.size();
  const std::vector<Access> accesses = builder.accesses(reduction);
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return !access.irregular[axis] && access.stride[axis] >= 0 && access.stride[axis] <= 1;
  });
}

}  // namespace

bool template_rows(Builder& builder) {
  std::vector<std::string> reductions, outputs;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction) reductions.push_back(name);
    if (stage.is_output) outputs.push_back(name);
  }
  if (reductions.empty() || outputs.size() != 1) return false;
  const std::string root = outputs[0];
  const Shape shape = builder.stage(root).shape;
  if (builder.stage(root).reduction || shape.size() < 2 || num_elements(shape) == 0) return false;
  // Every reduction is over the last axis alone, of the rows of the result.
  const Shape rows(shape.begin(), shape.end() - 1);
  for (const std::string& name : reductions) {
    const Stage& stage = builder.stage(name);
    Shape own = stage.shape;
    if (own.size() == shape.size() && own.back() == 1) own.pop_back();
    if (stage.dtypes.size() != 1 || stage.reduction->axes.size() != 1 || own != rows) return false;
    if (builder.extent(name, "r0") != shape.back()) return false;
    if (has_equal_axis(shape) && !runs_along_memory(builder, name)) return false;
  }
  builder.inline_injective();
  const int64_t lanes = builder.lanes(root), row = shape.back();
  int64_t width = lanes;
  while (width > 1 && width / 2 >= row) width /= 2;
  std::vector<std::string> axes = data_axes(builder.stage(root));
  const std::string last = axes.back();
  axes.pop_back();
  builder.step("split", {root, last, std::to_string(width)});
  builder.step("vectorize", {root, last + ".i"});
  const std::string inside =
      builder.parallelize(root, builder.fuse(root, axes), static_cast<double>(num_elements(shape)) * 16);
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (name == root || stage.attach == AttachKind::kInline || stage.reduction) continue;
    if (stage.shape != shape) continue;
    builder.step("split", {name, last, std::to_string(width)});
    builder.step("vectorize", {name, last + ".i"});
    builder.step("compute_at", {name, root, inside});
  }
  // Sums that go on side by side hide each other's latency; more than one was faster where it was measured on
  // cores that start one product a cycle: four of them on rows that are long enough (24 vectors, not 8).
  const int64_t several = row >= 16 * width ? 4 : 2;
  const int64_t beside = builder.target().facts.products_per_cycle == 1 ? several : 1;
  const int64_t partial_sums =
      width > 1 && row % (4 * width) == 0 ? builder.knob("partial_sums", beside, {1, 2, 4}) : 1;
  for (const std::string& name : reductions) {
    if (width > 1) {
      builder.step("split", {name, "r0", std::to_string(width * partial_sums)});
      builder.step("rfactor", {name, "r0.i"});
      builder.step("vectorize", {name, "r0"});
      const std::string partial = name + ".rf";
      const std::string lane = "i" + std::to_string(builder.stage(partial).shape.size() - 1);
      builder.step("reorder", {partial, "r0", lane});
      builder.step("vectorize", {partial, lane});
      builder.step("compute_at", {partial, root, inside});
      builder.step("store_in", {partial, "register"});
    }
    builder.step("compute_at", {name, root, inside});
    builder.step("store_in", {name, "register"});
  }
  return true;
}

}  // namespace tensormill::schedule
