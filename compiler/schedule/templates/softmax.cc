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

/// The reductions and the one result of a kernel over rows; no root: it is none.
struct RowStages {
  std::vector<std::string> reductions;
  std::string root;
};

// Every reduction is over the last axis alone, of the rows of the result.
RowStages find_row_stages(const Builder& builder) {
  std::vector<std::string> reductions, outputs;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction) reductions.push_back(name);
    if (stage.is_output) outputs.push_back(name);
  }
  if (reductions.empty() || outputs.size() != 1) return {};
  const Shape shape = builder.stage(outputs[0]).shape;
  if (builder.stage(outputs[0]).reduction || shape.size() < 2 || num_elements(shape) == 0) return {};
  const Shape rows(shape.begin(), shape.end() - 1);
  for (const std::string& name : reductions) {
    const Stage& stage = builder.stage(name);
    Shape own = stage.shape;
    if (own.size() == shape.size() && own.back() == 1) own.pop_back();
    if (stage.dtypes.size() != 1 || stage.reduction->axes.size() != 1 || own != rows) return {};
    if (builder.extent(name, "r0") != shape.back()) return {};
    if (has_equal_axis(shape) && !runs_along_memory(builder, name)) return {};
  }
  return {reductions, outputs[0]};
}

// Sums that go on side by side hide each other's latency; more than one was faster where it was measured on
// cores that start one product a cycle: four of them on rows that are long enough (24 vectors, not 8).
int64_t tune_partial_sums(Builder& builder, int64_t row, int64_t width) {
  const int64_t several = row >= 16 * width ? 4 : 2;
  const int64_t beside = builder.target().facts.products_per_cycle == 1 ? several : 1;
  return width > 1 && row % (4 * width) == 0 ? builder.knob("partial_sums", beside, {1, 2, 4}) : 1;
}

// A reduction of a row within loop `inside` of the root, `lanes` partial results of it in vectors of `width`.
void schedule_row_reduction(Builder& builder, const std::string& name, const std::string& root,
                            const std::string& inside, int64_t width, int64_t lanes) {
  if (width > 1) {
    builder.step("split", {name, "r0", std::to_string(lanes)});
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

}  // namespace

bool template_rows(Builder& builder) {
  const auto [reductions, root] = find_row_stages(builder);
  if (root.empty()) return false;
  const Shape shape = builder.stage(root).shape;
  builder.inline_injective();
  const int64_t row = shape.back();
  int64_t width = builder.lanes(root);
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
  const int64_t partial_sums = tune_partial_sums(builder, row, width);
  for (const std::string& name : reductions)
    schedule_row_reduction(builder, name, root, inside, width, width * partial_sums);
  return true;
}

}  // namespace tensormill::schedule
