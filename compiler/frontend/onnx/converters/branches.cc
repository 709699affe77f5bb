// If: a known branch is chosen; where data decides, both are computed and their elements chosen.
#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/stacks.h"
#include "compiler/frontend/onnx/converters/structure.h"
#include "compiler/frontend/onnx/converters/subgraphs.h"
#include "compiler/frontend/onnx/converters/text.h"
#include "compiler/frontend/onnx/counted.h"

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
    if (is_sequence(yes) && is_sequence(no)) return of_sequences(yes, no, name);
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
    if (is_text(node_, like)) refuse(name);
    const auto value = [&](V own) {
      return own == ir::kAbsent ? c_.expand(c_.number(like, 0), c_.shape(like)) : own;
    };
    return maybe(of_tensors(value(one), value(other), name),
                 c_.where(condition_, presence(context_, yes), presence(context_, no)));
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
    const std::optional<ir::ValueType> one = element_type(context_, yes, what),
                                       other = element_type(context_, no, what);
    if (one && other && !(*one == *other)) refuse(name);
    const auto elements = [&](const Binding& own, bool is_empty, const Binding& other_one) {
      if (!is_empty) return stacked_elements(context_, own, what);
      // As the first elements of the other's, of which there are none.
      const V rows = whole(stacked_elements(context_, other_one, what));
      return take_first(node_, rows, c_.ints({0}, {1}), 0);
    };
    return stack(of_tensors(elements(yes, !one, no), elements(no, !other, yes), name));
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
    const ir::ValueType one = node_.type(yes), other = node_.type(no);
    const DataShape shape = node_.data_shape(yes), other_shape = node_.data_shape(no);
    const size_t rank = one.shape.size();
    if (one.dtype != other.dtype || other.shape.size() != rank) refuse(name);
    const V condition = rank == 0 ? c_.reshape(condition_, {}) : c_.reshape(condition_, Shape(rank, 1));
    const bool is_known = shape.is_known && other_shape.is_known;
    if (one == other && (!is_known || are_alike(shape, other_shape))) return c_.where(condition, yes, no);
    if (!is_known || is_text(node_, yes)) refuse(name);
    V a = whole(yes), b = whole(no);
    std::vector<std::pair<int64_t, V>> counts;
    for (size_t d = 0; d < rank; ++d) {
      const auto axis = static_cast<int64_t>(d);
      const int64_t more = other.shape[d] - one.shape[d];
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
Bindings branch(StructureContext& context, const char* name, V condition) {
  Compose c(context.node);
  const V around = context.builder.guard();
  const V guard = around == ir::kAbsent ? condition : c.binary("and", around, condition);
  const GraphBuilder::Guarded guarded(context.builder, guard);
  return context.builder.run_body(context.body(name), context.scope, {});
}

/// Both branches, and a choice of elements: for a condition that depends on the data.
Bindings convert_both(StructureContext& context) {
  Compose c(context.node);
  const V condition = c.reshape(context.node.input(0), {1});
  const Bindings yes = branch(context, "then_branch", condition);
  const Bindings no = branch(context, "else_branch", c.unary("not", condition));
  if (!yes || !no) return std::nullopt;
  if (yes->size() != no->size())
    context.node.invalid("the branches have " + std::to_string(yes->size()) + " and " +
                         std::to_string(no->size()) + " outputs");
  Choice choice(context, condition);
  std::vector<Binding> results;
  for (size_t i = 0; i < yes->size(); ++i)
    results.push_back(
        choice.of((*yes)[i], (*no)[i], "\"" + context.body("then_branch").outputs[i].name + "\""));
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
  return context.builder.run_body(context.body(condition ? "then_branch" : "else_branch"), context.scope, {});
}

}  // namespace tensormill::frontend::onnx
