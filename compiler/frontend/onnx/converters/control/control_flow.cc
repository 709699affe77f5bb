// Loop: few known iterations are unrolled, others are a loop.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/appends.h"
#include "compiler/frontend/onnx/converters/control/body_rows.h"
#include "compiler/frontend/onnx/converters/control/loops.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

namespace {

using Bindings = std::optional<std::vector<Binding>>;

void check_trips(const StructureContext& context) {
  if (!context.has_input(0)) return;
  const ir::ValueType& type = context.node.type(context.node.input(0));
  if (type.dtype != DType::kInt64 || num_elements(type.shape) != 1)
    context.node.invalid("M is " + ir::to_string(type) + ", expected one i64");
}

/// The operands that iterations hand on.
size_t carried_of(const StructureContext& context) {
  return context.inputs.size() - std::min<size_t>(2, context.inputs.size());
}

/// Whether the number of iterations is one number, and the first condition is known.
bool knows_trips(const StructureContext& context) {
  const auto is_number = [&](size_t input) {
    return context.node.is_known(input) &&
           !context.node.known_symbolic(context.node.input(input), "an operand").is_symbolic();
  };
  return (!context.has_input(0) || is_number(0)) && (!context.has_input(1) || is_number(1));
}

int64_t known_trips(const StructureContext& context) {
  return context.has_input(0) ? context.node.known_scalar(0, "M").element_as_int(0) : INT64_MAX;
}

/// `most`: UnsupportedForm where there are more iterations.
Bindings unrolled_loop(StructureContext& context, int64_t most) {
  const GraphProto& body = context.body("body");
  const size_t count = carried_of(context);
  const int64_t trips = known_trips(context);
  bool goes_on = !context.has_input(1) || known_bool(context, context.input(1), "cond");
  std::vector<Binding> carried(context.inputs.end() - static_cast<std::ptrdiff_t>(count),
                               context.inputs.end());
  std::vector<std::vector<ir::ValueId>> scans(body.outputs.size() - 1 - count);
  for (int64_t trip = 0; goes_on && trip < trips; ++trip) {
    if (trip >= most) context.node.unsupported("body", "more iterations than are unrolled");
    check_size(context);
    Tensor number(DType::kInt64, {}), yes(DType::kBool, {});
    number.set_element_int(0, trip);
    yes.set_element_int(0, 1);
    std::vector<Binding> arguments{context.builder.constant(std::move(number)),
                                   context.builder.constant(std::move(yes))};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const Bindings results = context.builder.run_body(body, context.scope, arguments);
    if (!results) return std::nullopt;
    goes_on = known_bool(context, (*results)[0], "cond");
    carried.assign(results->begin() + 1, results->begin() + 1 + static_cast<std::ptrdiff_t>(count));
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back((*results)[1 + count + i].tensor);
  }
  for (size_t i = 0; i < scans.size(); ++i)
    carried.push_back(stacked(context, scans[i], 0, body.outputs[1 + count + i]));
  return carried;
}

void bound_trips(StructureContext& context, LoopForm& form) {
  Compose c(context.node);
  if (context.node.is_known(0)) {
    form.most_trips = context.node.known_symbolic(context.node.input(0), "M").elements().at(0);
    form.is_exact = true;
  } else {
    try {
      const BoundedInt most = bounded_int(context.node, 0, "M");
      form.most_trips = most.most;
      form.is_exact = most.is_known();
    } catch (const ValueRequired&) {
      form.most_trips.reset();
    }
  }
  form.max_trips = c.reshape(c.cast(context.node.input(0), DType::kInt64), {1});
}

/// `binds_symbols`: as LoopForm's.
Bindings looped_loop(StructureContext& context, bool binds_symbols) {
  Compose c(context.node);
  LoopForm form;
  form.binds_symbols = binds_symbols;
  form.has_condition = true;
  if (context.has_input(0)) bound_trips(context, form);
  // So many that none is meant: exporters write the largest integer.
  constexpr int64_t kMostTrips = int64_t{1} << 31;
  if (form.most_trips && form.most_trips->hint() > kMostTrips) form.most_trips.reset();
  form.is_exact = form.is_exact && form.most_trips;
  const bool always =
      !context.has_input(1) || (context.node.is_known(1) && known_bool(context, context.input(1), "cond"));
  if (!always) form.condition = c.reshape(context.node.input(1), {1});
  for (size_t i = 2; i < context.inputs.size(); ++i) form.initial.push_back(context.input(i));
  GraphProto body = context.body("body");
  if (binds_symbols && form.is_exact) {
    BodyRows rows = find_rows(context, body, *form.most_trips);
    body = std::move(rows.body);
    form.scanned = std::move(rows.wholes);
    form.body = [&](const std::vector<Binding>& arguments) {
      return context.builder.run_body(body, context.scope, arguments);
    };
  }
  if (const std::optional<AppendedValues> appended = find_appended(context, body, form.initial)) {
    if (Bindings results =
            context.builder.attempt([&] { return convert_appending_loop(context, form, *appended); }))
      return results;
  }
  return convert_as_loop(context, form);
}

/// What cannot be a loop could be unrolled if the inputs were known that say how often it goes round: throws
/// ValueRequired with the reason, or returns nothing for a body that is noted to be the reason.
Bindings loop_or_requirement(StructureContext& context) {
  std::string reason = "its body needs values that change from iteration to iteration";
  try {
    if (Bindings results = looped_loop(context, false)) return results;
  } catch (const UnsupportedForm& form) {
    reason = form.reason;
  }
  try {
    static_cast<void>(known_trips(context));
    if (context.has_input(1)) static_cast<void>(known_bool(context, context.input(1), "cond"));
  } catch (const ValueRequired& required) {
    throw ValueRequired{required.what + " (of a loop that has to be unrolled: " + reason + ")",
                        required.inputs};
  }
  return std::nullopt;
}

}  // namespace

// Where both ways are open, what is short is unrolled: it folds and fuses.
Bindings convert_loop(StructureContext& context) {
  const GraphProto& body = context.body("body");
  if (body.inputs.size() < carried_of(context) + 2)
    context.node.invalid("the body has " + std::to_string(body.inputs.size()) + " inputs, expected " +
                         std::to_string(carried_of(context) + 2));
  if (body.outputs.size() < carried_of(context) + 1)
    context.node.invalid("the body has " + std::to_string(body.outputs.size()) + " outputs");
  check_trips(context);
  const bool is_known = knows_trips(context);
  const auto unrolled = [&](int64_t most) {
    return context.builder.attempt([&] { return unrolled_loop(context, most); });
  };
  if (is_known) {
    if (Bindings results = unrolled(unrolled_trips(body))) return results;
  }
  const auto looped = [&](bool binds_symbols) { return looped_loop(context, binds_symbols); };
  if (Bindings results = attempt_loop(context, looped)) return results;
  if (is_known) {
    if (Bindings results = unrolled(INT64_MAX)) return results;
    return looped_loop(context, false);
  }
  return loop_or_requirement(context);
}

}  // namespace tensormill::frontend::onnx
