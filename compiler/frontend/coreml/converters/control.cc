// Branches, and loops of which the import knows how often they go round. Where data decides for a branch,
// both are computed and their elements chosen.
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

/// Iterations that are unrolled into kernels.
constexpr int64_t kMostTrips = 1024;

/// What a condition is where it is known.
std::optional<bool> known_truth(const NodeContext& node, V condition) {
  const Tensor* known = node.graph().value(condition).tensor();
  if (known == nullptr) return std::nullopt;
  if (known->num_elements() != 1)
    node.invalid("the condition has " + std::to_string(known->num_elements()) + " elements");
  return known->element_as_double(0) != 0;
}

V chosen(NodeContext& node, V condition, V taken, V other) {
  if (taken == other) return taken;
  if (node.dtype(taken) != node.dtype(other)) node.invalid("its branches have results of different types");
  if (!ir::demand_equal(node.shape(taken), node.shape(other)))
    node.unsupported("pred", "data decides between results of " + to_string(node.shape(taken)) + " and " +
                                 to_string(node.shape(other)));
  return Compose(node).where(condition, taken, other);
}

}  // namespace

// Blocks: what is computed where the condition holds, and where not.
void convert_cond(NodeContext& node) {
  Compose c(node);
  const V condition = node.tensor("pred");
  if (const std::optional<bool> known = known_truth(node, condition))
    return node.set_outputs(node.call(node.block(*known ? 0 : 1), {}));
  const V is_true = c.reshape(c.cast(condition, DType::kBool), {});
  const std::vector<V> taken = node.call(node.block(0), {}), other = node.call(node.block(1), {});
  if (taken.size() != other.size()) node.invalid("its branches have different numbers of outputs");
  std::vector<V> results;
  for (size_t i = 0; i < taken.size(); ++i) results.push_back(chosen(node, is_true, taken[i], other[i]));
  node.set_outputs(results);
}

// Blocks: whether it goes on, and what it does.
void convert_while_loop(NodeContext& node) {
  std::vector<V> values = node.tensors("loop_vars");
  for (int64_t trip = 0;; ++trip) {
    const std::vector<V> goes_on = node.call(node.block(0), values);
    if (goes_on.size() != 1) node.invalid("its condition has " + std::to_string(goes_on.size()) + " outputs");
    const std::optional<bool> known = known_truth(node, goes_on[0]);
    if (!known) node.unsupported("cond", "how often the loop goes round is worked out by a run");
    if (!*known) break;
    if (trip == kMostTrips)
      node.unsupported("cond", "more than " + std::to_string(kMostTrips) + " iterations are not implemented");
    std::vector<V> next = node.call(node.block(1), values);
    if (next.size() != values.size()) node.invalid("its body has another number of outputs than of inputs");
    values = std::move(next);
  }
  node.set_outputs(values);
}

}  // namespace tensormill::frontend::coreml
