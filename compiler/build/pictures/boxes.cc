#include "compiler/build/pictures/boxes.h"

#include <cmath>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/build/moves/places.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// Number `index` of each box: [...,1].
V number_of(Compose& c, V boxes, int64_t index) {
  return c.slice(boxes, static_cast<int64_t>(c.shape(boxes).size()) - 1, index, 1);
}

V joined(Compose& c, const std::vector<V>& numbers) {
  return c.concat(numbers, static_cast<int64_t>(c.shape(numbers[0]).size()) - 1);
}

V plus(Compose& c, V x, double number) { return number == 0 ? x : c.plus(x, number); }

/// Sides that are turned round have no extent: such boxes share nothing with others.
V proper(Compose& c, V boxes, double added) {
  std::vector<V> numbers{number_of(c, boxes, 0), number_of(c, boxes, 1)};
  for (const int64_t side : {0, 1})
    numbers.push_back(
        c.binary("max", plus(c, number_of(c, boxes, side + 2), added), numbers[static_cast<size_t>(side)]));
  return joined(c, numbers);
}

}  // namespace

V corners_of(OpBuilder& builder, V centered) {
  Compose c(builder);
  std::vector<V> low, high;
  for (const int64_t side : {0, 1}) {
    const V center = number_of(c, centered, side), half = c.times(number_of(c, centered, side + 2), 0.5);
    low.push_back(c.sub(center, half));
    high.push_back(c.add(center, half));
  }
  return joined(c, {low[0], low[1], high[0], high[1]});
}

V centers_of(OpBuilder& builder, V corners) {
  Compose c(builder);
  std::vector<V> centers, sizes;
  for (const int64_t side : {0, 1}) {
    const V low = number_of(c, corners, side), high = number_of(c, corners, side + 2);
    centers.push_back(c.times(c.add(low, high), 0.5));
    sizes.push_back(c.sub(high, low));
  }
  return joined(c, {centers[0], centers[1], sizes[0], sizes[1]});
}

V moved_boxes(OpBuilder& builder, V boxes, V deltas, const BoxCoding& coding) {
  Compose c(builder);
  std::vector<V> low, high;
  const auto delta = [&](int64_t index) {
    return c.times(number_of(c, deltas, index), coding.scales[static_cast<size_t>(index)]);
  };
  for (const int64_t side : {0, 1}) {
    const V from = number_of(c, boxes, side);
    const V size = plus(c, c.sub(number_of(c, boxes, side + 2), from), coding.added);
    const V center = c.add(c.mul(delta(side), size), c.add(from, c.times(size, 0.5)));
    V log = delta(side + 2);
    if (std::isfinite(coding.most_log)) log = c.binary("min", log, c.number(log, coding.most_log));
    const V half = c.times(c.mul(c.unary("exp", log), size), 0.5);
    low.push_back(c.sub(center, half));
    high.push_back(plus(c, c.add(center, half), -coding.added));
  }
  return joined(c, {low[0], low[1], high[0], high[1]});
}

V clipped_boxes(OpBuilder& builder, V boxes, V width, V height) {
  Compose c(builder);
  std::vector<V> numbers;
  for (const int64_t index : {0, 1, 2, 3}) {
    const V below = c.binary("min", number_of(c, boxes, index), index % 2 == 0 ? width : height);
    numbers.push_back(c.binary("max", below, c.number(below, 0)));
  }
  return joined(c, numbers);
}

V boxes_over(OpBuilder& builder, V boxes, const ir::SymInt& rows, const ir::SymInt& columns, double stride) {
  Compose c(builder);
  const ir::SymInt each = c.shape(boxes)[0];
  const auto along = [&](const ir::SymInt& count, size_t axis) {
    const V places = c.times(c.cast(c.positions(count, axis, 4), c.dtype(boxes)), stride);
    return c.expand(places, {rows, columns, 1, 1});
  };
  const V x = along(columns, 1), y = along(rows, 0);
  const V all = c.add(c.reshape(boxes, {1, 1, each, 4}), c.concat({x, y, x, y}, 3));
  return c.reshape(all, {builder.product(builder.product(rows, columns), each), 4});
}

V numbers_over(OpBuilder& builder, V map, int64_t numbers) {
  Compose c(builder);
  const ir::SymShape shape = c.shape(map);
  if (shape.size() != 4 || !ir::demand_divisible(shape[1], numbers))
    builder.invalid("a map of shape " + to_string(shape) + " has no " + std::to_string(numbers) +
                    " numbers for each box");
  const ir::SymInt each = floordiv(shape[1], numbers);
  const V parts = c.reshape(map, {shape[0], each, numbers, shape[2], shape[3]});
  return c.reshape(c.transpose(parts, {0, 3, 4, 1, 2}), {shape[0], shape[2] * shape[3] * each, numbers});
}

V kept_boxes(OpBuilder& builder, const BoxRows& rows) {
  Compose c(builder);
  const V boxes = c.cast(rows.boxes, DType::kFloat32), scores = c.cast(rows.scores, DType::kFloat32);
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const double most = rows.most ? static_cast<double>(*rows.most) : std::numeric_limits<double>::infinity();
  const V limits = c.doubles(DType::kFloat64, {most, rows.overlap, kNone, 0}, {4});
  std::vector<V> operands{proper(c, boxes, rows.added), scores, limits};
  if (rows.groups != ir::kAbsent) operands.push_back(c.cast(rows.groups, DType::kInt64));
  return builder.add("keep_boxes", operands);
}

double above_overlap(double limit) {
  return static_cast<double>(
      std::nextafter(static_cast<float>(limit), std::numeric_limits<float>::infinity()));
}

V true_first(OpBuilder& builder, V holds, const ir::SymInt& k) {
  return ordered_places(builder, orderable(builder, holds), 1, k, false);
}

V true_count(OpBuilder& builder, V holds) {
  Compose c(builder);
  return c.reduce("reduce_sum", c.cast(holds, DType::kInt64), {1}, true);
}

}  // namespace tensormill::build
