// Operators that give tensors other forms, most of them views.
#include <algorithm>

#include "compiler/build/moves/slices.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Parts of a tensor, where the file does not say how many there are.
constexpr int64_t kMostParts = 65'536;

/// `wanted` with what is left of the elements in place of -1.
ir::SymShape filled_shape(const NodeContext& node, const ir::SymShape& own, ir::SymShape wanted) {
  std::optional<size_t> open;
  ir::SymInt known = 1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].is_constant() && wanted[i].hint() == -1) {
      if (open) node.invalid("a shape with more than one extent that is open");
      open = i;
      continue;
    }
    if (!ir::demand(ir::Relation::kLessEqual, 0, wanted[i]))
      node.invalid("a shape with the extent " + to_string(wanted[i]));
    known = node.product(known, wanted[i]);
  }
  const ir::SymInt elements = num_elements(own);
  if (open) {
    const bool fits = known.hint() != 0 && ir::demand_divisible(elements, known);
    if (!fits) node.invalid("shape " + to_string(own) + " in the form " + to_string(wanted));
    wanted[*open] = floordiv(elements, known);
  } else if (!ir::demand(ir::Relation::kEqual, elements, known)) {
    node.invalid("shape " + to_string(own) + " in the form " + to_string(wanted));
  }
  return wanted;
}

/// A view where torch would make one of tensors that lie as theirs do, else a copy; where neither is known,
/// it is not read after the tensor was written, or the other way round.
void set_reshaped(NodeContext& node, const ir::SymShape& wanted) {
  const bool has_to_be = node.op() == "view" || node.op() == "view_as" || node.op() == "unflatten";
  // An export has no view of what torch refused to view.
  const std::optional<bool> is_view =
      has_to_be && node.is_typed() ? std::optional(true) : node.has_view_as("self", wanted);
  if (has_to_be && !is_view.value_or(true))
    node.invalid("torch has no view of shape " + to_string(wanted) +
                 " of elements that lie as these do: call reshape()");
  if (has_to_be || is_view.value_or(false)) return node.set_view(0, "self", reshape_step(wanted));
  const V copy = node.add("reshape", {node.tensor("self")}, {{"shape", wanted}});
  if (is_view || node.op().ends_with("_copy")) return node.set_output(0, copy);
  node.set_maybe_shared("self", copy);
}

}  // namespace

void convert_reshape(NodeContext& node) {
  const std::string& op = node.op();
  const ir::SymShape own = node.shape(node.tensor("self"));
  if (op == "view_as" || op == "reshape_as") return set_reshaped(node, node.shape(node.tensor("other")));
  const char* name = op == "reshape" ? "shape" : "size";
  set_reshaped(node, filled_shape(node, own, node.syms(name)));
}

void convert_flatten(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const auto rank = static_cast<int64_t>(own.size());
  const int64_t first = node.axis_or_first("start_dim", rank), last = node.axis_or_first("end_dim", rank);
  if (last < first) node.invalid("axes " + std::to_string(first) + " to " + std::to_string(last));
  if (rank == 0) return set_reshaped(node, {1});
  ir::SymShape wanted(own.begin(), own.begin() + first);
  ir::SymInt product = 1;
  for (int64_t axis = first; axis <= last; ++axis)
    product = node.product(product, own[static_cast<size_t>(axis)]);
  wanted.push_back(product);
  wanted.insert(wanted.end(), own.begin() + last + 1, own.end());
  if (first == last) return node.set_alias("self");
  set_reshaped(node, wanted);
}

// A view of what lies in rows, of all else a copy.
void convert_ravel(NodeContext& node) {
  const V x = node.tensor("self");
  const ir::SymShape wanted{num_elements(node.shape(x))};
  const std::optional<bool> is_view = node.lies_in("self", MemoryFormat::kRows);
  if (is_view.value_or(false)) return node.set_view(0, "self", reshape_step(wanted));
  const V copy = node.add("reshape", {x}, {{"shape", wanted}});
  if (is_view) return node.set_output(0, copy);
  node.set_maybe_shared("self", copy);
}

void convert_unflatten(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  const ir::SymShape part = filled_shape(node, {own[static_cast<size_t>(axis)]}, node.syms("sizes"));
  ir::SymShape wanted(own.begin(), own.begin() + axis);
  wanted.insert(wanted.end(), part.begin(), part.end());
  wanted.insert(wanted.end(), own.begin() + axis + 1, own.end());
  set_reshaped(node, wanted);
}

void convert_permute(NodeContext& node) {
  const int64_t rank = node.rank(node.tensor("self"));
  ir::Ints perm = node.axes("dims", rank);
  if (static_cast<int64_t>(perm.size()) != rank) node.invalid("dims are no permutation");
  node.set_view(0, "self", transpose_step(std::move(perm)));
}

namespace {

/// In place such an operator changes how the tensor itself is looked at: an exported program goes on with its
/// result, TorchScript with the tensor.
void check_whose_form(NodeContext& node) {
  if (node.row().is_in_place && !node.is_typed())
    node.unsupported("self",
                     "a tensor that changes its own form is not implemented: take the operator's "
                     "result, without _");
}

}  // namespace

// transpose, t, and the attributes T, mT, H of a tensor.
void convert_transpose(NodeContext& node) {
  check_whose_form(node);
  const int64_t rank = node.rank(node.tensor("self"));
  ir::Ints perm = Compose(node).count_to(rank);
  const std::string& op = node.op();
  if (op == "numpy_T" || op == "matrix_H" || op == "t" || op == "t_copy") {
    if (rank > 2 && op != "numpy_T") node.invalid("the input has rank " + std::to_string(rank));
    std::reverse(perm.begin(), perm.end());
  } else if (op == "mT") {
    if (rank < 2) node.invalid("the input has rank " + std::to_string(rank));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  } else {
    const int64_t a = node.axis_or_first(op == "swapaxes" ? "axis0" : "dim0", rank);
    const int64_t b = node.axis_or_first(op == "swapaxes" ? "axis1" : "dim1", rank);
    if (rank == 0) return node.set_alias("self");
    std::swap(perm[static_cast<size_t>(a)], perm[static_cast<size_t>(b)]);
  }
  node.set_view(0, "self", transpose_step(std::move(perm)));
}

void convert_movedim(NodeContext& node) {
  const int64_t rank = node.rank(node.tensor("self"));
  const ir::Ints from = node.axes("source", rank), to = node.axes("destination", rank);
  if (from.size() != to.size()) node.invalid("source and destination have other lengths");
  if (rank == 0) return node.set_alias("self");
  std::vector<int64_t> perm(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < from.size(); ++i) perm[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& axis : perm) {
    if (axis >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    axis = next++;
  }
  node.set_view(0, "self", transpose_step(std::move(perm)));
}

void convert_squeeze(NodeContext& node) {
  check_whose_form(node);
  const ir::SymShape own = node.shape(node.tensor("self"));
  const auto rank = static_cast<int64_t>(own.size());
  const bool is_all = node.row().overload == "default";
  const ir::Ints axes = is_all ? Compose(node).count_to(rank) : node.axes("dim", rank);
  // What is 1 here was maybe none when the module was exported: the file says what it squeezes.
  const auto is_one = [&](size_t at) {
    if (!node.is_typed()) return own[at].is_constant() && own[at].hint() == 1;
    const TensorMeta& meta = node.input_meta("self");
    return meta.sizes.size() == own.size() && meta.sizes[at].value == 1;
  };
  ir::SymShape left;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<size_t>(axis);
    const bool is_named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_named || !is_one(at)) left.push_back(own[at]);
  }
  node.set_view(0, "self", reshape_step(left));
}

void convert_unsqueeze(NodeContext& node) {
  check_whose_form(node);
  ir::SymShape shape = node.shape(node.tensor("self"));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(shape.size()) + 1);
  shape.insert(shape.begin() + axis, 1);
  node.set_view(0, "self", reshape_step(shape));
}

// -1 keeps an extent.
void convert_expand(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  ir::SymShape wanted = node.op() == "expand_as" ? node.shape(node.tensor("other")) : node.syms("size");
  if (wanted.size() < own.size())
    node.invalid("shape " + to_string(own) + " expanded to " + to_string(wanted));
  for (size_t i = 0; i < own.size(); ++i) {
    ir::SymInt& to = wanted[wanted.size() - own.size() + i];
    if (to.is_constant() && to.hint() == -1) to = own[i];
    // What the program took for 1, such as the first row of some, is 1.
    const bool is_said = node.is_typed() && node.input_meta("self").sizes.size() == own.size();
    const bool is_one = is_said && node.input_meta("self").sizes[i].value == 1;
    if (is_one && !own[i].is_constant() && !ir::demand(ir::Relation::kEqual, own[i], 1))
      node.invalid("shape " + to_string(own) + " expanded to " + to_string(wanted));
  }
  node.set_view(0, "self", expand_step(wanted));
}

namespace {

/// `count` elements from one on that a run says.
void set_window(NodeContext& node, int64_t axis, V start, int64_t count, int64_t step) {
  Compose c(node);
  const V x = node.tensor("self");
  const ir::SymInt extent = node.shape(x)[static_cast<size_t>(axis)];
  if (step < 1 || count < 0 ||
      !ir::demand(ir::Relation::kLessEqual, count, max(floordiv(extent - 1, step) + 1, 0)))
    node.invalid(std::to_string(count) + " elements of an axis of " + to_string(extent));
  const V first = from_front(node, start, extent);
  const V places = c.add(c.mul(c.iota(count), c.ints({step}, {})), first);
  node.set_maybe_shared("self", gathered(node, x, places, axis));
}

}  // namespace

void convert_slice(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  if (own.empty()) node.invalid("the input has no dims");
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  const ir::SymInt& extent = own[static_cast<size_t>(axis)];
  const std::optional<V> start = run_time_number(node, "start", true);
  const std::optional<ir::SymInt> said = node.said_extent(static_cast<size_t>(axis));
  // With as many elements as the file says the end follows from the start.
  static_cast<void>(node.has("end"));
  if (start && said && said->is_constant())
    return set_window(node, axis, *start, said->hint(), node.integer("step"));
  const build::AxisSlice part = slice_of(node, extent, said);
  node.set_view(0, "self", slice_step(axis, part.start, part.extent, part.step));
}

namespace {

ir::SymInt place_in(NodeContext& node, const ir::SymInt& at, const ir::SymInt& extent) {
  const bool is_front = at.is_constant() ? at.hint() >= 0 : at >= 0;
  const ir::SymInt place = is_front ? at : at + extent;
  if (!ir::demand(ir::Relation::kLessEqual, 0, place) || !ir::demand(ir::Relation::kLess, place, extent))
    node.invalid("element " + to_string(at) + " of an axis of " + to_string(extent));
  return place;
}

}  // namespace

void convert_select(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  if (own.empty()) node.invalid("the input has no dims");
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  if (const std::optional<V> index = run_time_number(node, "index", true)) {
    Compose c(node);
    const V place = c.reshape(c.cast(*index, DType::kInt64), {1});
    return node.set_maybe_shared("self", c.squeeze(gathered(node, node.tensor("self"), place, axis), axis));
  }
  node.set_view(0, "self",
                select_step(axis, place_in(node, node.sym("index"), own[static_cast<size_t>(axis)])));
}

void convert_narrow(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  if (own.empty()) node.invalid("the input has no dims");
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  const std::optional<V> first = run_time_number(node, "start", true);
  const std::optional<RunNumber> number = node.run_number("length");
  const ir::SymInt& extent = own[static_cast<size_t>(axis)];
  const ir::SymInt length = number ? node.bind_number(number->value, 0, std::nullopt) : node.sym("length");
  if (first && length.is_constant()) return set_window(node, axis, *first, length.hint(), 1);
  const std::optional<V> unknown = run_time_number(node, "start");
  ir::SymInt start =
      unknown ? node.bind_number(from_front(node, *unknown, extent), 0, std::nullopt) : node.sym("start");
  if (start.is_constant() && start.hint() < 0) start = start + extent;
  if (!ir::demand(ir::Relation::kLessEqual, 0, start) ||
      !ir::demand(ir::Relation::kLessEqual, start + length, extent))
    node.invalid("elements from " + to_string(start) + " of an axis of " + to_string(extent));
  node.set_view(0, "self", slice_step(axis, start, length, 1));
}

namespace {

/// An output for each extent, one behind the other along the axis.
void set_parts(NodeContext& node, int64_t axis, const ir::SymShape& sizes) {
  if (node.is_typed() && sizes.size() != node.num_outputs())
    node.invalid("it has " + std::to_string(sizes.size()) + " parts, the file says " +
                 std::to_string(node.num_outputs()));
  ir::SymInt start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    node.set_view(i, "self", slice_step(axis, start, sizes[i], 1));
    start += sizes[i];
  }
}

}  // namespace

namespace {

/// How many parts of a size there are; of nothing one.
int64_t parts_of(NodeContext& node, const ir::SymInt& extent, const ir::SymInt& size) {
  if (!ir::demand(ir::Relation::kLess, 0, size)) {
    if (extent.is_constant() && extent.hint() == 0) return 1;
    node.invalid("parts of " + to_string(size) + " elements");
  }
  const int64_t count = ceildiv(extent, size);
  if (count > kMostParts) node.unsupported("self", std::to_string(count) + " parts are not implemented");
  return std::max<int64_t>(count, 1);
}

}  // namespace

// split: parts of one size, the last one of what is left; chunk: as many parts of one size.
void convert_split(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  const ir::SymInt& extent = own[static_cast<size_t>(axis)];
  ir::SymInt size;
  if (takes(node, "chunks")) {
    const int64_t chunks = node.integer("chunks");
    if (chunks < 1) node.invalid(std::to_string(chunks) + " chunks");
    size = ceildiv(extent, chunks);
  } else {
    size = node.sym("split_size");
  }
  const int64_t count =
      node.is_typed() ? static_cast<int64_t>(node.num_outputs()) : parts_of(node, extent, size);
  ir::SymShape sizes;
  ir::SymInt left = extent;
  for (int64_t i = 0; i < count; ++i) {
    sizes.push_back(i + 1 == count ? left : size);
    left = left - size;
  }
  set_parts(node, axis, sizes);
}

void convert_split_sizes(NodeContext& node) {
  const int64_t axis = node.axis("dim", node.rank(node.tensor("self")));
  set_parts(node, axis, node.syms(node.op() == "split" ? "split_size" : "split_sizes"));
}

namespace {

/// The argument "dim", or the axis that the operator's name says: hsplit's of a row is its only one.
int64_t axis_of_parts(NodeContext& node, int64_t rank) {
  if (takes(node, "dim")) return node.axis("dim", rank);
  const std::string& op = node.op();
  return node.normalize_axis(op == "dsplit" ? 2 : op == "hsplit" && rank > 1 ? 1 : 0, rank);
}

}  // namespace

// Parts whose extents differ by one at most, or that end at the places given; vsplit, hsplit and dsplit have
// parts of one extent.
void convert_tensor_split(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  const int64_t axis = axis_of_parts(node, static_cast<int64_t>(own.size()));
  const ir::SymInt& extent = own[static_cast<size_t>(axis)];
  ir::SymShape sizes;
  if (takes(node, "indices")) {
    // Each part ends where the next one begins, and has nothing where that is before its own begin.
    size_t part = 0;
    ir::SymInt start = 0;
    for (const ir::SymInt& index : node.syms("indices")) {
      const ir::SymInt end = build::place_within(index, extent, 0, extent);
      node.set_view(part++, "self", slice_step(axis, start, max(end - start, 0), 1));
      start = end;
    }
    return node.set_view(part, "self", slice_step(axis, start, extent - start, 1));
  }
  const int64_t count = node.integer("sections");
  if (count < 1) node.invalid(std::to_string(count) + " sections");
  if (count > kMostParts) node.unsupported("sections", std::to_string(count) + " parts are not implemented");
  if (!takes(node, "dim") && !ir::demand_divisible(extent, count))
    node.invalid(std::to_string(count) + " sections of " + to_string(extent));
  for (int64_t i = 0; i < count; ++i) sizes.push_back(floordiv(extent + (count - 1 - i), count));
  set_parts(node, axis, sizes);
}

void convert_unbind(NodeContext& node) {
  const ir::SymShape own = node.shape(node.tensor("self"));
  if (own.empty()) node.invalid("the input has no dims");
  const int64_t axis = node.axis("dim", static_cast<int64_t>(own.size()));
  size_t count = node.num_outputs();
  if (!node.is_typed()) {
    const int64_t extent = own[static_cast<size_t>(axis)];
    if (extent > kMostParts) node.unsupported("self", std::to_string(extent) + " parts are not implemented");
    count = static_cast<size_t>(extent);
  }
  for (size_t i = 0; i < count; ++i) node.set_view(i, "self", select_step(axis, static_cast<int64_t>(i)));
}

// Elements of the diagonal, whose axis is the last: a gather, which is not written to.
void convert_diagonal(NodeContext& node) {
  Compose c(node);
  const char* of = takes(node, "A") ? "A" : "self";
  const V x = node.tensor(of);
  const ir::SymShape own = node.shape(x);
  const auto rank = static_cast<int64_t>(own.size());
  const int64_t offset = node.integer("offset");
  const int64_t first = node.axis("dim1", rank), second = node.axis("dim2", rank);
  if (first == second) node.invalid("dim1 and dim2 are one axis");
  std::vector<int64_t> perm;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != first && axis != second) perm.push_back(axis);
  perm.insert(perm.end(), {first, second});
  const ir::SymInt &rows = own[static_cast<size_t>(first)], &columns = own[static_cast<size_t>(second)];
  const ir::SymInt below = offset < 0 ? ir::SymInt(-offset) : ir::SymInt(0);
  const ir::SymInt right = offset > 0 ? ir::SymInt(offset) : ir::SymInt(0);
  const ir::SymInt count = max(min(rows - below, columns - right), 0);
  const ir::SymInt first_place = same(count, 0) ? ir::SymInt(0) : below * columns + right;
  ir::SymShape merged;
  for (int64_t axis = 0; axis + 2 < rank; ++axis)
    merged.push_back(own[static_cast<size_t>(perm[static_cast<size_t>(axis)])]);
  merged.push_back(rows * columns);
  const auto step = std::make_shared<const ViewStep>(ViewStep{
      [=](build::OpBuilder& builder, V value) {
        Compose made(builder);
        const V flat = made.reshape(made.transpose(value, perm), merged);
        const V places =
            made.add(made.mul(made.iota(count), made.dims({columns + 1}, {})), made.dims({first_place}, {}));
        return made.gather(flat, places, rank - 2);
      },
      {}});
  node.set_view(0, of, step);
}

// What changes nothing but where the elements lie.
void convert_alias(NodeContext& node) { node.set_alias("self"); }

void convert_dropout(NodeContext& node) {
  const bool is_on =
      node.op() == "native_dropout" ? node.has("train") && node.flag("train") : node.flag("train");
  const char* input = takes(node, "input") ? "input" : "self";
  if (is_on && node.real("p") != 0)
    node.unsupported("train", "dropout of training is not implemented: call eval() first");
  static_cast<void>(node.real("p"));
  if (node.op() == "native_dropout") {
    const V x = node.tensor(input);
    node.set_output(0, node.add("identity", {x}));
    return node.set_output(1, Compose(node).filled(DType::kBool, node.shape(x), 1));
  }
  node.set_alias(input);
}

void convert_clone(NodeContext& node) {
  const MemoryFormat format =
      takes(node, "memory_format") ? node.memory_format(MemoryFormat::kPreserve) : MemoryFormat::kPreserve;
  node.set_new(node.add("identity", {node.tensor("self")}), "self", format);
}

void convert_contiguous(NodeContext& node) {
  const MemoryFormat format = node.memory_format(MemoryFormat::kRows);
  const std::optional<bool> is_alias = node.lies_in("self", format);
  if (is_alias.value_or(false)) return node.set_alias("self");
  const V copy = node.add("identity", {node.tensor("self")});
  if (is_alias) return node.set_new(copy, "self", format);
  node.set_maybe_shared("self", copy, format);
}

// The tensor itself where it has the type already, and lies as it is asked to.
void convert_to(NodeContext& node) {
  const std::string& overload = node.row().overload;
  if (overload == "other") static_cast<void>(node.tensor("other"));
  if (node.op() == "to" && overload != "other") static_cast<void>(node.optional_dtype("dtype"));
  if (node.op() == "_to_copy") static_cast<void>(node.optional_dtype("dtype"));
  const MemoryFormat format = node.memory_format(MemoryFormat::kPreserve);
  const V x = node.tensor("self");
  const bool is_copy = node.op() == "_to_copy" || (node.op() == "to" && node.flag("copy")) ||
                       node.dtype(x) != node.output_dtype();
  const std::optional<bool> is_alias = is_copy ? std::optional(false)
                                       : format == MemoryFormat::kPreserve
                                           ? std::optional(true)
                                           : node.is_suggested("self", format);
  if (is_alias.value_or(false)) return node.set_alias("self");
  const V y = node.as_output(x), copy = y == x ? node.add("identity", {x}) : y;
  if (is_alias) return node.set_new(copy, "self", format);
  // Whatever lies in no other format counts as rows.
  node.set_maybe_shared("self", copy, format == MemoryFormat::kRows ? MemoryFormat::kPreserve : format);
}

void convert_type_as(NodeContext& node) {
  static_cast<void>(node.tensor("other"));
  const V x = node.tensor("self");
  if (node.dtype(x) == node.output_dtype()) return node.set_alias("self");
  node.set_new(node.as_output(x), "self", MemoryFormat::kPreserve);
}

void convert_nothing(NodeContext&) {}

}  // namespace tensormill::frontend::pytorch
