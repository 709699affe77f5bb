// If: a known branch is chosen; where data decides, both are computed and their elements chosen.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/stacks.h"
#include "compiler/frontend/onnx/converters/structure.h"
#include "compiler/frontend/onnx/converters/subgraphs.h"
#include "compiler/frontend/onnx/converters/text.h"
#include "compiler/frontend/onnx/counted.h"
#include "compiler/frontend/onnx/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Bindings = std::optional<std::vector<Binding>>;

/// Of two results of branches, the one that a condition (bool [1]) says.
class Choice {
public:
  Choice(StructureContext& context, V condition)
      : context_(context), node_(context.node), c_(context.node), condition_(condition) {}

  Binding of(const Binding& yes, const Binding& no, const std::string& name) {
    if (yes.kind == Binding::Kind::kNone && no.kind == Binding::Kind::kNone) return yes;
    if (is_sequence(yes) && is_sequence(no)) {
      Binding chosen = of_sequences(yes, no, name);
      const bool is_optional_one = yes.present != ir::kAbsent || no.present != ir::kAbsent;
      if (is_optional_one) chosen.present = chosen_presence(yes, no);
      return chosen;
    }
    if (is_sequence(yes) && no.kind == Binding::Kind::kNone) return of_sequence_or_none(yes, yes, no, name);
    if (is_sequence(no) && yes.kind == Binding::Kind::kNone) return of_sequence_or_none(no, yes, no, name);
    if (is_optional(yes) || is_optional(no)) return of_optionals(yes, no, name);
    const bool are_tensors = yes.kind == Binding::Kind::kTensor && no.kind == Binding::Kind::kTensor;
    if (!are_tensors || yes.tensor == ir::kAbsent || no.tensor == ir::kAbsent) refuse(name);
    return tensor(of_tensors(yes.tensor, no.tensor, name));
  }

private:
  [[noreturn]] void refuse(const std::string& name) const {
    static_cast<void>(node_.known(0, "cond"));
    node_.unsupported("then_branch", "its output " + name + " is of another type than that of else_branch");
  }

  static bool is_optional(const Binding& binding) {
    return binding.kind == Binding::Kind::kNone || binding.kind == Binding::Kind::kMaybe;
  }

  Binding of_optionals(const Binding& yes, const Binding& no, const std::string& name) {
    const V one = held(yes), other = held(no);
    if ((one == ir::kAbsent && yes.kind != Binding::Kind::kNone) ||
        (other == ir::kAbsent && no.kind != Binding::Kind::kNone))
      refuse(name);
    const V like = one == ir::kAbsent ? other : one;
    const auto value = [&](V own) {
      return own == ir::kAbsent ? c_.filled(c_.dtype(like), c_.shape(like), 0) : own;
    };
    return maybe(of_tensors(value(one), value(other), name), chosen_presence(yes, no));
  }

  V chosen_presence(const Binding& yes, const Binding& no) {
    return c_.where(condition_, presence(context_, yes), presence(context_, no));
  }

  /// What the one that is a sequence may hold.
  Binding of_sequence_or_none(const Binding& sequence, const Binding& yes, const Binding& no,
                              const std::string& name) {
    const std::string what = "the sequence " + name;
    if (!element_form(context_, sequence, what)) refuse(name);
    Binding chosen = stacked_elements(context_, sequence, what);
    chosen.present = chosen_presence(yes, no);
    return chosen;
  }

  Binding of_sequences(const Binding& yes, const Binding& no, const std::string& name) {
    if (yes.kind == Binding::Kind::kSequence && no.kind == Binding::Kind::kSequence &&
        yes.elements.size() == no.elements.size()) {
      Binding chosen = yes;
      for (size_t i = 0; i < chosen.elements.size(); ++i)
        chosen.elements[i] = of_tensors(yes.elements[i], no.elements[i], name);
      return chosen;
    }
    const std::string what = "the sequence " + name;
    const std::optional<ElementForm> one = element_form(context_, yes, what),
                                     other = element_form(context_, no, what);
    const ElementForm form = one && other ? common_form(context_, *one, *other, what) : one ? *one : *other;
    const auto elements = [&](const Binding& own, bool is_empty, const Binding& other_one) {
      if (!is_empty) return in_form(context_, own, form);
      // As the first elements of the other's, of which there are none.
      Binding none = in_form(context_, other_one, form);
      none.tensor = take_first(node_, whole(none.tensor), c_.ints({0}, {1}), 0);
      if (none.extents != ir::kAbsent)
        none.extents = take_first(node_, whole(none.extents), c_.ints({0}, {1}), 0);
      return none;
    };
    const Binding a = elements(yes, !one, no), b = elements(no, !other, yes);
    Binding chosen = a;
    chosen.tensor = of_tensors(a.tensor, b.tensor, name);
    if (a.extents != ir::kAbsent) chosen.extents = of_tensors(a.extents, b.extents, name);
    return chosen;
  }

  /// Whether in each run the extents of both are the same.
  bool are_alike(const DataShape& a, const DataShape& b) const {
    return std::equal(a.extents.begin(), a.extents.end(), b.extents.begin(), b.extents.end(),
                      [&](const DataExtent& x, const DataExtent& y) {
                        return x.axis == y.axis && node_.same_count(x.count, y.count);
                      });
  }

  V whole(V x) { return filled_behind(node_, x, "zero"); }

  /// The larger of the extents, of which a run takes what the chosen one has.
  V of_tensors(V yes, V no, const std::string& name) {
    const std::vector<V> both = of_one_width(node_, {yes, no});
    yes = both[0];
    no = both[1];
    const ir::ValueType one = node_.type(yes), other = node_.type(no);
    const DataShape shape = node_.data_shape(yes), other_shape = node_.data_shape(no);
    const size_t rank = one.shape.size();
    if (one.dtype != other.dtype || other.shape.size() != rank) refuse(name);
    const V condition =
        rank == 0 ? c_.reshape(condition_, {}) : c_.reshape(condition_, ir::SymShape(rank, 1));
    const bool is_known = shape.is_known && other_shape.is_known;
    if (one == other && (!is_known || are_alike(shape, other_shape))) return c_.where(condition, yes, no);
    if (!is_known) refuse(name);
    V a = whole(yes), b = whole(no);
    std::vector<std::pair<int64_t, V>> counts;
    for (size_t d = 0; d < rank; ++d) {
      const auto axis = static_cast<int64_t>(d);
      const ir::SymInt more = other.shape[d] - one.shape[d];
      if (more == 0 && shape.along(axis) == nullptr && other_shape.along(axis) == nullptr) continue;
      counts.emplace_back(
          axis, c_.where(condition_, *count_along(node_, yes, axis), *count_along(node_, no, axis)));
      if (more > 0) a = longer_by(node_, a, more, axis);
      if (more < 0) b = longer_by(node_, b, -more, axis);
    }
    V chosen = c_.where(condition, a, b);
    for (const auto& [axis, count] : counts) chosen = take_first(node_, chosen, count, axis);
    return chosen;
  }

  StructureContext& context_;
  NodeContext& node_;
  Compose c_;
  V condition_;
};

/// What a branch gives; of what does not happen nothing fails and nothing goes on without end.
struct Branch {
  Bindings results;
  std::optional<std::string> failure;  ///< why a run that takes it fails
};

Branch branch(StructureContext& context, const char* name, V condition) {
  Compose c(context.node);
  const V around = context.builder.guard();
  const V guard = around == ir::kAbsent ? condition : c.binary("and", around, condition);
  const GraphBuilder::Guarded guarded(context.builder, guard);
  const GraphProto& body = context.body(name);
  try {
    return {context.builder.run_body(body, context.scope, {}), std::nullopt};
  } catch (const BranchFails& fails) {
    context.builder.leave_dead_nodes();
    return {std::nullopt, fails.reason};
  } catch (const Error& error) {
    // Exporters keep branches for other shapes than those that the model is compiled for.
    if (error.code() != ErrorCode::kInvalidModel) throw;
    context.builder.leave_dead_nodes();
    return {std::nullopt, error.message()};
  }
}

/// The results of the only branch that can be taken; a run fails that takes the other one.
Bindings only_branch(StructureContext& context, std::vector<Binding> results, V is_taken,
                     const std::string& failure) {
  for (Binding& result : results) {
    V* const value = !result.elements.empty() ? result.elements.data() : &result.tensor;
    if (*value == ir::kAbsent) continue;
    *value = value_if(context.node, *value, {is_taken, "the branch that is taken fails: " + failure});
    return results;
  }
  return results;
}

/// Both branches, and a choice of elements: for a condition that depends on the data.
Bindings convert_both(StructureContext& context) {
  Compose c(context.node);
  const V condition = c.reshape(context.node.input(0), {1}), otherwise = c.unary("not", condition);
  const Branch yes = branch(context, "then_branch", condition);
  const Branch no = branch(context, "else_branch", otherwise);
  if (yes.failure && no.failure) {
    if (context.builder.guard() != ir::kAbsent) throw BranchFails{*yes.failure};
    context.node.invalid("both branches fail: " + *yes.failure + ", and " + *no.failure);
  }
  if ((!yes.failure && !yes.results) || (!no.failure && !no.results)) return std::nullopt;
  if (yes.failure) return only_branch(context, *no.results, otherwise, *yes.failure);
  if (no.failure) return only_branch(context, *yes.results, condition, *no.failure);
  if (yes.results->size() != no.results->size())
    context.node.invalid("the branches have " + std::to_string(yes.results->size()) + " and " +
                         std::to_string(no.results->size()) + " outputs");
  Choice choice(context, condition);
  std::vector<Binding> results;
  for (size_t i = 0; i < yes.results->size(); ++i)
    results.push_back(choice.of((*yes.results)[i], (*no.results)[i],
                                "\"" + context.body("then_branch").outputs[i].name + "\""));
  return results;
}

}  // namespace

Bindings convert_if(StructureContext& context) {
  bool condition = false;
  try {
    condition = known_bool(context, context.input(0), "cond");
  } catch (const ValueRequired&) {
    return convert_both(context);
  }
  const char* const branch = condition ? "then_branch" : "else_branch";
  return context.builder.run_body(context.body(branch), context.scope, {});
}

}  // namespace tensormill::frontend::onnx
