#include "compiler/frontend/onnx/converters/control/branch_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compiler/build/compose.h"
#include "compiler/build/extents/run_numbers.h"
#include "compiler/frontend/onnx/converters/control/branch_symbols.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/tensors/dynamic_numbers.h"
#include "compiler/ir/loops.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;
using Values = std::vector<V>;

/// A branch on its way into a loop. What it reads of what is around it are rows of scanned values.
class BranchLoop {
public:
  /// `is_taken`: bool [1].
  BranchLoop(StructureContext& context, const GraphProto& body, V is_taken)
      : context_(context), node_(context.node), c_(context.node), body_(body) {
    for (const std::string& name : captured_names(body, context.scope)) {
      const Binding& binding = *context.scope.find(name);
      captured_.emplace(name, binding);
      for (const V value : {binding.tensor, binding.present, binding.extents}) note(value);
      for (const V element : binding.elements) note(element);
    }
    begin(is_taken);
  }

  std::optional<std::vector<Binding>> convert() {
    const GraphBuilder::InLoop inside(context_.builder, true);
    const GraphBuilder::Guarded everywhere(context_.builder, ir::kAbsent);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const V number = row_element(node_, begun_[1], static_cast<int64_t>(i));
      const std::optional<ir::SymInt> high = i < extents_ ? std::optional(numbers_[i]) : std::nullopt;
      const std::optional<int64_t> low = high ? std::optional<int64_t>(0) : std::nullopt;
      own_.push_back(build::bind_run_numbers(node_, number, low, high)[0]);
    }
    Scope scope(&context_.scope);
    for (const auto& [name, binding] : captured_) scope.bind(name, entered(binding));
    return context_.builder.run_body(body_, scope, {});
  }

  /// What x is behind the branch where it is taken, in buffer `buffer`; its extents, i64 [rank].
  V kept(V x, int64_t buffer) { return node_.add("set_growing", {x, begun_[0]}, {{"buffer", buffer}}); }

  /// The values behind the branch, zeros where it is not taken.
  Values end(const Values& parts) {
    Values operands{begun_[0]};
    operands.insert(operands.end(), parts.begin(), parts.end());
    Values made = node_.add_many(std::string(ir::kLoopEnd), operands,
                                 {{"loop", number_},
                                  {"carried", int64_t{0}},
                                  {"condition", int64_t{0}},
                                  {"trips", ir::SymInt(1)},
                                  {"counted", int64_t{1}}});
    made.pop_back();
    for (V& value : made) value = c_.squeeze(value, 0);
    return made;
  }

private:
  const ir::KnownValue& known_of(V value) const { return node_.graph().value(value).known; }
  bool is_listed(V value) const {
    return known_of(value).is_symbolic() && is_integer(node_.type(value).dtype);
  }

  void note(V value) {
    if (value == ir::kAbsent || !seen_.insert(value).second) return;
    for (const ir::SymInt& extent : node_.type(value).shape) {
      if (!extent.is_constant()) extents_noted_.push_back(extent);
    }
    const ir::Value& own = node_.graph().value(value);
    if (is_listed(value)) {
      for (const ir::SymInt& each : own.known.elements()) {
        if (!each.is_constant()) others_noted_.push_back(each);
      }
    } else if (!own.constant && (!own.known || own.known.is_symbolic())) {
      scanned_.push_back(value);
    }
  }

  void begin(V is_taken) {
    const auto add = [&](const ir::SymInt& number) {
      if (!find(number)) numbers_.push_back(number);
    };
    for (const ir::SymInt& extent : extents_noted_) add(extent);
    extents_ = numbers_.size();
    for (const ir::SymInt& other : others_noted_) add(other);
    Values operands{c_.reshape(c_.cast(is_taken, DType::kInt64), {1})};
    if (!numbers_.empty()) operands.push_back(c_.unsqueeze(node_.extents(numbers_), 0));
    for (const V value : scanned_) operands.push_back(c_.unsqueeze(value, 0));
    number_ = context_.builder.next_loop();
    begun_ = node_.add_many(
        std::string(ir::kLoopBegin), operands,
        {{"loop", number_}, {"carried", int64_t{0}}, {"max_trips", int64_t{1}}, {"condition", int64_t{0}}});
  }

  std::optional<size_t> find(const ir::SymInt& number) const {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (same(numbers_[i], number)) return i;
    }
    return std::nullopt;
  }

  ir::SymInt inside(const ir::SymInt& number) const {
    return number.is_constant() ? number : own_.at(*find(number));
  }

  Binding entered(Binding binding) {
    for (V* value : {&binding.tensor, &binding.present, &binding.extents}) *value = entered(*value);
    for (V& element : binding.elements) element = entered(element);
    return binding;
  }

  V entered(V value) {
    if (value == ir::kAbsent) return value;
    if (is_listed(value)) {
      ir::SymShape elements = known_of(value).elements();
      for (ir::SymInt& each : elements) each = inside(each);
      const ir::ValueType type = node_.type(value);
      return c_.reshape(c_.cast(node_.extents(elements), type.dtype), type.shape);
    }
    const auto scanned = std::find(scanned_.begin(), scanned_.end(), value);
    if (scanned == scanned_.end()) return value;
    const auto first = begun_.end() - static_cast<std::ptrdiff_t>(scanned_.size());
    V row = first[scanned - scanned_.begin()];
    const ir::SymShape shape = node_.type(value).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!shape[d].is_constant()) row = c_.slice(row, static_cast<int64_t>(d), 0, inside(shape[d]));
    }
    return row;
  }

  StructureContext& context_;
  NodeContext& node_;
  Compose c_;
  const GraphProto& body_;
  std::map<std::string, Binding> captured_;
  std::set<V> seen_;
  Values scanned_;
  ir::SymShape extents_noted_, others_noted_;
  /// In the symbols around: the extents, which are `extents_` in number, then other integers; own_: in its
  /// own.
  ir::SymShape numbers_, own_;
  size_t extents_ = 0;
  int64_t number_ = 0;
  Values begun_;
};

/// Both branches' results behind them.
class Joined {
public:
  Joined(StructureContext& context, V condition)
      : context_(context), node_(context.node), c_(context.node), condition_(condition) {}

  std::vector<Binding> of(BranchLoop& yes, const Values& one, BranchLoop& no, const Values& other) {
    const auto count = static_cast<int64_t>(one.size());
    const int64_t first = context_.builder.next_buffers(count);
    Values parts, other_parts;
    for (int64_t i = 0; i < count; ++i) {
      const V a = one[static_cast<size_t>(i)], b = other[static_cast<size_t>(i)];
      check(a, b);
      const bool is_even = is_of_one_shape(a, b);
      parts.push_back(is_even ? a : yes.kept(a, first + i));
      other_parts.push_back(is_even ? b : no.kept(b, first + i));
    }
    const Values made = yes.end(parts), other_made = no.end(other_parts);
    std::vector<Binding> results;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      results.push_back(tensor(is_of_one_shape(one[at], other[at])
                                   ? chosen(made[at], other_made[at])
                                   : taken(c_.add(made[at], other_made[at]), first + i, one[at], other[at])));
    }
    return results;
  }

private:
  void check(V a, V b) const {
    const ir::ValueType &one = node_.type(a), &other = node_.type(b);
    const bool is_text = one.dtype == kString && !is_of_one_shape(a, b);
    if (one.dtype != other.dtype || one.shape.size() != other.shape.size() || is_text)
      node_.unsupported("then_branch", "an output of it is " + ir::to_string(one) + ", that of else_branch " +
                                           ir::to_string(other));
  }

  bool is_of_one_shape(V a, V b) const {
    const ir::SymShape &one = node_.type(a).shape, &other = node_.type(b).shape;
    return one.is_constant() && other.is_constant() && one.hints() == other.hints();
  }

  V chosen(V a, V b) {
    const size_t rank = node_.type(a).shape.size();
    return c_.where(c_.reshape(condition_, ir::SymShape(rank, 1)), a, b);
  }

  /// Of extents of the run (i64 [rank]) in a buffer. What is as long as something else in both branches is so
  /// behind them.
  V taken(V extents, int64_t buffer, V a, V b) {
    ir::SymShape shape = node_.type(a).shape;
    const ir::SymShape other = node_.type(b).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is_constant() && same(shape[d], other[d])) continue;
      const auto alike = std::find_if(bound_.begin(), bound_.end(), [&](const BoundExtent& each) {
        return same(each.one, shape[d]) && same(each.other, other[d]);
      });
      if (alike == bound_.end()) {
        const V number = row_element(node_, extents, static_cast<int64_t>(d));
        bound_.push_back({shape[d], other[d], node_.symbolic_ints(number, "an extent", 0).at(0)});
        shape[d] = bound_.back().behind;
      } else {
        shape[d] = alike->behind;
      }
    }
    return node_.add("take_growing", {extents},
                     {{"buffer", buffer}, {"result", shape}, {"dtype", node_.type(a).dtype}});
  }

  struct BoundExtent {
    ir::SymInt one, other, behind;
  };
  StructureContext& context_;
  NodeContext& node_;
  Compose c_;
  const V condition_;
  std::vector<BoundExtent> bound_;
};

std::optional<Values> tensors_of(const std::optional<std::vector<Binding>>& bindings) {
  Values values;
  if (!bindings) return std::nullopt;
  for (const Binding& binding : *bindings) {
    if (binding.kind != Binding::Kind::kTensor || binding.tensor == ir::kAbsent) return std::nullopt;
    values.push_back(binding.tensor);
  }
  return values;
}

}  // namespace

std::optional<std::vector<Binding>> branch_loops(StructureContext& context, V condition) {
  if (!context.node.binds_symbols()) return std::nullopt;
  Compose c(context.node);
  return context.builder.attempt([&]() -> std::optional<std::vector<Binding>> {
    try {
      BranchLoop yes(context, context.body("then_branch"), condition);
      const std::optional<Values> one = tensors_of(yes.convert());
      BranchLoop no(context, context.body("else_branch"), c.unary("not", condition));
      const std::optional<Values> other = one ? tensors_of(no.convert()) : std::nullopt;
      if (!other || one->size() != other->size()) {
        context.builder.leave_dead_nodes();
        return std::nullopt;
      }
      return Joined(context, condition).of(yes, *one, no, *other);
    } catch (const Error& error) {
      // A branch for other shapes than the model's own.
      if (error.code() != ErrorCode::kInvalidModel) throw;
      context.builder.leave_dead_nodes();
      return std::nullopt;
    }
  });
}

}  // namespace tensormill::frontend::onnx
