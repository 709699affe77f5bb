#include "compiler/frontend/onnx/converters/control/loops.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/body_symbols.h"
#include "compiler/frontend/onnx/converters/control/carried.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/ir/loops.h"

namespace tensormill::frontend::onnx {

namespace {

using Values = std::vector<ir::ValueId>;

class LoopBuilder {
public:
  LoopBuilder(StructureContext& context, const LoopForm& form)
      : context_(context),
        node_(context.node),
        form_(form),
        body_(context.body("body")),
        first_(form.has_condition ? 1 : 0),
        c_(context.node),
        appends_(!form.most_trips && body_.outputs.size() > first_ + form.initial.size() &&
                 context.node.binds_symbols()),
        carried_(context, form.initial, form.most_trips, binds()) {}

  std::optional<std::vector<Binding>> run() {
    // Each time that a value does not fit its form it gets a wider one.
    for (size_t attempts = 0; attempts < kMostForms * (form_.initial.size() + 1); ++attempts) {
      const Values begun = begin();
      std::optional<Ended> ended;
      const BodySymbols own(node_);
      {
        const GraphBuilder::InLoop inside(context_.builder, form_.binds_symbols);
        std::optional<std::vector<Binding>> results = body_of(begun);
        if (!results) return std::nullopt;
        leave_body(own, *results);
        if (const std::optional<Values> next = next_of(*results, own)) {
          ended = end(begun, *results, *next);
        } else {
          context_.builder.leave_dead_nodes();
          own.drop_guards();
        }
      }
      if (ended) return behind(*std::move(ended));
    }
    node_.unsupported("body", "what it hands on is of another form in each iteration");
  }

private:
  static constexpr size_t kMostForms = 4;

  /// Whether iterations bind the extents of what they are handed.
  bool binds() const { return form_.binds_symbols && node_.binds_symbols(); }

  /// Parts of iterations have the same extents. What is handed on has those that it began with, where that
  /// can be told.
  void leave_body(const BodySymbols& own, std::vector<Binding>& results) {
    if (!form_.binds_symbols) return;
    for (size_t i = first_; i < results.size(); ++i) {
      const size_t carried = i - first_;
      const bool is_carried = carried < form_.initial.size();
      const bool is_tensor = results[i].kind == Binding::Kind::kTensor && results[i].tensor != ir::kAbsent;
      if (!is_tensor && is_carried) continue;
      if (!is_tensor) node_.unsupported("body", "its output " + name_of(i) + " is no tensor");
      const bool has_initial = is_carried && form_.initial[carried].kind == Binding::Kind::kTensor &&
                               form_.initial[carried].tensor != ir::kAbsent;
      if (has_initial)
        results[i].tensor = own.with_equal_extents_of(results[i].tensor, form_.initial[carried].tensor);
      if (!(has_initial && binds()) && own.are_in(node_.type(results[i].tensor).shape))
        node_.unsupported("body", "its output " + name_of(i) + " has other extents in each iteration");
    }
  }

  Values begin() {
    number_ = context_.builder.next_loop();
    Values operands;
    const ir::ValueId condition = first_condition();
    if (form_.max_trips != ir::kAbsent) operands.push_back(form_.max_trips);
    if (condition != ir::kAbsent) operands.push_back(condition);
    Values initial = carried_.initial();
    if (appends_) initial.push_back(c_.ints({0}, {1}));
    count_ = initial.size();
    append(operands, initial);
    for (const ir::ValueId x : form_.scanned) operands.push_back(filled_behind(node_, x, "zero"));
    ir::Attrs attrs{{"loop", number_},
                    {"carried", static_cast<int64_t>(count_)},
                    {"max_trips", int64_t{form_.max_trips != ir::kAbsent}},
                    {"condition", int64_t{condition != ir::kAbsent}}};
    if (std::vector<int64_t> spare = carried_.spare(); !spare.empty()) attrs.set("spare", std::move(spare));
    return node_.add_many(std::string(ir::kLoopBegin), operands, std::move(attrs));
  }

  /// In a branch that is not taken no iteration runs: it may be one that does not end.
  ir::ValueId first_condition() {
    const ir::ValueId guard = context_.builder.guard();
    if (guard == ir::kAbsent || form_.condition == ir::kAbsent)
      return guard == ir::kAbsent ? form_.condition : guard;
    return c_.binary("and", guard, form_.condition);
  }

  std::optional<Values> next_of(const std::vector<Binding>& results, const BodySymbols& own) {
    if (results.size() < first_ + form_.initial.size())
      node_.invalid("the body has " + std::to_string(results.size()) + " outputs");
    const auto from = results.begin() + static_cast<std::ptrdiff_t>(first_);
    std::vector<std::string> names;
    for (size_t i = 0; i < form_.initial.size(); ++i) names.push_back(name_of(first_ + i));
    return carried_.next({from, from + static_cast<std::ptrdiff_t>(form_.initial.size())}, names, own);
  }

  /// The loop's end, before it is a node.
  struct Ended {
    Values operands;
    ir::Attrs attrs;
    std::vector<Binding> stacks;  ///< of parts, whose places in the list their tensors have
    bool is_exact = false;
    std::vector<ir::ValueType> appended = {};  ///< types of parts that are in growing buffers
    int64_t first_buffer = 0;
  };

  Ended end(const Values& begun, const std::vector<Binding>& results, const Values& next) {
    const ir::ValueId condition = form_.has_condition ? condition_of(tensor_of(results, 0)) : ir::kAbsent;
    if (form_.max_trips == ir::kAbsent && form_.scanned.empty() && form_.condition == ir::kAbsent &&
        condition == ir::kAbsent)
      node_.unsupported("body", "neither M nor a condition ends the loop");
    const bool is_exact = form_.is_exact && condition == ir::kAbsent && form_.condition == ir::kAbsent;
    Values parts;
    std::vector<Binding> stacks;
    const auto add_part = [&](ir::ValueId part) {
      parts.push_back(part);
      return static_cast<ir::ValueId>(parts.size() - 1);
    };
    for (size_t i = first_ + form_.initial.size(); i < results.size(); ++i) {
      const Part part = part_of(results, i);
      stacks.push_back(stack(add_part(part.value)));
      stacks.back().uneven = part.uneven;
      if (!part.uneven.empty()) stacks.back().extents = add_part(part.extents);
    }
    Ended ended;
    Values operands{begun[0]};
    if (condition != ir::kAbsent) operands.push_back(condition);
    append(operands, next);
    if (appends_) operands.push_back(append_parts(begun[count_], std::exchange(parts, {}), ended));
    append(operands, parts);
    ir::Attrs attrs{{"loop", number_},
                    {"carried", static_cast<int64_t>(count_)},
                    {"condition", int64_t{condition != ir::kAbsent}},
                    {"trips", parts.empty() ? ir::SymInt(0) : bound()},
                    {"counted", int64_t{!is_exact && !form_.keeps_parts}}};
    ended.operands = std::move(operands);
    ended.attrs = std::move(attrs);
    ended.stacks = std::move(stacks);
    ended.is_exact = is_exact;
    return ended;
  }

  /// The parts of an iteration, in buffers that grow: how many rows there are then.
  ir::ValueId append_parts(ir::ValueId rows, const Values& parts, Ended& ended) {
    ended.first_buffer = context_.builder.next_buffers(static_cast<int64_t>(parts.size()));
    for (const ir::ValueId part : parts) ended.appended.push_back(node_.type(part));
    Values operands{rows};
    append(operands, parts);
    return node_.add("append_growing", operands, {{"buffer", ended.first_buffer}});
  }

  /// What they are behind the loop, which has made `rows` of them.
  Values appended_parts(ir::ValueId rows, const Ended& ended) {
    Values wholes;
    const ir::SymInt trips = node_.symbolic_ints(rows, "the number of iterations", 0)[0];
    for (const ir::ValueType& type : ended.appended) {
      ir::SymShape shape = type.shape;
      shape.insert(shape.begin(), trips);
      const int64_t buffer = ended.first_buffer + static_cast<int64_t>(wholes.size());
      wholes.push_back(
          node_.add("take_growing", {rows}, {{"buffer", buffer}, {"result", shape}, {"dtype", type.dtype}}));
    }
    return wholes;
  }

  std::vector<Binding> behind(Ended ended) {
    const Values made = node_.add_many(std::string(ir::kLoopEnd), ended.operands, std::move(ended.attrs));
    const auto end = made.begin() + static_cast<std::ptrdiff_t>(count_);
    const Values final(made.begin(), appends_ ? end - 1 : end);
    std::vector<Binding> bindings = carried_.results(final, made.back(), ended.is_exact);
    const Values wholes = appends_ ? appended_parts(end[-1], ended) : Values(end, made.end());
    const auto stacked = wholes.begin();
    for (Binding& all : ended.stacks) {
      all.tensor = stacked[static_cast<std::ptrdiff_t>(all.tensor)];
      if (!all.uneven.empty()) all.extents = stacked[static_cast<std::ptrdiff_t>(all.extents)];
      const bool is_even = !form_.parts_are_elements;
      bindings.push_back(!is_even             ? all
                         : all.uneven.empty() ? tensor(all.tensor)
                                              : tensor(joined_stack(context_, all, 0, true)));
    }
    return bindings;
  }

  static void append(Values& all, const Values& more) { all.insert(all.end(), more.begin(), more.end()); }

  std::optional<std::vector<Binding>> body_of(const Values& begun) {
    std::vector<Binding> arguments;
    if (form_.has_condition) {
      // An iteration runs where the condition holds alone.
      Tensor yes(DType::kBool, {});
      yes.set_element_int(0, 1);
      arguments = {tensor(begun[0]), context_.builder.constant(std::move(yes))};
    }
    const auto rows = begun.begin() + 1 + static_cast<std::ptrdiff_t>(count_);
    for (Binding& value : carried_.arguments({begun.begin() + 1, appends_ ? rows - 1 : rows}, begun[0]))
      arguments.push_back(std::move(value));
    for (size_t i = 0; i < form_.scanned.size(); ++i)
      arguments.push_back(tensor(row_of(form_.scanned[i], rows[static_cast<std::ptrdiff_t>(i)])));
    const GraphBuilder::Guarded everywhere(context_.builder, ir::kAbsent);
    return form_.body ? form_.body(arguments) : context_.builder.run_body(body_, context_.scope, arguments);
  }

  /// A row of `whole`, as long as data says that all are.
  ir::ValueId row_of(ir::ValueId whole, ir::ValueId row) {
    for (const DataExtent& extent : node_.data_shape(whole).extents) {
      if (extent.axis > 0) row = take_first(node_, row, extent.count, static_cast<int64_t>(extent.axis) - 1);
    }
    return row;
  }

  ir::ValueId tensor_of(const std::vector<Binding>& results, size_t i) {
    if (results[i].kind != Binding::Kind::kTensor || results[i].tensor == ir::kAbsent)
      node_.unsupported("body", "its output " + name_of(i) + " is no tensor");
    return results[i].tensor;
  }

  /// What has a place in a stack of all iterations'; where data decides about its extents, they have one too.
  struct Part {
    ir::ValueId value = ir::kAbsent, extents = ir::kAbsent;
    std::vector<size_t> uneven = {};
  };

  Part part_of(const std::vector<Binding>& results, size_t i) {
    const std::string name = "its output " + name_of(i);
    const ir::ValueId part = tensor_of(results, i);
    const ElementForm form = form_of_element(context_, part, name);
    if (form.uneven.empty()) return {part};
    if (form_.keeps_parts) node_.unsupported("body", "the shape of " + name + " depends on data");
    return {filled_behind(node_, part, "zero"), c_.squeeze(extents_row(context_, part), 0), form.uneven};
  }

  std::string name_of(size_t output) const { return "\"" + body_.outputs[output].name + "\""; }

  /// Nothing where the condition always holds.
  ir::ValueId condition_of(ir::ValueId value) {
    const ir::Value& given = node_.graph().value(value);
    if (given.type.dtype != DType::kBool || num_elements(given.type.shape) != 1)
      node_.invalid("the condition of the body is " + ir::to_string(given.type));
    if (given.known && given.known->element_as_int(0) != 0) return ir::kAbsent;
    return c_.reshape(value, {1});
  }

  /// How many parts there are at most.
  ir::SymInt bound() const {
    if (!form_.most_trips)
      node_.unsupported("M",
                        "the number of iterations has no bound while the model is compiled, and output " +
                            name_of(first_ + form_.initial.size()) + " of the body has a part of each");
    return max(*form_.most_trips, 0);
  }

  StructureContext& context_;
  NodeContext& node_;
  const LoopForm& form_;
  const GraphProto& body_;
  const size_t first_;  ///< the body's outputs in front of those handed on
  Compose c_;
  const bool appends_;  ///< to growing buffers: nothing bounds the iterations' number
  CarriedValues carried_;
  int64_t number_ = 0;
  size_t count_ = 0;  ///< of the tensors handed on
};

}  // namespace

std::optional<std::vector<Binding>> convert_as_loop(StructureContext& context, const LoopForm& form) {
  return LoopBuilder(context, form).run();
}

std::optional<std::vector<Binding>> attempt_loop(
    StructureContext& context,
    const std::function<std::optional<std::vector<Binding>>(bool binds_symbols)>& convert) {
  // Each level of loops inside each other doubles how often the innermost body is converted.
  constexpr size_t kMostBinding = 3;
  const bool may_bind = context.node.binds_symbols() && context.node.loops_around() < kMostBinding;
  for (const bool binds_symbols : {false, true}) {
    if (binds_symbols && !may_bind) break;
    if (auto results = context.builder.attempt([&] { return convert(binds_symbols); })) return results;
  }
  return std::nullopt;
}

}  // namespace tensormill::frontend::onnx
