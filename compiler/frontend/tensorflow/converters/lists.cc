// Lists of tensors, whose lengths and places are known: what recurrent networks are made of. Others are
// elements along an axis, which loops go over (row_loops.h).
#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/moves/moves.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/tensorflow/converters/open_lists.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr int64_t kMostElements = 4096;

void check_length(const NodeContext& node, int64_t length) {
  if (length < 0) node.invalid("a list of " + std::to_string(length) + " elements");
  if (length > kMostElements)
    node.unsupported("num_elements",
                     "lists of more than " + std::to_string(kMostElements) + " are not implemented");
}

/// The shape of an element, as operand `index` has it: -1 stands for one of unknown rank.
void set_shape(NodeContext& node, TensorList& list, size_t index) {
  if (!node.is_known(index)) return;
  const V shape = node.input(index);
  if (node.rank(shape) != 1) return;
  list.has_rank = true;
  list.shape.clear();
  for (const ir::SymInt& extent : node.known_ints(index, "element_shape"))
    list.shape.push_back(extent.is_constant() ? extent.hint() : -1);
}

size_t place_in(NodeContext& node, const TensorList& list, size_t index) {
  const int64_t at = node.known_int(index, "index");
  if (at < 0 || at >= static_cast<int64_t>(list.elements.size()))
    node.invalid("place " + std::to_string(at) + " of a list of " + std::to_string(list.elements.size()));
  return static_cast<size_t>(at);
}

/// An element that was not set: zeros of the shape that is known, or that the others have.
V element_of(NodeContext& node, const TensorList& list, size_t at) {
  if (list.elements[at] != ir::kAbsent) return list.elements[at];
  if (list.has_rows) node.unsupported("operand 0", "a row that is not set");
  Compose c(node);
  for (const V other : list.elements)
    if (other != ir::kAbsent) return c.filled(list.dtype, node.shape(other), 0);
  const bool is_known =
      list.has_rank && std::none_of(list.shape.begin(), list.shape.end(), [](int64_t d) { return d < 0; });
  if (!is_known) node.unsupported("element_shape", "an element that is not set has no shape");
  return c.filled(list.dtype, Shape(list.shape.begin(), list.shape.end()), 0);
}

std::vector<V> all_of(NodeContext& node, const TensorList& list) {
  std::vector<V> values;
  for (size_t i = 0; i < list.elements.size(); ++i) values.push_back(element_of(node, list, i));
  return values;
}

V stacked(NodeContext& node, const std::vector<V>& elements, const TensorList& list) {
  Compose c(node);
  if (elements.empty()) {
    Shape shape{0};
    for (const int64_t extent : list.shape) shape.push_back(std::max<int64_t>(extent, 0));
    if (!list.has_rank) node.unsupported("element_shape", "an empty list of elements without a shape");
    return c.filled(list.dtype, shape, 0);
  }
  std::vector<V> parts;
  for (const V element : elements) parts.push_back(c.unsqueeze(element, 0));
  return c.concat(parts, 0);
}

std::vector<V> unstacked(NodeContext& node, V x) {
  Compose c(node);
  if (node.rank(x) < 1) node.invalid("a scalar has no elements");
  const ir::SymInt extent = node.shape(x)[0];
  if (!extent.is_constant())
    node.unsupported("operand 0", "elements of an array of as many as a free dim says are not implemented");
  check_length(node, extent.hint());
  std::vector<V> elements;
  for (int64_t i = 0; i < extent.hint(); ++i) elements.push_back(c.squeeze(c.slice(x, 0, i, 1), 0));
  return elements;
}

/// Whether the integers are 0, 1, 2 ... to the list's end.
bool counts_all(const NodeContext& node, V places, const ir::SymInt& length) {
  for (;;) {
    const ir::NodeId producer = node.graph().value(places).producer;
    if (producer == ir::kAbsent) return false;
    const ir::Node& made = node.graph().node(producer);
    if (made.op == "iota") return ir::demand(ir::Relation::kEqual, node.shape(made.outputs[0])[0], length);
    const bool is_same = made.op == "cast" || (made.op == "reshape" && node.rank(made.inputs[0]) == 1);
    if (!is_same) return false;
    places = made.inputs[0];
  }
}

void check_all(const NodeContext& node, const TensorList& list, size_t index) {
  if (!counts_all(node, node.input(index), *list.length))
    node.unsupported("indices",
                     "of a list of as many elements as a free dim or a run says, others than all of them in "
                     "their order are not implemented");
}

std::vector<V> picked(NodeContext& node, const TensorList& list, size_t index) {
  std::vector<V> values;
  for (const int64_t at : std::vector<int64_t>(node.known_ints(index, "indices"))) {
    if (at < 0 || at >= static_cast<int64_t>(list.elements.size()))
      node.invalid("place " + std::to_string(at) + " of a list of " + std::to_string(list.elements.size()));
    values.push_back(element_of(node, list, static_cast<size_t>(at)));
  }
  return values;
}

}  // namespace

// Operands: the shape of an element; a number of elements, or, of an empty list, a largest one.
void convert_list_reserve(NodeContext& node) {
  TensorList list;
  list.has_rows = node.file_type("element_dtype") == DataType::kVariant;
  if (!list.has_rows) list.dtype = node.dtype_attr("element_dtype");
  if (!list.has_rows) set_shape(node, list, 0);
  constexpr const char* kNumber = "num_elements";
  const ir::SymInt wanted = node.op() == "TensorListReserve"
                                ? build::only_integer(node, node.extents_at(1, kNumber), kNumber)
                                : ir::SymInt(0);
  if (!wanted.is_constant()) {
    list.length = wanted;
    return node.set_list(0, std::move(list));
  }
  const int64_t length = wanted;
  check_length(node, length);
  list.elements.assign(static_cast<size_t>(length), ir::kAbsent);
  node.set_list(0, std::move(list));
}

void convert_list_from_tensor(NodeContext& node) {
  // Rows of a ragged tensor are a list already.
  if (std::holds_alternative<std::shared_ptr<const TensorList>>(node.item(0).value))
    return node.set_item(0, {node.item(0).value, {}});
  TensorList list;
  const V x = node.input(0);
  list.dtype = node.dtype(x);
  set_shape(node, list, 1);
  if (node.rank(x) > 0 && !node.shape(x)[0].is_constant()) {
    list.length = node.shape(x)[0];
    list.whole = x;
    return node.set_list(0, std::move(list));
  }
  list.elements = unstacked(node, x);
  node.set_list(0, std::move(list));
}

void convert_list_get(NodeContext& node) {
  if (const TensorList& open = node.any_list(0); open.length)
    return node.set_item(0, {open_element(node, open, 1), {}});
  TensorList list = node.list(0);
  if (!list.has_rank && node.num_inputs() > 2) set_shape(node, list, 2);
  node.set_item(0, {element_of(node, list, place_in(node, list, 1)), {}});
}

void convert_list_set(NodeContext& node) {
  if (const TensorList& open = node.any_list(0); open.length)
    return node.set_list(0, with_element(node, open, 1, 2));
  TensorList list = node.list(0);
  const bool grows = node.flag("resize_if_index_out_of_bounds", false);
  const int64_t at = node.known_int(1, "index");
  if (grows && at >= static_cast<int64_t>(list.elements.size())) {
    check_length(node, at + 1);
    list.elements.resize(static_cast<size_t>(at) + 1, ir::kAbsent);
  }
  list.elements[place_in(node, list, 1)] = node.input(2);
  node.set_list(0, std::move(list));
}

void convert_list_stack(NodeContext& node) {
  const int64_t wanted = node.integer("num_elements", -1);
  // What is made of rows takes them one by one.
  if (node.any_list(0).has_rows) return node.set_item(0, {node.item(0).value, {}});
  if (const TensorList& open = node.any_list(0); open.length) {
    if (open.whole == ir::kAbsent) node.unsupported("operand 0", "elements that are not set");
    if (wanted >= 0 && !ir::demand(ir::Relation::kEqual, *open.length, wanted))
      node.invalid("a list of " + to_string(*open.length) + " where " + std::to_string(wanted) +
                   " are to be");
    return node.set_item(0, {open.whole, {}});
  }
  TensorList list = node.list(0);
  if (!list.has_rank) set_shape(node, list, 1);
  if (wanted >= 0 && wanted != static_cast<int64_t>(list.elements.size()))
    node.invalid("a list of " + std::to_string(list.elements.size()) + " where " + std::to_string(wanted) +
                 " are to be");
  node.set_output(0, stacked(node, all_of(node, list), list));
}

void convert_list_gather(NodeContext& node) {
  const TensorList& list = node.list(0);
  node.set_output(0, stacked(node, picked(node, list, 1), list));
}

void convert_list_push(NodeContext& node) {
  TensorList list = node.list(0);
  check_length(node, static_cast<int64_t>(list.elements.size()) + 1);
  list.elements.push_back(node.input(1));
  node.set_list(0, std::move(list));
}

void convert_list_pop(NodeContext& node) {
  TensorList list = node.list(0);
  if (list.elements.empty()) node.invalid("the list is empty");
  const V last = element_of(node, list, list.elements.size() - 1);
  list.elements.pop_back();
  node.set_list(0, std::move(list));
  node.set_item(1, {last, {}});
}

void convert_list_length(NodeContext& node) {
  Compose c(node);
  // Of a TensorArray the flow is operand 1.
  const TensorList& list = node.any_list(node.op() == "TensorListLength" ? 0 : 1);
  node.set_output(0, c.cast(c.dims({list.count()}, {}), DType::kInt32));
}

// Of a TensorArray the flow is operand 1.
void convert_list_concat(NodeContext& node) {
  Compose c(node);
  const std::vector<V> parts = all_of(node, node.list(node.op() == "TensorArrayConcatV3" ? 1 : 0));
  if (parts.empty()) node.unsupported("operand 0", "an empty list");
  ir::SymShape lengths;
  for (const V part : parts) {
    if (node.rank(part) < 1) node.invalid("an element is a scalar");
    lengths.push_back(node.shape(part)[0]);
  }
  node.set_output(0, c.concat(parts, 0));
  node.set_output(1, node.extents(lengths));
}

void convert_list_join(NodeContext& node) {
  TensorList list = node.list(0);
  const TensorList& more = node.list(1);
  check_length(node, static_cast<int64_t>(list.elements.size() + more.elements.size()));
  list.elements.insert(list.elements.end(), more.elements.begin(), more.elements.end());
  node.set_list(0, std::move(list));
}

// Parts of a tensor along its first axis, of lengths that are known. Operands: the tensor, a shape, lengths;
// of a TensorArray: handle, tensor, lengths, flow.
void convert_list_split(NodeContext& node) {
  const bool is_array = node.op() == "TensorArraySplitV3";
  TensorList list = is_array ? node.list(3) : TensorList();
  const V x = node.input(is_array ? 1 : 0);
  if (node.rank(x) < 1) node.invalid("a scalar has no parts");
  list.dtype = node.dtype(x);
  const ir::SymShape lengths = node.known_ints(2, "lengths");
  check_length(node, static_cast<int64_t>(lengths.size()));
  list.elements = build::split(node, node.maps(), x, 0, lengths);
  node.set_list(0, std::move(list));
}

namespace {

/// The rows of a tensor at their places in a list, which grows where they are behind its end.
void put_rows(NodeContext& node, TensorList& list, V rows, size_t operand) {
  const std::vector<V> elements = unstacked(node, rows);
  const ir::Ints places = node.known_ints(operand, "indices");
  if (places.size() != elements.size()) node.invalid("another number of indices than of elements");
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0) node.invalid("place " + std::to_string(places[i]) + " of a list");
    check_length(node, places[i] + 1);
    const auto at = static_cast<size_t>(places[i]);
    if (at >= list.elements.size()) list.elements.resize(at + 1, ir::kAbsent);
    list.elements[at] = elements[i];
  }
}

}  // namespace

// Operands: rows, their places, the shape of one, of version 2 how many elements there are; or a list, rows,
// their places.
void convert_list_scatter(NodeContext& node) {
  const bool is_there = node.op() == "TensorListScatterIntoExistingList";
  TensorList list = is_there ? node.list(0) : TensorList();
  const V rows = node.input(is_there ? 1 : 0);
  list.dtype = node.dtype(rows);
  if (!is_there) set_shape(node, list, 2);
  if (node.op() == "TensorListScatterV2") {
    const int64_t length = node.known_int(3, "num_elements");
    check_length(node, std::max<int64_t>(length, 0));
    list.elements.assign(static_cast<size_t>(std::max<int64_t>(length, 0)), ir::kAbsent);
  }
  put_rows(node, list, rows, is_there ? 2 : 1);
  node.set_list(0, std::move(list));
}

void convert_list_resize(NodeContext& node) {
  TensorList list = node.list(0);
  const int64_t length = node.known_int(1, "size");
  check_length(node, length);
  list.elements.resize(static_cast<size_t>(length), ir::kAbsent);
  node.set_list(0, std::move(list));
}

// The flow, which every operator passes on, is the list; the handle only says which one it is.
void convert_array(NodeContext& node) {
  TensorList list;
  list.dtype = node.dtype_attr("dtype");
  if (node.has("element_shape")) {
    const TensorShape shape = node.shape_attr("element_shape");
    list.has_rank = shape.has_rank;
    list.shape = shape.dims;
  }
  const ir::SymInt length = build::only_integer(node, node.extents_at(0, "size"), "size");
  if (!length.is_constant()) {
    list.length = length;
  } else {
    check_length(node, length.hint());
    list.elements.assign(static_cast<size_t>(length.hint()), ir::kAbsent);
  }
  node.set_list(0, list);
  node.set_list(1, std::move(list));
}

// Operands: handle, index, flow.
void convert_array_read(NodeContext& node) {
  if (const TensorList& open = node.any_list(2); open.length)
    return node.set_item(0, {open_element(node, open, 1), {}});
  const TensorList& list = node.list(2);
  node.set_item(0, {element_of(node, list, place_in(node, list, 1)), {}});
}

// Operands: handle, index, value, flow.
void convert_array_write(NodeContext& node) {
  if (const TensorList& open = node.any_list(3); open.length)
    return node.set_list(0, with_element(node, open, 1, 2));
  TensorList list = node.list(3);
  const int64_t at = node.known_int(1, "index");
  if (at >= static_cast<int64_t>(list.elements.size())) {
    check_length(node, at + 1);
    list.elements.resize(static_cast<size_t>(at) + 1, ir::kAbsent);
  }
  list.elements[place_in(node, list, 1)] = node.input(2);
  node.set_list(0, std::move(list));
}

// Operands: handle, indices, flow.
void convert_array_gather(NodeContext& node) {
  if (const TensorList& open = node.any_list(2); open.length) {
    check_all(node, open, 1);
    if (open.whole == ir::kAbsent) node.unsupported("operand 2", "elements that are not set");
    return node.set_item(0, {open.whole, {}});
  }
  const TensorList& list = node.list(2);
  node.set_output(0, stacked(node, picked(node, list, 1), list));
}

// Operands: handle, indices, value, flow.
void convert_array_scatter(NodeContext& node) {
  if (TensorList open = node.any_list(3); open.length) {
    check_all(node, open, 1);
    const V whole = node.input(2);
    if (node.rank(whole) < 1 || !ir::demand(ir::Relation::kEqual, node.shape(whole)[0], *open.length))
      node.invalid("shape " + to_string(node.shape(whole)) + " for a list of " + to_string(*open.length));
    if (!open.head.empty()) node.unsupported("operand 3", "elements that are set already");
    open.whole = whole;
    return node.set_list(0, std::move(open));
  }
  TensorList list = node.list(3);
  put_rows(node, list, node.input(2), 1);
  node.set_list(0, std::move(list));
}

// Operands: variable, indices.
void convert_resource_gather(NodeContext& node) {
  const V table = node.variable(node.resource(0)), indices = node.input(1);
  if (node.op() == "ResourceGatherNd") return node.set_output(0, build::gather_nd(node, table, indices));
  const int64_t batch = node.integer("batch_dims", 0);
  node.set_output(0, build::batched_gather(node, table, indices, batch, batch));
}

}  // namespace tensormill::frontend::tensorflow
