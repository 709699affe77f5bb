// Functions, branches and loops of which the import knows how they go, or that go over rows. Where data
// decides for a branch, all are computed and their elements chosen.
#include <algorithm>

#include "compiler/frontend/tensorflow/converters/row_loops.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// Iterations that are unrolled into kernels.
constexpr int64_t kMostTrips = 1024;

std::vector<Item> items_from(const NodeContext& node, size_t first) {
  std::vector<Item> items;
  for (size_t i = first; i < node.num_inputs(); ++i) items.push_back({node.item(i).value, {}});
  return items;
}

V tensor_of(const NodeContext& node, const Item& item) {
  const V* value = std::get_if<V>(&item.value);
  if (value == nullptr) node.unsupported("condition", "data decides between what are no tensors");
  return *value;
}

/// What a condition is where it is known: a number that is not 0.
std::optional<bool> known_truth(const NodeContext& node, V condition) {
  const ::tensormill::Tensor* known = node.graph().value(condition).tensor();
  if (known == nullptr) return std::nullopt;
  if (known->num_elements() != 1)
    node.invalid("the condition has " + std::to_string(known->num_elements()) + " elements");
  return known->element_as_double(0) != 0;
}

V as_bool(NodeContext& node, V condition) {
  Compose c(node);
  return c.reshape(c.cast(condition, DType::kBool), {});
}

V chosen(NodeContext& node, V condition, V taken, V other) {
  if (taken == other) return taken;
  if (!ir::demand_equal(node.shape(taken), node.shape(other)))
    node.unsupported("condition", "data decides between results of " + to_string(node.shape(taken)) +
                                      " and " + to_string(node.shape(other)));
  return node.elementwise("where", {condition, taken, other});
}

std::vector<Item> chosen(NodeContext& node, V condition, const std::vector<Item>& taken,
                         const std::vector<Item>& other) {
  if (taken.size() != other.size()) node.invalid("its branches have different numbers of outputs");
  std::vector<Item> items;
  for (size_t i = 0; i < taken.size(); ++i)
    items.push_back({chosen(node, condition, tensor_of(node, taken[i]), tensor_of(node, other[i])), {}});
  return items;
}

}  // namespace

void convert_call(NodeContext& node) { node.set_items(node.call(node.function("f"), items_from(node, 0))); }

void convert_if(NodeContext& node) {
  const V condition = node.input(0);
  const FunctionRef &taken = node.function("then_branch"), &other = node.function("else_branch");
  const std::vector<Item> inputs = items_from(node, 1);
  if (const std::optional<bool> known = known_truth(node, condition))
    return node.set_items(node.call(*known ? taken : other, inputs));
  const std::vector<Item> results = node.call(taken, inputs);
  node.set_items(chosen(node, as_bool(node, condition), results, node.call(other, inputs)));
}

// An index that no branch has means the last one.
void convert_case(NodeContext& node) {
  Compose c(node);
  const std::vector<FunctionRef> branches = node.functions("branches");
  if (branches.empty()) node.invalid("it has no branches");
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  const std::vector<Item> inputs = items_from(node, 1);
  const V index = node.input(0);
  if (const ::tensormill::Tensor* known = node.graph().value(index).tensor(); known != nullptr) {
    const int64_t given = known->num_elements() == 1 ? known->element_as_int(0) : last;
    return node.set_items(
        node.call(branches[static_cast<size_t>(given < 0 || given > last ? last : given)], inputs));
  }
  std::vector<Item> results = node.call(branches.back(), inputs);
  for (size_t branch = static_cast<size_t>(last); branch-- > 0;) {
    const V is_this = c.binary("equal", c.reshape(index, {}), c.number(index, static_cast<double>(branch)));
    results = chosen(node, is_this, node.call(branches[branch], inputs), results);
  }
  node.set_items(results);
}

void convert_while(NodeContext& node) {
  const FunctionRef &condition = node.function("cond"), &body = node.function("body");
  std::vector<Item> values = items_from(node, 0);
  if (has_open_list(values) || ends_at_free_number(node, condition, values))
    return node.set_items(looped_over_rows(node, condition, body, values));
  for (int64_t trip = 0;; ++trip) {
    const std::vector<Item> goes_on = node.call(condition, values);
    if (goes_on.size() != 1) node.invalid("its condition has " + std::to_string(goes_on.size()) + " outputs");
    const std::optional<bool> known = known_truth(node, tensor_of(node, goes_on[0]));
    if (!known) node.unsupported("cond", "how often the loop goes round is worked out by a run");
    if (!*known) break;
    if (trip == kMostTrips)
      node.unsupported("cond", "more than " + std::to_string(kMostTrips) + " iterations are not implemented");
    std::vector<Item> next = node.call(body, values);
    if (next.size() != values.size()) node.invalid("its body has another number of outputs than of inputs");
    values = std::move(next);
  }
  node.set_items(values);
}

// What a predicate does not choose is not computed; one that a run works out has both sides computed, and is
// remembered until Merge.
void convert_switch(NodeContext& node) {
  const V predicate = node.input(1);
  const Item data{node.item(0).value, node.item(0).under};
  for (const bool side : {false, true}) {
    const std::optional<bool> known = known_truth(node, predicate);
    Item item = data;
    if (known && *known != side) item.value = Dead();
    if (!known) item.under[predicate] = side;
    node.set_item(side ? 1 : 0, std::move(item));
  }
}

void convert_merge(NodeContext& node) {
  Compose c(node);
  std::vector<size_t> live;
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (!std::holds_alternative<Dead>(node.item(i).value)) live.push_back(i);
  if (live.empty()) {
    node.set_item(0, {Dead(), {}});
    return node.set_item(1, {Dead(), {}});
  }
  if (live.size() == 1) {
    node.set_item(0, node.item(live[0]));
    return node.set_output(1, c.cast(c.ints({static_cast<int64_t>(live[0])}, {}), DType::kInt32));
  }
  if (live.size() != 2) node.unsupported("operands", "more than two sides of a branch are not implemented");
  const Item &first = node.item(live[0]), &second = node.item(live[1]);
  for (const auto& [predicate, side] : first.under) {
    const auto other = second.under.find(predicate);
    if (other == second.under.end() || other->second == side) continue;
    const V condition = as_bool(node, predicate);
    const V a = tensor_of(node, first), b = tensor_of(node, second);
    Item merged{chosen(node, condition, side ? a : b, side ? b : a), first.under};
    merged.under.insert(second.under.begin(), second.under.end());
    merged.under.erase(predicate);
    node.set_item(0, std::move(merged));
    const V index = c.cast(condition, DType::kInt32);
    return node.set_output(1, side ? c.sub(c.number(index, 1), index) : index);
  }
  node.unsupported("operands", "it is not known which side of a branch counts when");
}

// Variables of the model, whose values lie in its checkpoint.
void convert_variable_handle(NodeContext& node) {
  const SavedModel& model = node.import_state().loaded.model();
  const std::string name =
      node.op() == "VariableV2" || node.op() == "Variable" ? node.label() : node.text("shared_name", "");
  Resource resource{name, ""};
  size_t found = 0;
  for (const SavedObject& object : model.objects) {
    if (object.name != name || object.checkpoint_key.empty()) continue;
    resource.key = object.checkpoint_key;
    ++found;
  }
  if (found != 1) resource.key = model.variables.contains(name) ? name : "";
  if (node.op() == "VarHandleOp") return node.set_item(0, {resource, {}});
  node.set_output(0, node.variable(resource));
}

void convert_read_variable(NodeContext& node) { node.set_item(0, {node.variable(node.resource(0)), {}}); }

void convert_is_initialized(NodeContext& node) {
  node.set_output(0, Compose(node).filled(DType::kBool, {}, 1));
}

}  // namespace tensormill::frontend::tensorflow
