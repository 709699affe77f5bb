// Primitives that change the loops of one stage.
#include <algorithm>
#include <charconv>

#include "compiler/schedule/primitives.h"

namespace tensormill::schedule {

const std::vector<Primitive>& primitives() {
  static const std::vector<Primitive> rows = {
#define TM_PRIMITIVE(name, function, fewest, most, form) {#name, fewest, most, function, form},
#include "compiler/schedule/primitives.def"
#undef TM_PRIMITIVE
  };
  return rows;
}

int leaf_named(const Stage& stage, const std::string& name) {
  const int axis = stage.find_axis(name);
  if (axis < 0) reject("stage " + stage.name + " has no axis '" + name + "'");
  if (stage.leaf_position(axis) < 0)
    reject("axis '" + name + "' of stage " + stage.name + " is no loop any more");
  return axis;
}

int64_t positive(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > (int64_t{1} << 40)) {
    reject("'" + text + "' is no positive integer");
  }
  return value;
}

namespace {

void split_axis(Stage& stage, const std::string& name, int64_t factor, bool is_partition = false) {
  const int parent = leaf_named(stage, name);
  const StageAxis axis = stage.axes[static_cast<size_t>(parent)];
  if (axis.kind != te::ForKind::kSerial) reject("axis '" + name + "' is annotated already");
  const int outer = static_cast<int>(stage.axes.size());
  const Extent outer_extent = divided(axis.extent, factor);
  stage.axes.push_back(
      {name + ".o", te::make_var(name + ".o"), outer_extent, axis.reduce, te::ForKind::kSerial});
  stage.axes.push_back({name + ".i", te::make_var(name + ".i"), factor, axis.reduce, te::ForKind::kSerial});
  stage.relations.push_back({true, parent, outer, outer + 1, factor, is_partition});
  const auto at = stage.leaves.begin() + stage.leaf_position(parent);
  *at = outer;
  stage.leaves.insert(at + 1, outer + 1);
}

void reorder_leaves(Stage& stage, const std::vector<int>& wanted) {
  std::vector<size_t> places;
  for (size_t i = 0; i < stage.leaves.size(); ++i) {
    if (std::find(wanted.begin(), wanted.end(), stage.leaves[i]) != wanted.end()) places.push_back(i);
  }
  if (places.size() != wanted.size()) reject("reorder names an axis twice");
  for (size_t i = 0; i < places.size(); ++i) stage.leaves[places[i]] = wanted[i];
}

void annotate(State& state, const std::vector<std::string>& args, te::ForKind kind) {
  Stage& stage = state.stage(args[0]);
  StageAxis& axis = stage.axes[static_cast<size_t>(leaf_named(stage, args[1]))];
  if (axis.kind != te::ForKind::kSerial) reject("axis '" + args[1] + "' is annotated already");
  axis.kind = kind;
}

constexpr int64_t kMaxLanes = 256;
constexpr int64_t kMaxUnroll = 256;

}  // namespace

void apply_split(State& state, const std::vector<std::string>& args) {
  const bool is_partition = args.size() == 4;
  if (is_partition && args[3] != "partition") reject("a tail is guarded, or apart by 'partition'");
  split_axis(state.stage(args[0]), args[1], positive(args[2]), is_partition);
}

void apply_fuse(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  const int first = leaf_named(stage, args[1]), second = leaf_named(stage, args[2]);
  const int place = stage.leaf_position(first);
  const StageAxis& a = stage.axes[static_cast<size_t>(first)];
  const StageAxis& b = stage.axes[static_cast<size_t>(second)];
  if (stage.leaf_position(second) != place + 1) reject("fused axes must be neighbours");
  if (a.reduce != b.reduce) reject("a data axis and a reduction axis do not fuse");
  if (a.kind != te::ForKind::kSerial || b.kind != te::ForKind::kSerial)
    reject("a fused axis is annotated already");
  const std::string name = a.name + "+" + b.name;
  const int fused = static_cast<int>(stage.axes.size());
  if (!b.extent.is_known()) reject("the extent of axis '" + b.name + "' is not known: it has no inner part");
  const StageAxis axis{name, te::make_var(name), product(a.extent, b.extent), a.reduce, te::ForKind::kSerial};
  stage.relations.push_back({false, fused, first, second, 1});
  stage.axes.push_back(axis);
  stage.leaves[static_cast<size_t>(place)] = fused;
  stage.leaves.erase(stage.leaves.begin() + place + 1);
}

void apply_reorder(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  std::vector<int> wanted;
  for (size_t i = 1; i < args.size(); ++i) wanted.push_back(leaf_named(stage, args[i]));
  reorder_leaves(stage, wanted);
}

void apply_tile(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  split_axis(stage, args[1], positive(args[3]));
  split_axis(stage, args[2], positive(args[4]));
  std::vector<int> wanted;
  for (const std::string& name : {args[1] + ".o", args[2] + ".o", args[1] + ".i", args[2] + ".i"}) {
    wanted.push_back(leaf_named(stage, name));
  }
  reorder_leaves(stage, wanted);
}

void apply_vectorize(State& state, const std::vector<std::string>& args) {
  annotate(state, args, te::ForKind::kVectorized);
  Stage& stage = state.stage(args[0]);
  const int axis = stage.find_axis(args[1]);
  const Extent& extent = stage.axes[static_cast<size_t>(axis)].extent;
  if (!extent.is_known() || extent > kMaxLanes || (extent & (extent - 1)) != 0)
    reject("a vectorized axis has 2^n <= 256 iterations");
  if (stage.leaves.back() != axis) reject("the vectorized axis is the innermost");
  if (stage.axes[static_cast<size_t>(axis)].reduce && stage.dtypes.size() != 1) {
    reject("a reduction of tuples does not vectorize over its own axis");
  }
}

void apply_unroll(State& state, const std::vector<std::string>& args) {
  annotate(state, args, te::ForKind::kUnrolled);
  Stage& stage = state.stage(args[0]);
  const Extent& extent = stage.axes[static_cast<size_t>(stage.find_axis(args[1]))].extent;
  if (!extent.is_known() || extent > kMaxUnroll) {
    reject("an unrolled axis has at most 256 iterations");
  }
}

void apply_parallel(State& state, const std::vector<std::string>& args) {
  annotate(state, args, te::ForKind::kParallel);
  Stage& stage = state.stage(args[0]);
  const int axis = stage.find_axis(args[1]);
  if (stage.axes[static_cast<size_t>(axis)].reduce) reject("a reduction axis does not run in parallel");
  if (stage.leaves.front() != axis) reject("the parallel axis is the outermost");
  if (stage.attach != AttachKind::kRoot) reject("a parallel stage is computed at the root");
}

void apply_specialize(State& state, const std::vector<std::string>& args) {
  Stage& stage = state.stage(args[0]);
  const int dimension = stage.find_axis(args[1]);
  if (dimension < 0 || dimension >= static_cast<int>(stage.shape.size()))
    reject("no dimension '" + args[1] + "'");
  if (stage.body.size() != 1) reject("stage " + stage.name + " has no value that could be a select");
  const size_t inner = innermost_leaves(stage, dimension);
  const int first = stage.leaves[stage.leaves.size() - inner];
  if (stage.axes[static_cast<size_t>(first)].kind == te::ForKind::kParallel)
    reject("the loop of '" + args[1] + "' runs in parallel");
  stage.specialized = dimension;
}

void apply_choose(State&, const std::vector<std::string>& args) {
  reject("knob " + args[0] + " is one of a kernel whose loops a rule makes, and these are made of steps");
}

}  // namespace tensormill::schedule
