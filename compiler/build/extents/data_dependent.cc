#include "compiler/build/extents/data_dependent.h"

#include <optional>

#include "compiler/build/compose.h"
#include "compiler/build/extents/run_numbers.h"

namespace tensormill::build {

namespace {

/// Of a constant, whose places are known.
ir::ValueId known_places(OpBuilder& builder, const Tensor& x) {
  std::vector<int64_t> places;
  const Shape& shape = x.shape();
  int64_t count = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (x.element_as_double(i) == 0) continue;
    ++count;
    const size_t first = places.size();
    int64_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      places.insert(places.begin() + static_cast<std::ptrdiff_t>(first), rest % shape[axis]);
  }
  return builder.constant(Tensor::from<int64_t>({count, static_cast<int64_t>(shape.size())}, places));
}

/// Those of a constant, and of what has no elements.
std::optional<ir::ValueId> places_at_import(OpBuilder& builder, ir::ValueId x) {
  if (const Tensor* known = builder.graph().value(x).tensor()) return known_places(builder, *known);
  if (!same(num_elements(builder.type(x).shape), 0)) return std::nullopt;
  return builder.constant(Tensor::from<int64_t>({0, builder.rank(x)}, std::vector<int64_t>{}));
}

}  // namespace

ir::ValueId places_of_nonzero(OpBuilder& builder, ir::ValueId x) {
  // A scalar's place, if it has one, is a row of no numbers.
  if (builder.rank(x) == 0) {
    Compose c(builder);
    return c.slice(places_of_nonzero(builder, c.reshape(x, {1})), 1, 0, 0);
  }
  if (const std::optional<ir::ValueId> known = places_at_import(builder, x)) return *known;
  const std::vector<ir::ValueId> made = builder.add_many("find_nonzero", {x});
  return Compose(builder).transpose(bound_part(builder, made[0], 1, made[1]), {1, 0});
}

DistinctSlices distinct_slices(OpBuilder& builder, ir::ValueId x, int64_t axis, bool is_sorted) {
  const std::vector<ir::ValueId> made = builder.add_many(
      "distinct", {x}, {{"axis", axis}, {"sorted", int64_t{is_sorted}}, {"nans_apart", int64_t{1}}});
  const ir::ValueId values = bound_part(builder, made[0], axis, made[4]);
  const ir::SymInt found = builder.type(values).shape[static_cast<size_t>(axis)];
  return {values, made[2], Compose(builder).slice(made[3], 0, 0, found)};
}

KeptBoxes suppressed_boxes(OpBuilder& builder, ir::ValueId boxes, ir::ValueId scores, const ir::SymInt& most,
                           ir::ValueId overlap, ir::ValueId score, ir::ValueId sigma) {
  constexpr int64_t kMostBoxes = 1 << 16;
  Compose c(builder);
  if (builder.rank(boxes) != 2 || builder.rank(scores) != 1)
    builder.invalid("boxes of shape " + to_string(c.shape(boxes)) + " with scores of " +
                    to_string(c.shape(scores)));
  if (!most.is_constant()) builder.unsupported("max_output_size", "it is a free dim");
  const int64_t upper = most.hint();
  if (upper < 0 || upper > kMostBoxes)
    builder.invalid("max_output_size is " + std::to_string(upper) + ", expected 0 to " +
                    std::to_string(kMostBoxes));
  std::vector<ir::ValueId> limits{c.doubles(DType::kFloat64, {static_cast<double>(upper)}, {1})};
  for (const ir::ValueId limit : {overlap, score, sigma})
    limits.push_back(limit == ir::kAbsent ? c.doubles(DType::kFloat64, {0}, {1})
                                          : c.reshape(c.cast(limit, DType::kFloat64), {1}));
  const std::vector<ir::ValueId> kept = builder.add_many(
      "suppress_boxes", {boxes, c.reshape(scores, {1, c.shape(scores)[0]}), c.concat(limits, 0)},
      {{"most", upper}});
  return {c.reshape(kept[0], {upper}), c.reshape(kept[1], {upper}), c.reshape(kept[2], {})};
}

}  // namespace tensormill::build
