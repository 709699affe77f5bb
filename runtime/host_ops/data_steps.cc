#include "runtime/host_ops/data_steps.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/select.h"

namespace tensormill::host_ops {

namespace {

bool is_nonzero(const Tensor& x, int64_t at) {
  return is_float(x.dtype()) ? x.element_as_double(at) != 0 : x.element_as_int(at) != 0;
}

/// An axis of a shape: [outer, extent, inner bytes] in memory.
struct Rows {
  size_t outer = 1, extent = 1;
  size_t bytes;  ///< behind the axis

  Rows(const TensorView& view, size_t axis) : bytes(dtype_bytes(view.dtype)) {
    for (size_t d = 0; d < axis; ++d) outer *= static_cast<size_t>(view.shape[d]);
    extent = static_cast<size_t>(view.shape[axis]);
    for (size_t d = axis + 1; d < view.shape.size(); ++d) bytes *= static_cast<size_t>(view.shape[d]);
  }
};

}  // namespace

void find_nonzero(const HostCall& call) {
  expect(call, 1, 2);
  const Tensor x = copied(call.inputs[0]);
  const Shape shape = x.shape().empty() ? Shape{1} : x.shape();
  const int64_t elements = x.num_elements();
  const int64_t entries = static_cast<int64_t>(shape.size()) * elements;
  int64_t* rows = integers(call, 0, entries);
  std::fill_n(rows, entries, 0);
  int64_t count = 0;
  for (int64_t i = 0; i < elements; ++i) {
    if (!is_nonzero(x, i)) continue;
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      rows[static_cast<int64_t>(d) * elements + count] = rest % shape[d];
    ++count;
  }
  *integers(call, 1, 1) = count;
}

/// The executor reads the numbers from the result.
void bind_extents(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& numbers = call.inputs[0];
  if (numbers.dtype != DType::kInt64 || numbers.shape.size() != 1)
    throw Error(ErrorCode::kInvalidPackage, "extents are no vector of i64");
  const auto* given = static_cast<const int64_t*>(numbers.data);
  std::copy_n(given, numbers.shape[0], integers(call, 0, numbers.shape[0]));
}

void compress(const HostCall& call) {
  expect(call, 2, 2);
  const Rows rows(call.inputs[0], axis_of(call, call.inputs[0].shape.size()));
  const TensorView& condition = call.inputs[1];
  if (condition.dtype != DType::kBool || condition.shape.size() != 1)
    throw Error(ErrorCode::kInvalidPackage, "the condition is no vector of bool");
  const auto* kept = static_cast<const uint8_t*>(condition.data);
  const size_t conditions = static_cast<size_t>(condition.shape[0]);
  const auto* source = static_cast<const std::byte*>(call.inputs[0].data);
  const size_t capacity = std::min(rows.extent, conditions);
  auto* target = static_cast<std::byte*>(storage(call, 0, rows.outer * capacity, rows.bytes));
  for (size_t outer = 0; outer < rows.outer; ++outer) {
    size_t to = 0;
    for (size_t i = 0; i < capacity; ++i) {
      if (kept[i] == 0) continue;
      std::memcpy(target + (outer * capacity + to++) * rows.bytes,
                  source + (outer * rows.extent + i) * rows.bytes, rows.bytes);
    }
    std::fill_n(target + (outer * capacity + to) * rows.bytes, (capacity - to) * rows.bytes, std::byte{0});
  }
  *integers(call, 1, 1) = std::count_if(kept, kept + capacity, [](uint8_t keep) { return keep != 0; });
}

namespace {

/// Of a run: the most of each class, which stays below that of the attributes, and the thresholds.
void read_limits(const TensorView& limits, BoxSelection& selection) {
  const int64_t count = num_elements(limits.shape);
  if (limits.dtype != DType::kFloat64 || count < 2 || count > 3)
    throw Error(ErrorCode::kInvalidPackage, "a host step selects boxes by other limits");
  const auto* numbers = static_cast<const double*>(limits.data);
  constexpr double kMost = 1 << 30;
  const auto most = static_cast<int64_t>(std::max(0.0, std::min(numbers[0], kMost)));
  selection.max_per_class = std::min(selection.max_per_class, most);
  selection.iou_threshold = numbers[1];
  if (count == 3) selection.score_threshold = numbers[2];
}

}  // namespace

void select_boxes_step(const HostCall& call) {
  expect(call, call.inputs.size() == 3 ? 3 : 2, 2);
  const Attributes attributes(call);
  BoxSelection selection;
  selection.max_per_class = attributes.integer("max_per_class");
  selection.iou_threshold = attributes.real("iou_threshold");
  if (attributes.has("score_threshold")) selection.score_threshold = attributes.real("score_threshold");
  selection.center_form = attributes.flag("center_form");
  const int64_t most_kept = selection.max_per_class;
  if (call.inputs.size() == 3) read_limits(call.inputs[2], selection);
  const Tensor rows = select_boxes(copied(call.inputs[0]), copied(call.inputs[1]), selection);
  const Shape& scores = call.inputs[1].shape;
  const int64_t most = std::clamp<int64_t>(most_kept, 0, scores[2]);
  const int64_t entries = scores[0] * scores[1] * 3 * most;
  int64_t* target = integers(call, 0, entries);
  std::fill_n(target, entries, 0);
  if (rows.num_bytes() != 0) std::memcpy(target, rows.data(), rows.num_bytes());
  *integers(call, 1, 1) = rows.shape()[0];
}

namespace {

/// Operand `index` as a count of elements of an axis, within [0, extent].
int64_t count_of(const HostCall& call, size_t index, size_t extent) {
  const TensorView& number = call.inputs[index];
  if (number.dtype != DType::kInt64 || num_elements(number.shape) != 1)
    throw Error(ErrorCode::kInvalidPackage, "a host step takes as many elements as no one number says");
  return std::clamp<int64_t>(*static_cast<const int64_t*>(number.data), 0, static_cast<int64_t>(extent));
}

/// The first `count` slices along the axis.
Tensor cut(const TensorView& x, size_t axis, int64_t count) {
  const Rows rows(x, axis);
  Shape shape = x.shape;
  shape[axis] = count;
  Tensor result(x.dtype, shape);
  const size_t bytes = static_cast<size_t>(count) * rows.bytes;
  for (size_t outer = 0; outer < rows.outer && bytes != 0; ++outer)
    std::memcpy(static_cast<std::byte*>(result.data()) + outer * bytes,
                static_cast<const std::byte*>(x.data) + outer * rows.extent * rows.bytes, bytes);
  return result;
}

}  // namespace

void distinct_step(const HostCall& call) {
  expect(call, call.inputs.size() == 2 ? 2 : 1, 5);
  const size_t axis = axis_of(call, call.inputs[0].shape.size());
  const Rows rows(call.inputs[0], axis);
  const Attributes attributes(call);
  const bool sorted = attributes.flag("sorted"),
             nans_apart = attributes.has("nans_apart") && attributes.flag("nans_apart");
  const int64_t given =
      call.inputs.size() == 2 ? count_of(call, 1, rows.extent) : static_cast<int64_t>(rows.extent);
  const Distinct found = distinct(cut(call.inputs[0], axis, given), axis, sorted, nans_apart);
  const int64_t extent = static_cast<int64_t>(rows.extent);
  const size_t bytes = static_cast<size_t>(found.values.shape()[axis]) * rows.bytes;
  auto* target = static_cast<std::byte*>(storage(call, 0, rows.outer * rows.extent, rows.bytes));
  const auto* source = static_cast<const std::byte*>(found.values.data());
  for (size_t outer = 0; outer < rows.outer; ++outer) {
    std::byte* row = target + outer * rows.extent * rows.bytes;
    std::copy_n(source + outer * bytes, bytes, row);
    std::fill(row + bytes, row + rows.extent * rows.bytes, std::byte{0});
  }
  size_t index = 1;
  for (const Tensor* list : {&found.first, &found.inverse, &found.counts}) {
    int64_t* out = integers(call, index++, extent);
    std::fill_n(out, extent, 0);
    std::copy_n(list->values<int64_t>().begin(), list->num_elements(), out);
  }
  *integers(call, 4, 1) = found.values.shape()[axis];
}

void take_first(const HostCall& call) {
  expect(call, 2, 2);
  const Rows rows(call.inputs[0], axis_of(call, call.inputs[0].shape.size()));
  const int64_t count = count_of(call, 1, rows.extent);
  const auto* source = static_cast<const std::byte*>(call.inputs[0].data);
  auto* target = static_cast<std::byte*>(storage(call, 0, rows.outer * rows.extent, rows.bytes));
  const size_t all = rows.extent * rows.bytes, kept = static_cast<size_t>(count) * rows.bytes;
  for (size_t outer = 0; outer < rows.outer; ++outer) {
    std::copy_n(source + outer * all, kept, target + outer * all);
    std::fill_n(target + outer * all + kept, all - kept, std::byte{0});
  }
  *integers(call, 1, 1) = count;
}

void append(const HostCall& call) {
  expect(call, 3, 1);
  const TensorView &x = call.inputs[0], &part = call.inputs[2];
  const size_t axis = axis_of(call, x.shape.size());
  Shape like = part.shape;
  if (like.size() == x.shape.size()) like[axis] = x.shape[axis];
  if (part.dtype != x.dtype || like != x.shape)
    throw Error(ErrorCode::kInvalidPackage,
                "what is appended to " + to_string(x.shape) + " is " + to_string(part.shape));
  const Rows rows(x, axis), added(part, axis);
  const auto first = static_cast<size_t>(count_of(call, 1, rows.extent));
  const size_t all = rows.extent * rows.bytes, own = added.extent * rows.bytes;
  const size_t moved = std::min(added.extent, rows.extent - first) * rows.bytes;
  const auto* source = static_cast<const std::byte*>(x.data);
  const auto* tail = static_cast<const std::byte*>(part.data);
  auto* target = static_cast<std::byte*>(storage(call, 0, rows.outer * rows.extent, rows.bytes));
  if (target != source) std::copy_n(source, rows.outer * all, target);
  for (size_t outer = 0; outer < rows.outer; ++outer)
    std::copy_n(tail + outer * own, moved, target + outer * all + first * rows.bytes);
}

void choose(const HostCall& call) {
  expect(call, 3, 1);
  const TensorView& condition = call.inputs[0];
  if (condition.dtype != DType::kBool || num_elements(condition.shape) != 1)
    throw Error(ErrorCode::kInvalidPackage, "what is chosen by is no bool");
  const TensorView& taken = call.inputs[*static_cast<const uint8_t*>(condition.data) != 0 ? 1 : 2];
  const auto elements = static_cast<size_t>(num_elements(taken.shape));
  const size_t bytes = dtype_bytes(taken.dtype);
  void* const target = storage(call, 0, elements, bytes);
  if (elements * bytes != 0 && target != taken.data) std::memmove(target, taken.data, elements * bytes);
}

void trim(const HostCall& call) {
  const TensorView& x = call.inputs[0];
  const std::vector<size_t> axes = axes_of(call, x.shape.size());
  expect(call, axes.size() + 1, 1);
  Shape kept = x.shape;
  size_t last = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t count = *static_cast<const int64_t*>(call.inputs[i + 1].data);
    TM_CHECK(count >= 0 && count <= kept[axes[i]], "a count past its axis");
    kept[axes[i]] = count;
    last = std::max(last, axes[i]);
  }
  // What stands behind the last of the axes, and along it, moves together.
  const Rows rows(x, last);
  const auto* source = static_cast<const std::byte*>(x.data);
  auto* target = static_cast<std::byte*>(storage(call, 0, rows.outer * rows.extent, rows.bytes));
  const size_t bytes = static_cast<size_t>(kept[last]) * rows.bytes;
  for (size_t outer = 0; outer < rows.outer && bytes != 0; ++outer) {
    auto rest = static_cast<int64_t>(outer);
    bool is_kept = true;
    for (size_t d = last; d-- > 0; rest /= x.shape[d]) is_kept = is_kept && rest % x.shape[d] < kept[d];
    if (!is_kept) continue;
    std::memcpy(target, source + outer * rows.extent * rows.bytes, bytes);
    target += bytes;
  }
}

}  // namespace tensormill::host_ops
