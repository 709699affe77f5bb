// If: a known branch is chosen; else both are in the graph, and a run computes the one that its condition
// says.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/branch_loops.h"
#include "compiler/frontend/onnx/converters/control/branch_symbols.h"
#include "compiler/frontend/onnx/converters/control/empty_branches.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "compiler/ir/branches.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Bindings = std::optional<std::vector<Binding>>;

/// Of two results of branches, the one that a condition (bool [1]) says.
class Choice {
public:
  /// `symbols`: of the branches, or null where they have none.
  Choice(StructureContext& context, V condition, BranchSymbols* symbols)
      : context_(context), node_(context.node), c_(context.node), condition_(condition), symbols_(symbols) {}

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
    return chosen(presence(context_, yes), presence(context_, no));
  }

  /// What is computed for the other one alone does not run. What is small and needs no other symbols is
  /// chosen element by element: more is known of that.
  V chosen(V yes, V no, const std::optional<ir::SymShape>& shape = std::nullopt) {
    const ir::ValueType& type = node_.type(yes);
    const bool is_small = type.shape.is_constant() && num_elements(type.shape).hint() <= kFew;
    if (symbols_ == nullptr && (is_small || type.dtype == kString)) {
      const size_t rank = type.shape.size();
      return c_.where(rank == 0 ? c_.reshape(condition_, {}) : c_.reshape(condition_, ir::SymShape(rank, 1)),
                      yes, no);
    }
    ir::Attrs attrs;
    if (symbols_ != nullptr) {
      attrs.set("shape", shape.value_or(type.shape));
      attrs.set(ir::kThenBranch, symbols_->number(true));
      attrs.set(ir::kElseBranch, symbols_->number(false));
    }
    return node_.add(std::string(ir::kChoose), {condition_, yes, no}, std::move(attrs));
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

  /// The extent around the branches that each has in its own symbols where it is taken; nothing where the two
  /// are others.
  std::optional<ir::SymInt> common(const ir::SymInt& yes, const ir::SymInt& no) {
    if (symbols_ == nullptr)
      return is_proven(ir::Relation::kEqual, yes, no) ? std::optional(yes) : std::nullopt;
    const ir::SymInt one = symbols_->outside(yes, true), other = symbols_->outside(no, false);
    if (same(one, other) || is_proven(ir::Relation::kEqual, symbols_->inside(one, false), no)) return one;
    if (is_proven(ir::Relation::kEqual, yes, symbols_->inside(other, true))) return other;
    return std::nullopt;
  }

  /// x, which has no more along the axis in its branch than `extent` around it, with zeros behind.
  V as_long(V x, const ir::SymInt& extent, int64_t axis, bool when) {
    const ir::SymInt wanted = symbols_ == nullptr ? extent : symbols_->inside(extent, when);
    const ir::SymInt more = wanted - c_.shape(x)[static_cast<size_t>(axis)];
    return is_proven(ir::Relation::kEqual, more, 0) ? x : longer_by(node_, x, more, axis);
  }

  /// Of its elements along the axis, around the branches.
  V count_of(V x, const DataShape& shape, int64_t axis, bool when) {
    if (const DataExtent* data = shape.along(axis)) return data->count;
    const ir::SymInt extent = c_.shape(x)[static_cast<size_t>(axis)];
    return node_.extents({symbols_ == nullptr ? extent : symbols_->outside(extent, when)});
  }

  /// A run has the extents of the chosen one: they are a formula where extents choose, else there is room for
  /// the larger ones, and a count.
  V of_tensors(V yes, V no, const std::string& name) {
    const std::vector<V> both = of_one_width(node_, {yes, no});
    yes = both[0];
    no = both[1];
    const ir::ValueType one = node_.type(yes), other = node_.type(no);
    const DataShape shape = node_.data_shape(yes), other_shape = node_.data_shape(no);
    if (one.dtype != other.dtype || other.shape.size() != one.shape.size()) refuse(name);
    const bool is_known = shape.is_known && other_shape.is_known;
    const bool are_data_dependent = is_known && !are_alike(shape, other_shape);
    ir::SymShape result = one.shape;
    std::vector<std::pair<int64_t, V>> counts;
    V a = yes, b = no;
    for (size_t d = 0; d < result.size(); ++d) {
      const auto axis = static_cast<int64_t>(d);
      const bool is_data_dependent =
          are_data_dependent && (shape.along(axis) != nullptr || other_shape.along(axis) != nullptr);
      const std::optional<ir::SymInt> extent = common(one.shape[d], other.shape[d]);
      if (extent && !is_data_dependent) {
        result[d] = *extent;
        continue;
      }
      if (!is_known) refuse(name);
      ir::SymInt larger = one.shape[d], least = other.shape[d];
      if (symbols_ != nullptr) {
        larger = symbols_->outside(larger, true);
        least = symbols_->outside(least, false);
        if (const auto& condition = symbols_->of_extents(); condition && !is_data_dependent) {
          result[d] = least + (larger - least) * as_number(*condition);
          continue;
        }
      }
      result[d] = max(larger, least);
      const V count = count_of(yes, shape, axis, true), other_count = count_of(no, other_shape, axis, false);
      counts.emplace_back(axis, chosen(count, other_count));
    }
    if (are_data_dependent || !counts.empty()) {
      a = whole(a);
      b = whole(b);
    }
    for (const auto& [axis, count] : counts) {
      a = as_long(a, result[static_cast<size_t>(axis)], axis, true);
      b = as_long(b, result[static_cast<size_t>(axis)], axis, false);
    }
    V both_in_one = chosen(a, b, result);
    for (const auto& [axis, count] : counts) both_in_one = take_first(node_, both_in_one, count, axis);
    return both_in_one;
  }

  StructureContext& context_;
  NodeContext& node_;
  Compose c_;
  V condition_;
  BranchSymbols* symbols_;
  static constexpr int64_t kFew = 4;
};

/// What a branch gives; of what does not happen nothing fails and nothing goes on without end.
struct Branch {
  Bindings results;
  std::optional<std::string> failure;  ///< why a run that takes it fails
};

Branch branch(StructureContext& context, bool when, V condition, BranchSymbols* symbols) {
  Compose c(context.node);
  const V around = context.builder.guard();
  const V guard = around == ir::kAbsent ? condition : c.binary("and", around, condition);
  const GraphBuilder::Guarded guarded(context.builder, guard);
  const GraphProto& body = context.body(when ? "then_branch" : "else_branch");
  try {
    if (symbols != nullptr) return {context.builder.run_body(body, symbols->entered(when), {}), std::nullopt};
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
    // With symbols it is not said that the branch takes no numbers at all.
    const bool is_of_extents = context.builder.graph().symbols() != nullptr;
    if (is_of_extents) context.builder.note_switch();
    *value = value_if(context.node, *value,
                      {is_taken, "the branch that is taken fails: " + failure, {}, is_of_extents});
    return results;
  }
  return results;
}

/// Both branches, and a choice of their results: for a condition that a run decides, or its extents.
Bindings convert_both(StructureContext& context, BranchSymbols* symbols, V condition) {
  Compose c(context.node);
  const V otherwise = c.unary("not", condition);
  const Branch yes = branch(context, true, condition, symbols);
  const Branch no = branch(context, false, otherwise, symbols);
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
  Choice choice(context, condition, symbols);
  std::vector<Binding> results;
  for (size_t i = 0; i < yes.results->size(); ++i)
    results.push_back(choice.of((*yes.results)[i], (*no.results)[i],
                                "\"" + context.body("then_branch").outputs[i].name + "\""));
  return results;
}

}  // namespace

namespace {

/// With a symbol for each of those around, in either branch.
Bindings convert_with_symbols(StructureContext& context) {
  const V condition = Compose(context.node).reshape(context.node.input(0), {1});
  const std::optional<ExtentCondition> of_extents = extent_condition(context.builder.graph(), condition);
  if (Bindings results = of_extents ? branch_of_some(context, *of_extents) : std::nullopt) return results;
  // Of symbols that the run has bound before a branch has none of its own otherwise.
  const bool has_bound = !context.builder.graph().symbols()->run_time_symbols().empty();
  if (Bindings results = has_bound ? branch_loops(context, condition) : std::nullopt) return results;
  BranchSymbols symbols(context, condition, of_extents);
  // What cannot be is no branch.
  for (const bool when : {true, false}) {
    if (symbols.assume(when)) continue;
    return context.builder.run_body(context.body(when ? "else_branch" : "then_branch"), context.scope, {});
  }
  return convert_both(context, &symbols, condition);
}

/// The same, or, where a branch has to bind symbols, as loops.
Bindings convert_with_own_extents(StructureContext& context) {
  if (!context.node.binds_symbols()) return convert_with_symbols(context);
  if (Bindings results = context.builder.attempt([&] { return convert_with_symbols(context); }))
    return results;
  const V condition = Compose(context.node).reshape(context.node.input(0), {1});
  if (Bindings results = branch_loops(context, condition)) return results;
  return convert_with_symbols(context);
}

/// Whether extents decide, and their symbols do not tell how.
bool depends_on_extents(StructureContext& context) {
  if (!context.node.is_known(0)) return false;
  const ir::KnownValue& known = context.node.graph().value(context.node.input(0)).known;
  return !known || known.is_symbolic();
}

}  // namespace

Bindings convert_if(StructureContext& context) {
  const bool has_symbols = context.builder.graph().symbols() != nullptr;
  if (has_symbols && depends_on_extents(context)) {
    // Branches of which nothing can be chosen, as of two ranks: the plan is of one of them.
    Bindings results = context.builder.attempt([&] { return convert_with_symbols(context); });
    if (results) return results;
  }
  bool condition = false;
  try {
    condition = known_bool(context, context.input(0), "cond");
  } catch (const ValueRequired&) {
    if (has_symbols) return convert_with_own_extents(context);
    return convert_both(context, nullptr, Compose(context.node).reshape(context.node.input(0), {1}));
  }
  const char* const branch = condition ? "then_branch" : "else_branch";
  return context.builder.run_body(context.body(branch), context.scope, {});
}

}  // namespace tensormill::frontend::onnx
