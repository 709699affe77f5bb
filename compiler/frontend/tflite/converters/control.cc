// Subgraphs: branches and loops of which the import knows how they go, and what is a subgraph by another
// name. Where data decides for a branch, both are computed and their elements chosen.
#include <map>
#include <utility>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

namespace {

/// Iterations that are unrolled into kernels.
constexpr int64_t kMostUnrolledTrips = 1024;

std::vector<V> stored_from(NodeContext& node, size_t first) {
  std::vector<V> values;
  for (size_t i = first; i < node.num_inputs(); ++i) values.push_back(node.stored(i));
  return values;
}

void set_all(NodeContext& node, const std::vector<V>& values) {
  if (values.size() != node.num_outputs())
    node.invalid("the subgraph has " + std::to_string(values.size()) + " outputs, not " +
                 std::to_string(node.num_outputs()));
  for (size_t i = 0; i < values.size(); ++i) node.set_stored(i, values[i]);
}

/// The condition, where it is known.
std::optional<bool> known_condition(NodeContext& node, V condition) {
  const ir::Value& value = node.graph().value(condition);
  const ::tensormill::Tensor* known = value.tensor();
  if (known == nullptr) return std::nullopt;
  if (known->num_elements() != 1)
    node.invalid("the condition has " + std::to_string(known->num_elements()) + " elements");
  return known->element_as_int(0) != 0;
}

}  // namespace

namespace {

/// Of variables of which `taken` has others than there are now: those where the condition holds.
void choose_variables(NodeContext& node, V condition, const std::map<int64_t, V>& taken) {
  auto& variables = node.import_state().variables;
  for (const auto& [handle, value] : taken) {
    const auto other = variables.find(handle);
    if (other == variables.end()) continue;  // read behind the branches, it has no value
    if (other->second == value) continue;
    if (node.type(value).dtype != node.type(other->second).dtype ||
        !ir::demand_equal(node.shape(value), node.shape(other->second)))
      node.unsupported("condition", "data decides between a variable's types");
    other->second = node.elementwise("where", {condition, value, other->second});
  }
  for (auto other = variables.begin(); other != variables.end();)
    other = taken.count(other->first) == 0 ? variables.erase(other) : std::next(other);
}

}  // namespace

void convert_if(NodeContext& node) {
  const auto options = node.options<IfOptions>();
  const V condition = node.stored(0);
  const std::vector<V> inputs = stored_from(node, 1);
  const auto run = [&](int32_t subgraph) { return node.call(static_cast<uint32_t>(subgraph), inputs); };
  if (const std::optional<bool> known = known_condition(node, condition))
    return set_all(node, run(*known ? options.then_subgraph_index : options.else_subgraph_index));
  // What a branch assigns is assigned where it is taken.
  auto& variables = node.import_state().variables;
  const std::map<int64_t, V> before = variables;
  const std::vector<V> taken = run(options.then_subgraph_index);
  const std::map<int64_t, V> behind = std::exchange(variables, before);
  const std::vector<V> other = run(options.else_subgraph_index);
  if (taken.size() != other.size()) node.invalid("its branches have different numbers of outputs");
  const V scalar = Compose(node).reshape(condition, {});
  choose_variables(node, scalar, behind);
  std::vector<V> outputs;
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!ir::demand_equal(node.shape(taken[i]), node.shape(other[i])))
      node.unsupported("condition", "data decides between results of " + to_string(node.shape(taken[i])) +
                                        " and " + to_string(node.shape(other[i])));
    outputs.push_back(node.elementwise("where", {scalar, taken[i], other[i]}));
  }
  set_all(node, outputs);
}

void convert_while(NodeContext& node) {
  const auto options = node.options<WhileOptions>();
  std::vector<V> values = stored_from(node, 0);
  for (int64_t trip = 0;; ++trip) {
    const std::vector<V> condition = node.call(static_cast<uint32_t>(options.cond_subgraph_index), values);
    if (condition.size() != 1)
      node.invalid("its condition has " + std::to_string(condition.size()) + " outputs");
    const std::optional<bool> goes_on = known_condition(node, condition[0]);
    if (!goes_on) node.unsupported("condition", "how often the loop goes round is worked out by a run");
    if (!*goes_on) break;
    if (trip == kMostUnrolledTrips)
      node.unsupported("condition",
                       "more than " + std::to_string(kMostUnrolledTrips) + " iterations are not implemented");
    const std::vector<V> next = node.call(static_cast<uint32_t>(options.body_subgraph_index), values);
    if (next.size() != values.size()) node.invalid("its body has another number of outputs than of inputs");
    values = next;
  }
  set_all(node, values);
}

// An index that no branch has means the last one.
void convert_case(NodeContext& node) {
  const auto options = node.options<StablehloCaseOptions>();
  const Ints branches = options.branch_subgraph_indices;
  if (branches.empty()) node.invalid("it has no branches");
  const V index = node.stored(0);
  const std::vector<V> inputs = stored_from(node, 1);
  const auto run = [&](size_t branch) { return node.call(static_cast<uint32_t>(branches[branch]), inputs); };
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  if (const ::tensormill::Tensor* known = node.graph().value(index).tensor(); known != nullptr) {
    const int64_t given = known->num_elements() == 1 ? known->element_as_int(0) : last;
    return set_all(node, run(static_cast<size_t>(given < 0 || given > last ? last : given)));
  }
  Compose c(node);
  const V scalar = c.reshape(index, {});
  auto& variables = node.import_state().variables;
  const std::map<int64_t, V> before = variables;
  std::vector<V> chosen = run(static_cast<size_t>(last));
  for (size_t branch = static_cast<size_t>(last); branch-- > 0;) {
    const std::map<int64_t, V> behind = std::exchange(variables, before);
    const std::vector<V> other = run(branch);
    if (other.size() != chosen.size()) node.invalid("its branches have different numbers of outputs");
    const V is_other = c.binary("equal", scalar, c.number(scalar, static_cast<double>(branch)));
    choose_variables(node, c.unary("not", is_other), behind);
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (!ir::demand_equal(node.shape(chosen[i]), node.shape(other[i])))
        node.unsupported("index", "data decides between results of " + to_string(node.shape(chosen[i])) +
                                      " and " + to_string(node.shape(other[i])));
      chosen[i] = node.elementwise("where", {is_other, other[i], chosen[i]});
    }
  }
  set_all(node, chosen);
}

// The subgraph is what the operator means, whatever its name.
void convert_composite(NodeContext& node) {
  const auto options = node.options<StableHLOCompositeOptions>();
  set_all(node, node.call(static_cast<uint32_t>(options.decomposition_subgraph_index), stored_from(node, 0)));
}

}  // namespace tensormill::frontend::tflite
