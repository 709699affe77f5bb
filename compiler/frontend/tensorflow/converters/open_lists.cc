#include "compiler/frontend/tensorflow/converters/open_lists.h"

#include "compiler/build/extents/run_numbers.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Elements that are set before a loop goes over the others.
constexpr int64_t kMostHead = 16;

std::optional<int64_t> known_integer(const NodeContext& node, V value) {
  const ::tensormill::Tensor* known = node.graph().value(value).tensor();
  if (known == nullptr || is_float(known->dtype()) || known->num_elements() != 1) return std::nullopt;
  return known->element_as_int(0);
}

/// Outside of loops: the place that operand `index` is.
std::optional<int64_t> known_place(const NodeContext& node, const TensorList& list, size_t index) {
  if (list.number != ir::kAbsent || !node.is_known(index)) return std::nullopt;
  const ir::SymInt place = node.known_int(index, "index");
  if (!place.is_constant()) return std::nullopt;
  if (place.hint() < 0 || !ir::demand(ir::Relation::kLess, place, *list.length))
    node.invalid("place " + to_string(place) + " of a list of " + to_string(*list.length));
  return place.hint();
}

/// By how much operand `index` is more than the number of the loop's iteration.
std::optional<int64_t> ahead_of_iteration(const NodeContext& node, const TensorList& list, size_t index) {
  return list.number == ir::kAbsent ? std::nullopt : distance_from(node, list.number, node.input(index));
}

/// Operand `index` as a place of the list, i64 []: where some iteration may be outside of it, a run checks.
V place_of(NodeContext& node, const TensorList& list, size_t index) {
  Compose c(node);
  if (is_float(node.dtype(node.input(index)))) node.invalid("a place that is no integer");
  const V place = c.cast(c.reshape(node.input(index), {}), DType::kInt64);
  const std::optional<int64_t> ahead = ahead_of_iteration(node, list, index);
  if (ahead && *ahead >= 0 && is_proven(ir::Relation::kLessEqual, list.trips + *ahead, *list.length))
    return place;
  const V length = c.dims({*list.length}, {});
  const V is_there =
      c.binary("and", c.binary("greater_equal", place, c.number(place, 0)), c.binary("less", place, length));
  return build::required(node, place, is_there, "place {} of a list of {}", {place, length});
}

}  // namespace

std::optional<int64_t> distance_from(const NodeContext& node, V from, V value) {
  constexpr int kMostSteps = 64;
  int64_t more = 0;
  for (int step = 0; step < kMostSteps && value != from; ++step) {
    const ir::NodeId producer = node.graph().value(value).producer;
    if (producer == ir::kAbsent || is_float(node.dtype(value))) return std::nullopt;
    const ir::Node& made = node.graph().node(producer);
    if (made.op == "cast" || (made.op == "reshape" && same(num_elements(node.shape(value)), 1))) {
      value = made.inputs[0];
      continue;
    }
    if (made.op != "add" && made.op != "sub") return std::nullopt;
    const std::optional<int64_t> right = known_integer(node, made.inputs[1]);
    const std::optional<int64_t> left = made.op == "add" ? known_integer(node, made.inputs[0]) : std::nullopt;
    if (!right && !left) return std::nullopt;
    const int64_t known = right ? *right : *left;
    if (known > INT32_MAX || known < -int64_t{INT32_MAX}) return std::nullopt;
    more += made.op == "sub" ? -known : known;
    value = made.inputs[right ? 0 : 1];
  }
  return value == from ? std::optional(more) : std::nullopt;
}

V row_at(NodeContext& node, const TensorList& list, V begin, V length) {
  Compose c(node);
  const ir::SymInt total = node.shape(list.whole)[0];
  // The rows lie behind each other within the elements (rows_of_splits): none of these bounds is checked.
  const ir::SymInt count = build::bind_run_numbers(node, c.reshape(length, {1}), 0, list.most)[0];
  const ir::SymInt from = build::bind_run_numbers(node, c.reshape(begin, {1}), 0, total - count)[0];
  return c.slice(list.whole, 0, from, count);
}

V open_element(NodeContext& node, const TensorList& list, size_t index) {
  Compose c(node);
  const std::optional<int64_t> known = known_place(node, list, index);
  if (known && list.whole == ir::kAbsent && *known < static_cast<int64_t>(list.head.size()))
    return list.head[static_cast<size_t>(*known)];
  const bool is_own =
      list.row != ir::kAbsent && ahead_of_iteration(node, list, index) == std::optional(list.first);
  if (is_own) return list.row;
  if (list.whole == ir::kAbsent) node.unsupported("index", "an element that is not set");
  if (known && list.begins == ir::kAbsent) return c.squeeze(c.slice(list.whole, 0, *known, 1), 0);
  const V place = known ? c.ints({*known}, {}) : place_of(node, list, index);
  if (list.begins == ir::kAbsent) return c.gather(list.whole, place, 0);
  return row_at(node, list, c.gather(list.begins, place, 0), c.gather(list.lengths, place, 0));
}

TensorList with_element(NodeContext& node, TensorList list, size_t index, size_t value) {
  const std::optional<int64_t> place = known_place(node, list, index);
  if (place && list.whole == ir::kAbsent && *place == static_cast<int64_t>(list.head.size()) &&
      *place < kMostHead) {
    list.head.push_back(node.input(value));
    return list;
  }
  if (ahead_of_iteration(node, list, index) != std::optional(list.first))
    node.unsupported("index",
                     "in a list of as many elements as a free dim or a run says another one than that of a "
                     "loop's iteration is not implemented");
  list.row = node.input(value);
  // Elements of other places are not read behind this: the list is another one.
  list.whole = ir::kAbsent;
  return list;
}

}  // namespace tensormill::frontend::tensorflow
