// Elements taken from places and put at places that tensors name.
#include "compiler/build/moves/places.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

/// Whether places count from the end: what is known of them stays so, as shapes are made of it.
bool may_be_negative(NodeContext& node, const char* name) {
  const std::optional<Tensor> known = node.constant_of(name);
  if (!known) return true;
  for (int64_t i = 0; i < known->num_elements(); ++i)
    if (known->element_as_int(i) < 0) return true;
  return false;
}

/// Places as i64; a negative one counts from the end of the axis.
V whole_places(NodeContext& node, const char* name, const ir::SymInt& extent) {
  Compose c(node);
  const V given = c.cast(node.tensor(name), DType::kInt64);
  if (!may_be_negative(node, name)) return given;
  return c.where(c.binary("less", given, c.number(given, 0)), c.add(given, c.dims({extent}, {})), given);
}

/// The same of places along the axes of `shape` from `first` on, as the last axis has them.
V whole_rows(NodeContext& node, const char* name, const ir::SymShape& shape, size_t first) {
  Compose c(node);
  const V given = c.cast(node.tensor(name), DType::kInt64);
  const ir::SymShape own = node.shape(given);
  if (own.empty() || !own.back().is_constant()) node.unsupported(name, "their depth is a free dim");
  const int64_t depth = own.back().hint();
  if (depth < 1 || first + static_cast<size_t>(depth) > shape.size())
    node.invalid("places along " + std::to_string(depth) + " axes of shape " + to_string(shape));
  if (!may_be_negative(node, name)) return given;
  const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(first);
  const V extents = c.dims(ir::SymShape(begin, begin + depth), {depth});
  return c.where(c.binary("less", given, c.number(given, 0)), c.add(given, extents), given);
}

/// "update" puts what stands there out of place; of what is combined in an order of its own, "sub" and "div",
/// sums and products are put together first.
V combined(NodeContext& node, V x, V updates, const std::string& mode,
           const std::function<V(V x, V updates, const char* reduction)>& put) {
  Compose c(node);
  if (mode == "update") return put(x, updates, "none");
  if (mode == "add" || mode == "mul" || mode == "max" || mode == "min") return put(x, updates, mode.c_str());
  if (mode == "sub") return c.sub(x, put(c.filled(node.dtype(x), node.shape(x), 0), updates, "add"));
  if (mode == "div" && is_float(node.dtype(x)))
    return c.div(x, put(c.filled(node.dtype(x), node.shape(x), 1), updates, "mul"));
  node.unsupported("mode", "\"" + mode + "\" of " + std::string(dtype_long_name(node.dtype(x))) +
                               " elements is not implemented");
}

}  // namespace

void convert_gather(NodeContext& node) {
  const V x = node.tensor("x");
  node.skip("validate_indices");
  const int64_t axis = node.axis("axis", node.rank(x), 0), batch = node.integer("batch_dims", 0);
  // A gather without a batch takes places from the end itself.
  const V places = batch == 0 ? Compose(node).cast(node.tensor("indices"), DType::kInt64)
                              : whole_places(node, "indices", node.shape(x)[static_cast<size_t>(axis)]);
  node.set_output(build::batched_gather(node, x, places, axis, batch));
}

void convert_reverse_sequence(NodeContext& node) {
  node.set_output(build::reversed_sequences(node, node.tensor("x"), node.tensor("lengths"),
                                            node.integer("seq_axis", 0), node.integer("batch_axis", 0)));
}

void convert_gather_along_axis(NodeContext& node) {
  const V x = node.tensor("x");
  node.skip("validate_indices");
  const int64_t axis = node.axis("axis", node.rank(x), 0);
  const V places = whole_places(node, "indices", node.shape(x)[static_cast<size_t>(axis)]);
  node.set_output(Compose(node).gather_elements(x, places, axis));
}

void convert_gather_nd(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("x");
  node.skip("validate_indices");
  const int64_t batch = node.integer("batch_dims", 0);
  if (batch < 0 || batch >= node.rank(x)) node.invalid("batch_dims is " + std::to_string(batch));
  V places = whole_rows(node, "indices", node.shape(x), static_cast<size_t>(batch));
  const auto rank = static_cast<size_t>(node.rank(places));
  if (static_cast<size_t>(batch) >= rank) node.invalid("batch_dims is " + std::to_string(batch));
  // Where in the batch a place is comes before it.
  ir::SymShape column = node.shape(places);
  column.back() = 1;
  for (auto d = static_cast<size_t>(batch); d-- > 0;)
    places =
        c.concat({c.expand(c.positions(column[d], d, rank), column), places}, static_cast<int64_t>(rank) - 1);
  node.set_output(build::gather_nd(node, x, places));
}

// The axis goes to the front, and back.
void convert_scatter(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("data");
  node.skip("validate_indices");
  const int64_t axis = node.axis("axis", node.rank(x), 0);
  const V places = whole_places(node, "indices", node.shape(x)[static_cast<size_t>(axis)]);
  if (node.rank(places) != 1) node.invalid("the indices have rank " + std::to_string(node.rank(places)));
  std::vector<int64_t> forth{axis}, back;
  for (int64_t d = 0; d < node.rank(x); ++d)
    if (d != axis) forth.push_back(d);
  for (int64_t d = 0; d < node.rank(x); ++d) back.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
  const V rows = c.transpose(node.tensor("updates"), forth);
  const V y = combined(node, c.transpose(x, forth), rows, node.text("mode", "add"),
                       [&](V filled, V updates, const char* reduction) {
                         return build::scattered(node, filled, places, updates, reduction);
                       });
  node.set_output(c.transpose(y, back));
}

void convert_scatter_along_axis(NodeContext& node) {
  constexpr int64_t kMostByKernel = 256;
  const V x = node.tensor("data");
  node.skip("validate_indices");
  const int64_t axis = node.axis("axis", node.rank(x), 0);
  const V places = whole_places(node, "indices", node.shape(x)[static_cast<size_t>(axis)]);
  // A kernel looks at every update along the axis for every element.
  const bool by_host =
      node.rank(places) != node.rank(x) ||
      !is_proven(ir::Relation::kLessEqual, node.shape(places)[static_cast<size_t>(axis)], kMostByKernel);
  const auto put = [&](V filled, V updates, const char* reduction) {
    return node.add(by_host ? "scatter" : "scatter_elements", {filled, places, updates},
                    {{"axis", axis}, {"reduction", std::string(reduction)}});
  };
  node.set_output(combined(node, x, node.tensor("updates"), node.text("mode", "add"), put));
}

void convert_scatter_nd(NodeContext& node) {
  const V x = node.tensor("data");
  node.skip("validate_indices");
  const V places = whole_rows(node, "indices", node.shape(x), 0);
  node.set_output(combined(node, x, node.tensor("updates"), node.text("mode", "add"),
                           [&](V filled, V updates, const char* reduction) {
                             return build::scatter_nd(node, filled, places, updates, reduction);
                           }));
}

}  // namespace tensormill::frontend::coreml
