// Scan: few known steps are unrolled, others are a loop.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/loops.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"

namespace tensormill::frontend::onnx {

namespace {

using Bindings = std::optional<std::vector<Binding>>;

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
    return c_.where(c_.binary("less", c_.dims({step}, {}), length_), value, other);
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
  const ir::SymInt steps =
      inputs.empty() ? ir::SymInt(0) : c.shape(inputs[0])[static_cast<size_t>(axis_of(0))];
  if (!steps.is_constant()) context.node.unsupported("body", "a free number of steps is not unrolled");
  for (int64_t step = 0; step < steps; ++step) {
    check_size(context);
    std::vector<Binding> arguments = states;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t axis = axis_of(i);
      if (!demand(ir::Relation::kEqual, c.shape(inputs[i])[static_cast<size_t>(axis)], steps))
        context.node.invalid("scan inputs have other lengths");
      const bool is_reversed = form.input_reversed[i] != 0;
      const int64_t at = is_reversed ? steps - 1 - step : ir::SymInt(step);
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

/// x backwards along its first axis: the first `count` (i64 [1], kAbsent for all) of what is there.
ir::ValueId backwards(NodeContext& node, ir::ValueId x, ir::ValueId count) {
  Compose c(node);
  const ir::SymInt extent = c.shape(x)[0];
  if (count == ir::kAbsent) return c.slice(x, 0, extent - 1, extent, -1);
  const ir::ValueId places = c.sub(c.minus(count, 1), c.iota(extent));
  const ir::ValueId first = c.dims({0}, {1}), last = c.dims({extent - 1}, {1});
  return c.gather(x, c.binary("min", c.binary("max", places, first), last), 0);
}

/// The count of an axis where data decides it, or kAbsent.
ir::ValueId data_count(NodeContext& node, ir::ValueId x, int64_t axis) {
  const DataShape shape = node.data_shape(x);
  const DataExtent* extent = shape.along(axis);
  return extent == nullptr ? ir::kAbsent : extent->count;
}

/// As a loop, whose values are scanned and stacked along their first axis, in order. `length`: how many steps
/// are run (i64 [1]) of those that there are, or kAbsent for all; outputs of other steps are 0.
Bindings looped_scan(StructureContext& context, const ScanForm& form, std::vector<Binding> states,
                     const std::vector<ir::ValueId>& inputs, bool binds_symbols,
                     ir::ValueId length = ir::kAbsent) {
  NodeContext& node = context.node;
  Compose c(node);
  LoopForm loop;
  loop.binds_symbols = binds_symbols;
  loop.initial = std::move(states);
  loop.is_exact = length == ir::kAbsent;
  loop.keeps_parts = length != ir::kAbsent;
  loop.max_trips = length;
  if (inputs.empty()) node.unsupported("num_scan_inputs", "no operand is scanned");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t axis = node.normalize_axis(form.input_axes[i], shown_rank(node, inputs[i]));
    ir::ValueId x = with_axis_at(node, inputs[i], axis, 0);
    const ir::ValueId count = length == ir::kAbsent ? data_count(node, x, 0) : length;
    if (count != ir::kAbsent && loop.max_trips == ir::kAbsent) {
      loop.max_trips = count;
      loop.is_exact = false;
    }
    if (form.input_reversed[i] != 0) x = backwards(node, filled_along(node, x, 0, "zero"), count);
    loop.scanned.push_back(x);
    if (!demand(ir::Relation::kEqual, c.shape(x)[0], c.shape(loop.scanned[0])[0]))
      node.invalid("scan inputs have other lengths");
  }
  loop.most_trips = c.shape(loop.scanned[0])[0];
  Bindings results = convert_as_loop(context, loop);
  for (size_t i = form.states; results && i < results->size(); ++i) {
    const size_t part = i - form.states;
    ir::ValueId& x = (*results)[i].tensor;
    if (part < form.output_reversed.size() && form.output_reversed[part] != 0) {
      const ir::ValueId count = data_count(node, x, 0);
      x = backwards(node, filled_along(node, x, 0, "zero"), count);
      if (count != ir::kAbsent) x = take_first(node, x, count, 0);
    }
    const int64_t axis = part < form.output_axes.size() ? form.output_axes[part] : 0;
    x = with_axis_at(node, x, 0, node.normalize_axis(axis, shown_rank(node, x)));
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
  const ir::SymInt steps = inputs.empty()
                               ? ir::SymInt(0)
                               : Compose(context.node)
                                     .shape(inputs[0])[static_cast<size_t>(context.node.normalize_axis(
                                         form.input_axes[0], shown_rank(context.node, inputs[0])))];
  const auto unrolled = [&] { return scan(context, form, states, inputs); };
  const bool is_short = steps.is_constant() && steps.hint() <= unrolled_trips(context.body("body"));
  if (is_short) return unrolled();
  const auto looped = [&](bool binds_symbols) {
    return looped_scan(context, form, states, inputs, binds_symbols);
  };
  if (Bindings results = attempt_loop(context, looped)) return results;
  return unrolled();
}

namespace {

/// Opset 8: all operands have a batch axis in front; operand 0 is the optional lengths (i64 [batch]).
struct BatchedScan {
  ScanForm form;
  ir::SymInt batch = 0;
  ir::ValueId lengths = ir::kAbsent;
};

/// One row of all operands behind the lengths.
struct BatchRow {
  std::vector<Binding> states;
  std::vector<ir::ValueId> inputs;
  BatchRow(const ScanForm& form, const std::vector<ir::ValueId>& parts) {
    for (size_t i = 0; i < form.states; ++i) states.push_back(tensor(parts[i]));
    inputs.assign(parts.begin() + static_cast<std::ptrdiff_t>(form.states), parts.end());
  }
};

Bindings unrolled_batch(StructureContext& context, const BatchedScan& scanned) {
  Compose c(context.node);
  if (!scanned.batch.is_constant()) context.node.unsupported("body", "a free batch is not unrolled");
  std::vector<std::vector<ir::ValueId>> rows;
  for (int64_t row = 0; row < scanned.batch.hint(); ++row) {
    std::vector<ir::ValueId> parts;
    for (size_t i = 1; i < context.inputs.size(); ++i)
      parts.push_back(c.squeeze(c.slice(context.node.input(i), 0, row, 1), 0));
    const ir::ValueId length =
        scanned.lengths == ir::kAbsent ? ir::kAbsent : c.reshape(c.slice(scanned.lengths, 0, row, 1), {});
    BatchRow own(scanned.form, parts);
    const Bindings results = scan(context, scanned.form, std::move(own.states), own.inputs, length);
    if (!results) return std::nullopt;
    rows.resize(results->size());
    for (size_t i = 0; i < results->size(); ++i) rows[i].push_back((*results)[i].tensor);
  }
  std::vector<Binding> outputs;
  for (const std::vector<ir::ValueId>& parts : rows) outputs.push_back(stacked(context, parts, 0, {}));
  return outputs;
}

/// A loop over the batch, in which there is one over the steps of its row.
Bindings looped_batch(StructureContext& context, const BatchedScan& scanned, bool binds_symbols) {
  Compose c(context.node);
  LoopForm loop;
  loop.binds_symbols = binds_symbols;
  loop.is_exact = true;
  loop.most_trips = scanned.batch;
  for (size_t i = 1; i < context.inputs.size(); ++i) loop.scanned.push_back(context.node.input(i));
  const bool has_lengths = scanned.lengths != ir::kAbsent;
  if (has_lengths) loop.scanned.push_back(scanned.lengths);
  loop.body = [&](const std::vector<Binding>& arguments) {
    std::vector<ir::ValueId> parts;
    for (const Binding& argument : arguments) parts.push_back(argument.tensor);
    const ir::ValueId length = has_lengths ? c.reshape(parts.back(), {1}) : ir::kAbsent;
    if (has_lengths) parts.pop_back();
    BatchRow own(scanned.form, parts);
    return looped_scan(context, scanned.form, std::move(own.states), own.inputs, binds_symbols, length);
  };
  return convert_as_loop(context, loop);
}

}  // namespace

Bindings convert_scan_batched(StructureContext& context) {
  BatchedScan scanned{scan_form(context, context.inputs.size() - std::min<size_t>(1, context.inputs.size()))};
  Compose c(context.node);
  if (context.inputs.size() > 1) {
    const ir::SymShape first = c.shape(context.node.input(1));
    if (first.empty()) context.node.invalid("input 1 has no batch");
    scanned.batch = first[0];
  }
  if (context.has_input(0)) scanned.lengths = c.cast(context.node.input(0), DType::kInt64);
  if (context.has_input(0) && c.shape(scanned.lengths) != ir::SymShape{scanned.batch})
    context.node.invalid("sequence_lens has shape " + to_string(c.shape(scanned.lengths)) +
                         " for a batch of " + to_string(scanned.batch));
  const size_t first = 1 + scanned.form.states;
  ir::SymInt steps = scanned.batch;
  if (scanned.form.inputs != 0) {
    const ir::SymShape shape = c.shape(context.node.input(first));
    const int64_t axis =
        context.node.normalize_axis(scanned.form.input_axes[0], static_cast<int64_t>(shape.size()) - 1);
    steps = context.node.product(steps, shape[static_cast<size_t>(axis) + 1]);
  }
  const auto unrolled = [&] { return unrolled_batch(context, scanned); };
  if (steps.is_constant() && steps.hint() <= unrolled_trips(context.body("body"))) return unrolled();
  const auto looped = [&](bool binds_symbols) { return looped_batch(context, scanned, binds_symbols); };
  if (Bindings results = attempt_loop(context, looped)) return results;
  return unrolled();
}

}  // namespace tensormill::frontend::onnx
