#include "compiler/frontend/onnx/converters/loops.h"

#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/ir/loops.h"

namespace tensormill::frontend::onnx {

namespace {

using Values = std::vector<ir::ValueId>;

Binding tensor(ir::ValueId value) { return {Binding::Kind::kTensor, value, {}}; }

class LoopBuilder {
public:
  LoopBuilder(StructureContext& context, const LoopForm& form)
      : context_(context), node_(context.node), form_(form), body_(context.body("body")), c_(context.node) {}

  std::optional<std::vector<Binding>> run() {
    const int64_t number = context_.builder.next_loop();
    const auto carried = static_cast<int64_t>(form_.initial.size());
    Values operands;
    if (form_.max_trips != ir::kAbsent) operands.push_back(form_.max_trips);
    if (form_.condition != ir::kAbsent) operands.push_back(form_.condition);
    append(operands, form_.initial);
    append(operands, form_.scanned);
    const Values begun = node_.add_many(std::string(ir::kLoopBegin), operands,
                                        {{"loop", number},
                                         {"carried", carried},
                                         {"max_trips", int64_t{form_.max_trips != ir::kAbsent}},
                                         {"condition", int64_t{form_.condition != ir::kAbsent}}});
    const std::optional<Values> results = body_of(begun);
    if (!results) return std::nullopt;
    const size_t first = form_.has_condition ? 1 : 0;
    if (results->size() < first + form_.initial.size())
      node_.invalid("the body has " + std::to_string(results->size()) + " outputs");
    const ir::ValueId condition = form_.has_condition ? condition_of((*results)[0]) : ir::kAbsent;
    if (form_.max_trips == ir::kAbsent && form_.scanned.empty() && form_.condition == ir::kAbsent &&
        condition == ir::kAbsent)
      node_.unsupported("body", "neither M nor a condition ends the loop");
    const bool is_counted = !form_.is_exact || condition != ir::kAbsent || form_.condition != ir::kAbsent;
    check(*results, first);
    const int64_t trips = results->size() > first + form_.initial.size() ? bound(first) : 0;
    operands = {begun[0]};
    if (condition != ir::kAbsent) operands.push_back(condition);
    operands.insert(operands.end(), results->begin() + static_cast<std::ptrdiff_t>(first), results->end());
    Values made = node_.add_many(std::string(ir::kLoopEnd), operands,
                                 {{"loop", number},
                                  {"carried", carried},
                                  {"condition", int64_t{condition != ir::kAbsent}},
                                  {"trips", trips},
                                  {"counted", int64_t{is_counted}}});
    made.pop_back();
    std::vector<Binding> bindings;
    for (const ir::ValueId value : made) bindings.push_back(tensor(value));
    return bindings;
  }

private:
  static void append(Values& all, const Values& more) { all.insert(all.end(), more.begin(), more.end()); }

  std::optional<Values> body_of(const Values& begun) {
    std::vector<Binding> arguments;
    for (size_t i = form_.has_condition ? 0 : 1; i < begun.size(); ++i) arguments.push_back(tensor(begun[i]));
    if (form_.has_condition) {
      // An iteration runs where the condition holds alone.
      Tensor yes(DType::kBool, {});
      yes.set_element_int(0, 1);
      arguments.insert(arguments.begin() + 1, context_.builder.constant(std::move(yes)));
    }
    const std::optional<std::vector<Binding>> results =
        context_.builder.run_body(body_, context_.scope, arguments);
    if (!results) return std::nullopt;
    Values values;
    for (size_t i = 0; i < results->size(); ++i) {
      const Binding& result = (*results)[i];
      if (result.kind != Binding::Kind::kTensor || result.tensor == ir::kAbsent)
        node_.unsupported("body", "its output " + name_of(i) + " is no tensor");
      values.push_back(result.tensor);
    }
    return values;
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

  void check(const Values& results, size_t first) const {
    for (size_t i = first; i < results.size(); ++i) {
      const DataShape shape = node_.data_shape(results[i]);
      if (!shape.is_known || !shape.extents.empty())
        node_.unsupported("body", "the shape of its output " + name_of(i) + " depends on data");
      const size_t carried = i - first;
      if (carried >= form_.initial.size()) continue;
      const ir::ValueType &before = node_.type(form_.initial[carried]), &after = node_.type(results[i]);
      if (!(before == after))
        node_.unsupported("body", "its output " + name_of(i) + " is " + ir::to_string(after) +
                                      ", handed on as " + ir::to_string(before) +
                                      ": that is implemented for known numbers of iterations alone");
    }
  }

  /// How many parts there is room for; `first`: the body's outputs in front of those handed on.
  int64_t bound(size_t first) const {
    constexpr int64_t kMostTrips = int64_t{1} << 31;
    if (!form_.most_trips || *form_.most_trips > kMostTrips)
      node_.unsupported("M",
                        "the number of iterations has no bound while the model is compiled, and output " +
                            name_of(first + form_.initial.size()) + " of the body has a part of each");
    return std::max<int64_t>(*form_.most_trips, 0);
  }

  StructureContext& context_;
  NodeContext& node_;
  const LoopForm& form_;
  const GraphProto& body_;
  Compose c_;
};

}  // namespace

std::optional<std::vector<Binding>> convert_as_loop(StructureContext& context, const LoopForm& form) {
  return LoopBuilder(context, form).run();
}

}  // namespace tensormill::frontend::onnx
