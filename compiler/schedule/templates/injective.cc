// Elementwise and data movement: outer axes fused and run in parallel, the innermost vectorized with a masked
// tail.
#include <algorithm>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kLineElements = 16;  // f32 in a cache line
constexpr int64_t kNarrowest = 4;      // vectors narrower than this are left to scalars

// The dimension along which memory runs for a read that jumps from line to line along the last one: a
// transpose. -1 where there is none, or where the last dimension is one vector and what is read stays in
// cache between its neighbours.
int transposed_dimension(const Builder& builder, const std::string& name) {
  const Shape shape = builder.stage(name).shape;
  const size_t last = shape.size() - 1;
  if (shape[last] <= builder.lanes(name)) return -1;
  for (const Access& access : builder.accesses(name)) {
    if (access.irregular[last] || access.stride[last] < kLineElements) continue;
    for (size_t d = 0; d < last; ++d) {
      if (!access.irregular[d] && access.stride[d] == 1 && shape[d] >= kLineElements)
        return static_cast<int>(d);
    }
  }
  return -1;
}

// A block of lines as long as a line is wide: each is read whole while it is in cache.
void schedule_transpose(Builder& builder, const std::string& name, int dimension, double work) {
  std::vector<std::string> axes = data_axes(builder.stage(name));
  const std::string last = axes.back(), row = axes[static_cast<size_t>(dimension)];
  const int64_t rows =
      builder.knob(name + "_block", kLineElements, tile_candidates(builder.extent(name, row), 64));
  builder.step("split", {name, last, std::to_string(builder.lanes(name))});
  builder.step("split", {name, row, std::to_string(rows)});
  axes.back() = last + ".o";
  axes[static_cast<size_t>(dimension)] = row + ".o";
  std::vector<std::string> order = {name};
  order.insert(order.end(), axes.begin(), axes.end());
  order.push_back(row + ".i");
  order.push_back(last + ".i");
  builder.step("reorder", order);
  builder.step("vectorize", {name, last + ".i"});
  builder.parallelize(name, builder.fuse(name, axes), work);
}

// Vectors of the machine, halves of them, and two side by side.
std::vector<int64_t> near_lanes(int64_t lanes) {
  std::vector<int64_t> all = {lanes / 2, lanes, lanes * 2};
  std::erase_if(all, [](int64_t each) { return each < kNarrowest; });
  return all;
}

// Of extents that are not all known. Threads share the first axis of several elements, and the next one,
// where that has a known number of iterations: the first may turn out to be 1. What a select puts side by
// side (a pad and its border, operands of a concatenation) has loops of its own.
void schedule_any_extents(Builder& builder, const std::string& name) {
  std::vector<std::string> axes = data_axes(builder.stage(name));
  if (axes.empty()) return;
  const auto known = [&](size_t d) { return builder.known_extent(name, axes[d]); };
  const std::string last = axes.back();
  // Wider elements take two vectors, which share what is asked and counted.
  int64_t lanes = builder.target().facts.lanes(32);
  if (lanes > 1) lanes = builder.knob("lanes", lanes, near_lanes(lanes));
  const bool is_vector = lanes > 1 && known(axes.size() - 1).value_or(kNarrowest) >= kNarrowest;
  if (is_vector) {
    builder.step("split", {name, last, std::to_string(lanes), "partition"});
    builder.step("vectorize", {name, last + ".i"});
    axes.back() += ".o";
  }
  size_t first = 0;
  while (first < axes.size() && known(first) == 1) ++first;
  if (first == axes.size()) return;
  std::string shared = axes[first];
  size_t behind = first + 1;
  if (behind < axes.size() && known(behind).value_or(1) > 1 && builder.knob("joined", 1, {0, 1}) == 1)
    shared = builder.fuse(name, {shared, axes[behind++]});
  std::vector<std::string> order = {name, shared};
  order.insert(order.end(), axes.begin(), axes.begin() + static_cast<ptrdiff_t>(first));
  if (first > 0) builder.step("reorder", order);
  builder.step("parallel", {name, shared});
  const Stage& stage = builder.stage(name);
  if (is_vector && behind < axes.size() && stage.body[0]->op == te::ExprOp::kSelect)
    builder.step("specialize", {name, last});
}

}  // namespace

void schedule_injective(Builder& builder, const std::string& name) {
  if (!builder.state().knows_extents()) return schedule_any_extents(builder, name);
  const Stage& stage = builder.stage(name);
  double work = 1;
  for (int64_t extent : stage.shape) work *= static_cast<double>(extent);
  if (stage.shape.empty() || work <= 1) return;
  const int64_t lanes = builder.lanes(name);
  const int transposed = transposed_dimension(builder, name);
  if (lanes > 1 && transposed >= 0) {
    schedule_transpose(builder, name, transposed, work);
    return;
  }
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
