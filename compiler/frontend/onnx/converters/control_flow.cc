// If, Loop and Scan: a known branch is chosen, few known iterations are unrolled, others are a loop.
#include <algorithm>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/loops.h"
#include "compiler/frontend/onnx/converters/structure.h"
#include "compiler/frontend/onnx/converters/text.h"
#include "compiler/frontend/onnx/counted.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using Bindings = std::optional<std::vector<Binding>>;

/// Every iteration adds values, so that a loop without end is refused.
constexpr size_t kMaxValues = size_t{1} << 18;
/// What is longer, in nodes of the model, becomes a loop where it can.
constexpr int64_t kUnrolledNodes = 2048;

int64_t nodes_of(const GraphProto& graph) {
  int64_t count = 0;
  for (const NodeProto& node : graph.nodes) {
    ++count;
    for (const AttributeProto& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) count += nodes_of(*inner);
    }
  }
  return count;
}

/// How many iterations of the body are unrolled where it could be a loop as well.
int64_t unrolled_trips(const GraphProto& body) {
  return kUnrolledNodes / std::max<int64_t>(nodes_of(body), 1);
}

Binding tensor(ir::ValueId value) { return {Binding::Kind::kTensor, value, {}}; }

void check_size(const StructureContext& context) {
  if (context.builder.graph().values().size() > kMaxValues)
    context.node.unsupported(
        "body", "more than " + std::to_string(kMaxValues) + " unrolled values are not implemented");
}

bool known_bool(StructureContext& context, const Binding& binding, const char* what) {
  if (binding.kind != Binding::Kind::kTensor) context.node.invalid(std::string(what) + " is no tensor");
  const ir::ValueType& type = context.node.type(binding.tensor);
  if (type.dtype != DType::kBool || num_elements(type.shape) != 1)
    context.node.invalid(std::string(what) + " is " + ir::to_string(type) + ", expected one bool");
  const Tensor& value = context.node.known_value(binding.tensor, what);
  return value.element_as_int(0) != 0;
}

/// Iterations' outputs along a new axis; `declared` gives the type when there was no iteration.
Binding stacked(StructureContext& context, const std::vector<ir::ValueId>& parts, int64_t axis,
                const ValueInfoProto& declared) {
  Compose c(context.node);
  if (!parts.empty()) {
    const int64_t at = context.node.normalize_axis(axis, shown_rank(context.node, parts[0]) + 1);
    std::vector<ir::ValueId> rows;
    for (ir::ValueId part : of_one_width(context.node, parts)) rows.push_back(c.unsqueeze(part, at));
    return tensor(c.concat(std::move(rows), at));
  }
  const std::optional<DType> dtype = dtype_of(declared.elem_type);
  Shape shape{0};
  for (const Dim& dim : declared.shape) {
    const int64_t* extent = std::get_if<int64_t>(&dim);
    if (extent == nullptr)
      context.node.unsupported("body", "no iteration, and output \"" + declared.name + "\" has a free dim");
    shape.push_back(*extent);
  }
  if (!dtype || !declared.has_shape)
    context.node.unsupported("body", "no iteration, and output \"" + declared.name + "\" has no type");
  if (*dtype == kString) shape.push_back(1);
  return context.builder.constant(Tensor::zeros(*dtype, shape));
}

/// Both branches, and a choice of elements: for a condition that depends on the data.
Bindings convert_both(StructureContext& context) {
  const Bindings yes = context.builder.run_body(context.body("then_branch"), context.scope, {});
  const Bindings no = context.builder.run_body(context.body("else_branch"), context.scope, {});
  if (!yes || !no) return std::nullopt;
  Compose c(context.node);
  std::vector<Binding> results;
  const bool fits =
      yes->size() == no->size() &&
      std::equal(yes->begin(), yes->end(), no->begin(), [&](const Binding& a, const Binding& b) {
        return a.kind == Binding::Kind::kTensor && b.kind == Binding::Kind::kTensor &&
               context.node.type(a.tensor) == context.node.type(b.tensor);
      });
  if (!fits) {
    static_cast<void>(context.node.known(0, "cond"));
    context.node.unsupported("then_branch", "branches of other types are not implemented");
  }
  const ir::ValueId condition = c.reshape(context.node.input(0), {});
  for (size_t i = 0; i < yes->size(); ++i)
    results.push_back(tensor(c.where(condition, (*yes)[i].tensor, (*no)[i].tensor)));
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

namespace {

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

/// Whether the number of iterations and the first condition are known.
bool knows_trips(const StructureContext& context) {
  return (!context.has_input(0) || context.node.is_known(0)) &&
         (!context.has_input(1) || context.node.is_known(1));
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

/// An operand whose shape a loop keeps.
ir::ValueId fixed_tensor(StructureContext& context, size_t index) {
  if (context.input(index).kind != Binding::Kind::kTensor)
    context.node.unsupported("body", "operand " + std::to_string(index) + " is no tensor");
  context.node.require_fixed_shape(index);
  return context.node.input(index);
}

void bound_trips(StructureContext& context, LoopForm& form) {
  Compose c(context.node);
  if (context.node.is_known(0)) {
    form.most_trips = known_trips(context);
    form.is_exact = true;
  } else {
    try {
      form.most_trips = bounded_int(context.node, 0, "M").most;
    } catch (const ValueRequired&) {
      form.most_trips.reset();
    }
  }
  form.max_trips = c.reshape(c.cast(context.node.input(0), DType::kInt64), {1});
}

Bindings looped_loop(StructureContext& context) {
  Compose c(context.node);
  LoopForm form;
  form.has_condition = true;
  if (context.has_input(0)) bound_trips(context, form);
  const bool always =
      !context.has_input(1) || (context.node.is_known(1) && known_bool(context, context.input(1), "cond"));
  if (!always) form.condition = c.reshape(context.node.input(1), {1});
  for (size_t i = 2; i < context.inputs.size(); ++i) form.initial.push_back(fixed_tensor(context, i));
  return convert_as_loop(context, form);
}

/// What cannot be a loop could be unrolled if the inputs were known that say how often it goes round: throws
/// ValueRequired with the reason, or returns nothing for a body that is noted to be the reason.
Bindings loop_or_requirement(StructureContext& context) {
  std::string reason = "its body needs values that change from iteration to iteration";
  try {
    if (Bindings results = looped_loop(context)) return results;
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

// Where both ways are open, what is short is unrolled: it folds and fuses. A sample's extents stand for any:
// what they decide about is a loop there.
Bindings convert_loop(StructureContext& context) {
  const GraphProto& body = context.body("body");
  if (body.outputs.size() < carried_of(context) + 1)
    context.node.invalid("the body has " + std::to_string(body.outputs.size()) + " outputs");
  check_trips(context);
  const bool is_known = knows_trips(context);
  const bool is_free = context.node.is_sample() && context.has_input(0) &&
                       !context.node.graph().value(context.node.input(0)).constant;
  const auto unrolled = [&](int64_t most) {
    return context.builder.attempt([&] { return unrolled_loop(context, most); });
  };
  if (is_known && !is_free) {
    if (Bindings results = unrolled(unrolled_trips(body))) return results;
  }
  if (Bindings results = context.builder.attempt([&] { return looped_loop(context); })) return results;
  if (is_known) {
    if (Bindings results = unrolled(INT64_MAX)) return results;
    return looped_loop(context);
  }
  return loop_or_requirement(context);
}

namespace {

/// The attributes of Scan: one entry an operand or result.
struct ScanForm {
  size_t states, inputs;
  std::vector<int64_t> input_axes, input_reversed, output_axes, output_reversed;
};

/// Steps of a sequence of which the first `length` (i64 []) are run: what they leave behind stays.
class Lengths {
public:
  /// kAbsent: all steps are run.
  Lengths(Compose& c, ir::ValueId length) : c_(c), length_(length) {}

  bool are_given() const { return length_ != ir::kAbsent; }

  /// The element of the step counted from the sequence's end.
  ir::ValueId from_end(ir::ValueId x, int64_t axis, int64_t step) {
    const ir::ValueId at = c_.minus(length_, static_cast<double>(step + 1));
    return c_.gather(x, c_.binary("max", at, c_.number(at, 0)), axis);
  }

  /// The step's value, or the other where the step is not run.
  ir::ValueId chosen(ir::ValueId value, ir::ValueId other, int64_t step) {
    return c_.where(c_.binary("less", c_.ints({step}, {}), length_), value, other);
  }

  void choose(Binding& value, const Binding& other, int64_t step) {
    if (are_given() && value.kind == Binding::Kind::kTensor && other.kind == Binding::Kind::kTensor)
      value.tensor = chosen(value.tensor, other.tensor, step);
  }

private:
  Compose& c_;
  ir::ValueId length_;
};

/// `length`: how many steps are run (i64 []), or kAbsent for all; outputs of other steps are 0.
Bindings scan(StructureContext& context, const ScanForm& form, std::vector<Binding> states,
              const std::vector<ir::ValueId>& inputs, ir::ValueId length = ir::kAbsent) {
  Compose c(context.node);
  Lengths lengths(c, length);
  const GraphProto& body = context.body("body");
  if (body.outputs.size() < form.states)
    context.node.invalid("the body has " + std::to_string(body.outputs.size()) + " outputs");
  std::vector<std::vector<ir::ValueId>> scans(body.outputs.size() - form.states);
  const auto axis_of = [&](size_t i) {
    return context.node.normalize_axis(form.input_axes[i], shown_rank(context.node, inputs[i]));
  };
  const int64_t steps = inputs.empty() ? 0 : c.shape(inputs[0])[static_cast<size_t>(axis_of(0))];
  for (int64_t step = 0; step < steps; ++step) {
    check_size(context);
    std::vector<Binding> arguments = states;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t axis = axis_of(i);
      if (c.shape(inputs[i])[static_cast<size_t>(axis)] != steps)
        context.node.invalid("scan inputs have other lengths");
      const bool is_reversed = form.input_reversed[i] != 0;
      const int64_t at = is_reversed ? steps - 1 - step : step;
      arguments.push_back(tensor(is_reversed && lengths.are_given()
                                     ? lengths.from_end(inputs[i], axis, step)
                                     : c.squeeze(c.slice(inputs[i], axis, at, 1), axis)));
    }
    const Bindings results = context.builder.run_body(body, context.scope, arguments);
    if (!results) return std::nullopt;
    std::vector<Binding> next(results->begin(), results->begin() + static_cast<std::ptrdiff_t>(form.states));
    for (size_t i = 0; i < next.size(); ++i) lengths.choose(next[i], states[i], step);
    states = std::move(next);
    for (size_t i = 0; i < scans.size(); ++i) {
      const ir::ValueId part = (*results)[form.states + i].tensor;
      scans[i].push_back(lengths.are_given() ? lengths.chosen(part, c.number(part, 0), step) : part);
    }
  }
  for (size_t i = 0; i < scans.size(); ++i) {
    if (i < form.output_reversed.size() && form.output_reversed[i] != 0)
      std::reverse(scans[i].begin(), scans[i].end());
    const int64_t axis = i < form.output_axes.size() ? form.output_axes[i] : 0;
    states.push_back(stacked(context, scans[i], axis, body.outputs[form.states + i]));
  }
  return states;
}

ScanForm scan_form(const StructureContext& context, size_t operands) {
  ScanForm form;
  const int64_t count = context.node.required_int("num_scan_inputs");
  if (count < 0 || count > static_cast<int64_t>(operands))
    context.node.invalid("num_scan_inputs is " + std::to_string(count));
  form.inputs = static_cast<size_t>(count);
  form.states = operands - form.inputs;
  const std::vector<int64_t> zeros(form.inputs, 0);
  form.input_axes = context.node.ints_attr("scan_input_axes", zeros);
  form.input_reversed =
      context.node.ints_attr(context.node.opset() < 9 ? "directions" : "scan_input_directions", zeros);
  form.output_axes = context.node.ints_attr("scan_output_axes", {});
  form.output_reversed = context.node.ints_attr("scan_output_directions", {});
  if (form.input_axes.size() != form.inputs || form.input_reversed.size() != form.inputs)
    context.node.invalid("scan_input_axes and scan_input_directions do not fit num_scan_inputs");
  return form;
}

}  // namespace

namespace {

/// As a loop, whose values are scanned and stacked along their first axis, in order.
Bindings looped_scan(StructureContext& context, const ScanForm& form) {
  Compose c(context.node);
  const auto reversed = [&](ir::ValueId x) {
    const int64_t extent = c.shape(x)[0];
    return c.slice(x, 0, extent - 1, extent, -1);
  };
  const auto moved = [&](ir::ValueId x, int64_t from, int64_t to) {
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < context.node.rank(x); ++d) {
      if (d != from) perm.push_back(d);
    }
    perm.insert(perm.begin() + to, from);
    return from == to ? x : c.transpose(x, perm);
  };
  LoopForm loop;
  loop.is_exact = true;
  for (size_t i = 0; i < form.states; ++i) loop.initial.push_back(fixed_tensor(context, i));
  for (size_t i = 0; i < form.inputs; ++i) {
    ir::ValueId x = fixed_tensor(context, form.states + i);
    x = moved(x, context.node.normalize_axis(form.input_axes[i], shown_rank(context.node, x)), 0);
    loop.scanned.push_back(form.input_reversed[i] != 0 ? reversed(x) : x);
    if (c.shape(x)[0] != c.shape(loop.scanned[0])[0]) context.node.invalid("scan inputs have other lengths");
  }
  if (loop.scanned.empty()) context.node.unsupported("num_scan_inputs", "no operand is scanned");
  loop.most_trips = c.shape(loop.scanned[0])[0];
  Bindings results = convert_as_loop(context, loop);
  for (size_t i = form.states; results && i < results->size(); ++i) {
    const size_t part = i - form.states;
    ir::ValueId& x = (*results)[i].tensor;
    if (part < form.output_reversed.size() && form.output_reversed[part] != 0) x = reversed(x);
    const int64_t axis = part < form.output_axes.size() ? form.output_axes[part] : 0;
    x = moved(x, 0, context.node.normalize_axis(axis, shown_rank(context.node, x)));
  }
  return results;
}

}  // namespace

Bindings convert_scan(StructureContext& context) {
  const ScanForm form = scan_form(context, context.inputs.size());
  std::vector<Binding> states(context.inputs.begin(),
                              context.inputs.begin() + static_cast<std::ptrdiff_t>(form.states));
  std::vector<ir::ValueId> inputs;
  for (size_t i = form.states; i < context.inputs.size(); ++i) inputs.push_back(context.node.input(i));
  const int64_t steps = inputs.empty()
                            ? 0
                            : Compose(context.node)
                                  .shape(inputs[0])[static_cast<size_t>(context.node.normalize_axis(
                                      form.input_axes[0], shown_rank(context.node, inputs[0])))];
  const auto unrolled = [&] { return scan(context, form, states, inputs); };
  const bool is_short = steps <= unrolled_trips(context.body("body"));
  if (is_short && !context.node.is_sample()) return unrolled();
  if (Bindings results = context.builder.attempt([&] { return looped_scan(context, form); })) return results;
  return unrolled();
}

// Opset 8: all operands have a batch axis in front; operand 0 is the optional lengths.
Bindings convert_scan_batched(StructureContext& context) {
  const ScanForm form =
      scan_form(context, context.inputs.size() - std::min<size_t>(1, context.inputs.size()));
  Compose c(context.node);
  const int64_t batch = context.inputs.size() > 1 ? c.shape(context.node.input(1)).at(0) : 0;
  const ir::ValueId lengths =
      context.has_input(0) ? c.cast(context.node.input(0), DType::kInt64) : ir::kAbsent;
  if (lengths != ir::kAbsent && c.shape(lengths) != Shape{batch})
    context.node.invalid("sequence_lens has shape " + to_string(c.shape(lengths)) + " for a batch of " +
                         std::to_string(batch));
  std::vector<std::vector<ir::ValueId>> rows;
  for (int64_t row = 0; row < batch; ++row) {
    std::vector<Binding> states;
    std::vector<ir::ValueId> inputs;
    for (size_t i = 1; i < context.inputs.size(); ++i) {
      const ir::ValueId part = c.squeeze(c.slice(context.node.input(i), 0, row, 1), 0);
      if (i <= form.states) {
        states.push_back(tensor(part));
      } else {
        inputs.push_back(part);
      }
    }
    const ir::ValueId length = lengths == ir::kAbsent ? lengths : c.reshape(c.slice(lengths, 0, row, 1), {});
    const Bindings results = scan(context, form, std::move(states), inputs, length);
    if (!results) return std::nullopt;
    rows.resize(results->size());
    for (size_t i = 0; i < results->size(); ++i) rows[i].push_back((*results)[i].tensor);
  }
  std::vector<Binding> outputs;
  for (const std::vector<ir::ValueId>& parts : rows) outputs.push_back(stacked(context, parts, 0, {}));
  return outputs;
}

}  // namespace tensormill::frontend::onnx
