// What moves elements, or sees them in another shape.
#include "compiler/build/moves/moves.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/build/moves/places.h"
#include "compiler/build/moves/slices.h"
#include "compiler/frontend/cntk/node_context.h"

namespace tensormill::frontend::cntk {

namespace {

/// An axis between others, or behind all of them, as CNTK counts.
int64_t border(NodeContext& node, const char* name, int64_t rank, int64_t otherwise) {
  const Value* found = node.function().attributes.find(name);
  node.skip(name);
  if (found == nullptr) return otherwise;
  const Axis* axis = found->as<Axis>();
  if (axis == nullptr) node.invalid("attribute " + std::string(name) + " is no axis");
  if (axis->index == kEndAxis) return rank;
  const int64_t at = axis->index < 0 ? axis->index + rank : axis->index;
  if (at < 0 || at > rank)
    node.invalid("axis " + std::to_string(axis->index) + " of an operand of rank " + std::to_string(rank));
  return at;
}

/// A part of an axis; ends of 0 and below it are counted from the axis' end.
struct AxisPart {
  int64_t place = 0, begin = 0, end = 0, step = 1;
};

std::vector<AxisPart> parts_of(NodeContext& node, int64_t rank) {
  std::vector<AxisPart> parts;
  const std::vector<Axis> axes = node.axes("axisVec");
  if (axes.empty()) {
    parts.push_back({node.place("axis", rank), node.integer("beginIndex"), node.integer("endIndex"),
                     node.integer("sliceStrides", 1)});
    return parts;
  }
  const ir::Ints begins = node.integers("beginIndexVec"), ends = node.integers("endIndexVec");
  ir::Ints steps = node.integers("sliceStridesVec");
  if (steps.empty()) steps.assign(axes.size(), 1);
  if (begins.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    node.invalid("parts of " + std::to_string(axes.size()) + " axes with other numbers of ends");
  for (size_t i = 0; i < axes.size(); ++i)
    parts.push_back({node.place_of(axes[i], rank), begins[i], ends[i], steps[i]});
  return parts;
}

V part_of(NodeContext& node, V x, int64_t axis, const AxisPart& part) {
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  const ir::SymInt begin = part.begin < 0 ? extent + part.begin : ir::SymInt(part.begin),
                   end = part.end <= 0 ? extent + part.end : ir::SymInt(part.end);
  const int64_t step = std::abs(std::clamp(part.step, -build::kMostPlace, build::kMostPlace));
  if (step < 1 || !ir::demand(ir::Relation::kLessEqual, 0, begin) ||
      !ir::demand(ir::Relation::kLess, begin, end) || !ir::demand(ir::Relation::kLessEqual, end, extent))
    node.invalid("elements " + std::to_string(part.begin) + " to " + std::to_string(part.end) + " by " +
                 std::to_string(part.step) + " of an axis of " + to_string(extent));
  const ir::SymInt count = ceildiv(end - begin, step);
  return part.step > 0 ? Compose(node).slice(x, axis, begin, count, step)
                       : Compose(node).slice(x, axis, end - 1, count, -step);
}

}  // namespace

// The axes from the first to the second border become others, of which one may be left open.
void convert_reshape(NodeContext& node) {
  const Item x = node.operand(0);
  const ir::SymShape from = node.sample(x);
  const auto rank = static_cast<int64_t>(from.size());
  const int64_t begin = border(node, "beginAxis", rank, 0), end = border(node, "endAxis", rank, rank);
  if (begin > end) node.invalid("axes from " + std::to_string(begin) + " to " + std::to_string(end));
  const ir::Ints wanted = node.dims("newShape");
  ir::SymShape middle;
  for (size_t d = wanted.size(); d-- > 0;) middle.emplace_back(std::max<int64_t>(wanted[d], -1));
  const auto first = from.begin() + (rank - end), last = from.begin() + (rank - begin);
  middle = build::settled_shape(node, ir::SymShape(first, last), middle);
  ir::SymShape to(from.begin(), first);
  to.insert(to.end(), middle.begin(), middle.end());
  to.insert(to.end(), last, from.end());
  node.set_output(node.with_sample(x, x.value, to), x.has_batch);
}

// Without axes all that have one element.
void convert_squeeze(NodeContext& node) {
  const Item x = node.operand(0);
  const ir::SymShape from = node.sample(x);
  std::optional<std::vector<int64_t>> axes;
  if (node.has("axisVec")) {
    axes.emplace();
    for (const Axis& axis : node.axes("axisVec"))
      axes->push_back(node.place_of(axis, static_cast<int64_t>(from.size())));
  }
  node.set_output(node.with_sample(x, x.value, build::squeezed_shape(node, from, axes)), x.has_batch);
}

// Two axes change their places, or all go to others.
void convert_transpose_axes(NodeContext& node) {
  const Item x = node.operand(0);
  const int64_t rank = node.sample_rank(x);
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  const std::vector<Axis> given = node.axes("axisVec");
  if (given.empty()) {
    const int64_t a = node.place("axis1", rank), b = node.place("axis2", rank);
    std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  } else {
    if (static_cast<int64_t>(given.size()) != rank)
      node.invalid("attribute axisVec has " + std::to_string(given.size()) + " axes");
    for (size_t i = 0; i < given.size(); ++i) perm[perm.size() - 1 - i] = node.place_of(given[i], rank);
  }
  for (int64_t& axis : perm) axis += x.offset();
  if (x.has_batch) perm.insert(perm.begin(), 0);
  node.set_output(Compose(node).transpose(x.value, perm), x.has_batch);
}

// Along an axis that the parts have, or along one behind the last of CNTK's order.
void convert_splice(NodeContext& node) {
  Compose c(node);
  std::vector<Item> items;
  int64_t rank = 0;
  for (size_t i = 0; i < node.num_operands(); ++i) {
    items.push_back(node.operand(i));
    rank = std::max(rank, node.sample_rank(items.back()));
  }
  if (items.empty()) node.invalid("operand 0 is missing");
  const std::vector<Axis> several = node.axes("axisVec");
  if (several.size() > 1) node.unsupported("axisVec", "parts along several axes are not implemented");
  const Value* given = node.function().attributes.find("axis");
  const Axis* axis = given == nullptr ? nullptr : given->as<Axis>();
  const bool is_new = axis != nullptr && axis->index == rank;
  rank += is_new ? 1 : 0;
  const int64_t place = several.empty() ? node.place("axis", rank) : node.place_of(several[0], rank);
  const NodeContext::Aligned all = node.aligned(items);
  std::vector<V> parts;
  const auto with_batch =
      std::find_if(items.begin(), items.end(), [](const Item& item) { return item.has_batch; });
  for (size_t i = 0; i < items.size(); ++i) {
    ir::SymShape to = node.shape(all.values[i]);
    const int64_t own = static_cast<int64_t>(to.size()) - items[i].offset();
    to.insert(to.begin() + items[i].offset(), static_cast<size_t>(rank - own), 1);
    V part = c.reshape(all.values[i], to);
    if (all.has_batch && !items[i].has_batch) {
      to.insert(to.begin(), node.shape(with_batch->value)[0]);
      part = c.expand(c.unsqueeze(part, 0), to);
    }
    parts.push_back(part);
  }
  node.set_output(c.concat(parts, place + (all.has_batch ? 1 : 0)), all.has_batch);
}

void convert_slice(NodeContext& node) {
  const Item x = node.operand(0);
  V y = x.value;
  for (const AxisPart& part : parts_of(node, node.sample_rank(x)))
    y = part_of(node, y, part.place + x.offset(), part);
  node.set_output(y, x.has_batch);
}

// Modes: 0 a constant, 1 what is in front of the edge, 2 the edge with it.
void convert_pad(NodeContext& node) {
  const Item x = node.operand(0);
  const ir::Ints head = node.integers("paddingHead"), foot = node.integers("paddingFoot");
  const auto rank = static_cast<size_t>(node.sample_rank(x));
  const int64_t mode = node.integer("paddingMode");
  const double value = node.real("paddingConstantValue", 0);
  if (head.size() > rank || foot.size() > rank || mode < 0 || mode > 2)
    node.invalid("pads of " + std::to_string(head.size()) + " axes, mode " + std::to_string(mode));
  const size_t all = rank + static_cast<size_t>(x.offset());
  ir::SymShape pads(2 * all, 0), pairs(2 * all, 0);
  for (size_t i = 0; i < std::max(head.size(), foot.size()); ++i) {
    const size_t at = all - 1 - i;
    pairs[2 * at] = pads[at] = i < head.size() ? head[i] : 0;
    pairs[2 * at + 1] = pads[at + all] = i < foot.size() ? foot[i] : 0;
  }
  node.set_output(mode == 0 ? node.add("pad", {x.value},
                                       {{"pads", pads}, {"mode", std::string("constant")}, {"value", value}})
                            : build::mirror_padded(node, x.value, pairs, mode == 2),
                  x.has_batch);
}

// Of the first axes in CNTK's order as much as the second operand has, from the offsets on.
void convert_crop(NodeContext& node) {
  Compose c(node);
  if (node.num_operands() != 2 || !node.has("offset"))
    node.unsupported("offset", "places that follow from other functions are not implemented");
  const Item x = node.operand(0), like = node.operand(1);
  const ir::Ints offset = node.integers("offset");
  const ir::SymShape wanted = node.sample(like);
  const int64_t rank = node.sample_rank(x);
  if (offset.size() != 2 || rank < 2 || wanted.size() < 2)
    node.invalid("operands of rank " + std::to_string(rank) + " and " + std::to_string(wanted.size()));
  V y = x.value;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = rank - 2 + static_cast<int64_t>(i) + x.offset();
    const ir::SymInt& extent = wanted[wanted.size() - 2 + i];
    const ir::SymInt start = offset[1 - i];
    if (offset[1 - i] < 0 ||
        !ir::demand(ir::Relation::kLessEqual, start + extent, node.shape(y)[static_cast<size_t>(axis)]))
      node.invalid(to_string(extent) + " elements from " + std::to_string(offset[1 - i]) + " on");
    y = c.slice(y, axis, start, extent);
  }
  node.set_output(y, x.has_batch);
}

// The places are those along the last axis in CNTK's order.
void convert_gather(NodeContext& node) {
  const Item places = node.operand(0), x = node.operand(1);
  if (x.has_batch) node.unsupported("operand 1", "elements of each sample are not implemented");
  if (node.sample_rank(x) < 1) node.invalid("operand 1 has no axis");
  Compose c(node);
  node.set_output(build::batched_gather(node, x.value, c.cast(places.value, DType::kInt64), 0, 0),
                  places.has_batch);
}

// A place that is none is 0 everywhere.
void convert_one_hot(NodeContext& node) {
  Compose c(node);
  const Item x = node.operand(0);
  const int64_t depth = node.integer("numClass"), rank = node.sample_rank(x) + 1;
  if (depth < 1 || depth > build::kMaxListed) node.invalid("numClass is " + std::to_string(depth));
  const int64_t axis = node.place("onehotAxis", rank, rank - 1) + x.offset();
  const V places = c.cast(x.value, DType::kInt64);
  ir::SymShape along = node.shape(places);
  along.insert(along.begin() + axis, 1);
  const V classes = c.positions(depth, static_cast<size_t>(axis), along.size());
  node.set_output(c.cast(c.binary("equal", c.reshape(places, along), classes), node.dtype(x.value)),
                  x.has_batch);
}

// The last axis in CNTK's order becomes the batch.
void convert_to_batch(NodeContext& node) {
  const Item x = node.operand(0);
  if (x.has_batch || node.sample_rank(x) < 1) node.invalid("operand 0 has a batch, or no axis");
  node.set_output(x.value, true);
}

void convert_unpack_batch(NodeContext& node) {
  const Item x = node.operand(0);
  if (!x.has_batch) node.invalid("operand 0 has no batch");
  node.set_output(x.value, false);
}

}  // namespace tensormill::frontend::cntk
