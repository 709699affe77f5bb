// Branches and loops. Where data decides for a branch, both are computed and their elements chosen. A loop is
// unrolled as far as the import knows that it goes round, and from where data decides it is one of the graph.
#include <utility>

#include "compiler/frontend/coreml/node_context.h"
#include "compiler/ir/loops.h"
#include "runtime/base/text.h"

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

using States = std::map<std::string_view, V>;

V chosen(NodeContext& node, V condition, V taken, V other) {
  if (taken == other) return taken;
  if (node.dtype(taken) != node.dtype(other)) node.invalid("its branches have results of different types");
  if (!ir::demand_equal(node.shape(taken), node.shape(other)))
    node.unsupported("pred", "data decides between results of " + to_string(node.shape(taken)) + " and " +
                                 to_string(node.shape(other)));
  return Compose(node).where(condition, taken, other);
}

/// What a block makes where `holds` says whether it counts.
std::vector<V> guarded(NodeContext& node, V holds, const Block& block) {
  V& guard = node.import_state().guard;
  const V around = guard;
  guard = around == ir::kAbsent ? holds : Compose(node).binary("and", around, holds);
  std::vector<V> results = node.call(block, {});
  guard = around;
  return results;
}

/// A loop of the graph: what its iterations hand on, the states among that, keeps its type.
class RunLoop {
public:
  RunLoop(NodeContext& node, std::vector<V> first)
      : node_(node), c_(node), count_(first.size()), first_(with_states(std::move(first))) {}

  /// The values behind the last iteration. `goes_on`: whether there is a first one.
  std::vector<V> run(V goes_on) {
    ImportState& state = node_.import_state();
    const int64_t number = state.loops++;
    const auto carried = static_cast<int64_t>(first_.size());
    V condition = truth(goes_on);
    if (state.guard != ir::kAbsent) condition = c_.binary("and", c_.reshape(state.guard, {1}), condition);
    std::vector<V> operands{condition};
    operands.insert(operands.end(), first_.begin(), first_.end());
    const std::vector<V> begun = node_.add_many(
        std::string(ir::kLoopBegin), operands,
        {{"loop", number}, {"carried", carried}, {"max_trips", int64_t{0}}, {"condition", int64_t{1}}});
    // An iteration runs where the condition holds alone.
    const V around = std::exchange(state.guard, ir::kAbsent);
    const size_t bound = run_symbols();
    std::vector<V> next = node_.call(node_.block(1), without_states({begun.begin() + 1, begun.end()}));
    if (next.size() != count_) node_.invalid("its body has another number of outputs than of inputs");
    const std::vector<V> again = node_.call(node_.block(0), next);
    if (again.size() != 1) node_.invalid("its condition has " + std::to_string(again.size()) + " outputs");
    next = with_states(std::move(next));
    for (size_t i = 0; i < next.size(); ++i) check_handed_on(first_[i], next[i], bound);
    operands = {begun[0], truth(again[0])};
    operands.insert(operands.end(), next.begin(), next.end());
    std::vector<V> made = node_.add_many(std::string(ir::kLoopEnd), operands,
                                         {{"loop", number},
                                          {"carried", carried},
                                          {"condition", int64_t{1}},
                                          {"trips", ir::SymInt(0)},
                                          {"counted", int64_t{0}}});
    state.guard = around;
    made.pop_back();  // how many iterations there were
    return without_states(std::move(made));
  }

private:
  V truth(V value) {
    if (!ir::demand(ir::Relation::kEqual, num_elements(node_.shape(value)), 1))
      node_.invalid("the condition is " + ir::to_string(node_.type(value)));
    return c_.reshape(c_.cast(value, DType::kBool), {1});
  }

  std::vector<V> with_states(std::vector<V> values) const {
    for (const auto& [name, value] : node_.import_state().states) values.push_back(value);
    return values;
  }
  /// The states are from here on what stands behind the values.
  std::vector<V> without_states(std::vector<V> values) const {
    size_t next = count_;
    for (auto& [name, value] : node_.import_state().states) value = values[next++];
    values.resize(count_);
    return values;
  }

  size_t run_symbols() const {
    const auto& table = node_.graph().symbols();
    return table == nullptr ? 0 : table->run_time_symbols().size();
  }

  /// Symbols from `bound` on are bound by an iteration, and mean nothing outside of it.
  void check_handed_on(V from, V to, size_t bound) const {
    const ir::ValueType &first = node_.type(from), &last = node_.type(to);
    if (first.dtype == ::tensormill::kString)
      node_.unsupported("loop_vars", "strings in a loop that data ends");
    bool is_same = first.dtype == last.dtype;
    for (size_t i = bound; i < run_symbols(); ++i)
      for (const ir::SymInt& extent : last.shape)
        is_same = is_same && !extent.expr().mentions(node_.graph().symbols()->run_time_symbols()[i].name);
    if (!is_same || !ir::demand_equal(first.shape, last.shape))
      node_.unsupported("loop_vars", "in a loop that data ends " + ir::to_string(first) + " becomes " +
                                         ir::to_string(last));
  }

  NodeContext& node_;
  Compose c_;
  const size_t count_;
  const std::vector<V> first_;
};

/// What was written to states where the condition holds, and not where it does not.
void choose_states(NodeContext& node, V condition, const States& taken) {
  for (auto& [name, other] : node.import_state().states)
    other = chosen(node, condition, taken.at(name), other);
}

}  // namespace

// Blocks: what is computed where the condition holds, and where not.
void convert_cond(NodeContext& node) {
  Compose c(node);
  const V condition = node.tensor("pred");
  if (const std::optional<bool> known = known_truth(node, condition))
    return node.set_outputs(node.call(node.block(*known ? 0 : 1), {}));
  const V is_true = c.reshape(c.cast(condition, DType::kBool), {});
  States& states = node.import_state().states;
  const States before = states;
  const std::vector<V> taken = guarded(node, is_true, node.block(0));
  const States behind = std::exchange(states, before);
  const std::vector<V> other = guarded(node, c.unary("not", is_true), node.block(1));
  choose_states(node, is_true, behind);
  if (taken.size() != other.size()) node.invalid("its branches have different numbers of outputs");
  std::vector<V> results;
  for (size_t i = 0; i < taken.size(); ++i) results.push_back(chosen(node, is_true, taken[i], other[i]));
  node.set_outputs(results);
}

// Blocks: whether it goes on, and what it does.
void convert_while_loop(NodeContext& node) {
  ir::CheckedList<V> values = node.tensors("loop_vars");
  for (int64_t trip = 0;; ++trip) {
    const std::vector<V> goes_on = node.call(node.block(0), values);
    if (goes_on.size() != 1) node.invalid("its condition has " + std::to_string(goes_on.size()) + " outputs");
    const std::optional<bool> known = known_truth(node, goes_on[0]);
    if (!known) return node.set_outputs(RunLoop(node, values).run(goes_on[0]));
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
