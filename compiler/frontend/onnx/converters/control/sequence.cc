// Sequences and optional values: lists of tensors that exist while the graph is built, stacks where a run
// works out how many there are.
#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/loops.h"
#include "compiler/frontend/onnx/converters/control/ragged.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/control/subgraphs.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_dependent.h"
#include "compiler/frontend/onnx/extents/run_checks.h"

namespace tensormill::frontend::onnx {

namespace {

using Bindings = std::optional<std::vector<Binding>>;

using Elements = std::vector<ir::ValueId>;

Bindings one_tensor(ir::ValueId value) { return std::vector<Binding>{{Binding::Kind::kTensor, value, {}}}; }
Bindings one_sequence(Elements elements) {
  return std::vector<Binding>{{Binding::Kind::kSequence, ir::kAbsent, std::move(elements)}};
}

/// A position counted from the front; `limit` is the largest that is allowed.
std::ptrdiff_t position_of(const StructureContext& context, size_t operand, int64_t size, int64_t limit) {
  int64_t position = context.node.known_scalar(operand, "position").element_as_int(0);
  if (position < 0) position += size;
  if (position < 0 || position > limit)
    context.node.invalid("position " + std::to_string(position) + " of a sequence of " +
                         std::to_string(size));
  return static_cast<std::ptrdiff_t>(position);
}

int64_t size_of(const Elements& elements) { return static_cast<int64_t>(elements.size()); }

/// Elements of a sequence have one type.
void check_type(const StructureContext& context, DType others, size_t operand) {
  const DType own = context.node.type(context.node.input(operand)).dtype;
  if (own != others)
    context.node.invalid("operand " + std::to_string(operand) + " is of " + std::string(dtype_name(own)) +
                         ", in a sequence of " + std::string(dtype_name(others)));
}

/// An empty list has no element: what needs one fails, or is in a branch that no run takes.
void check_not_empty(const StructureContext& context) {
  const Binding& sequence = context.input(0);
  if (sequence.kind != Binding::Kind::kSequence || !sequence.elements.empty()) return;
  const std::string reason = "the sequence is empty";
  if (context.builder.guard() != ir::kAbsent) throw BranchFails{reason};
  context.node.invalid(reason);
}

}  // namespace

Bindings convert_sequence_construct(StructureContext& context) {
  Elements elements;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    elements.push_back(context.node.input(i));
    check_type(context, context.node.type(elements[0]).dtype, i);
  }
  return one_sequence(std::move(elements));
}

Bindings convert_sequence_empty(StructureContext&) { return one_sequence({}); }

namespace {

/// Whether a list has the place that operand `position` means: in a branch that is not taken it may not.
bool has_place(const StructureContext& context, size_t position, int64_t size) {
  if (context.builder.guard() == ir::kAbsent || !context.has_input(position)) return true;
  const int64_t place = context.node.known_scalar(position, "position").element_as_int(0);
  return place >= -size && place < size;
}

/// The elements as a stack where a run works out how many there are or which one operand `position` means;
/// nothing where both are known.
std::optional<Binding> run_time_elements(StructureContext& context, size_t position) {
  const Binding& sequence = context.input(0);
  if (!is_sequence(sequence)) context.node.invalid("operand 0 is no sequence");
  const bool is_known = !context.has_input(position) || context.node.is_known(position);
  if (sequence.kind == Binding::Kind::kSequence &&
      (sequence.elements.empty() || (is_known && has_place(context, position, size_of(sequence.elements)))))
    return std::nullopt;
  try {
    return stacked_elements(context, sequence, "the sequence");
  } catch (const UnsupportedForm&) {
    // Of a list with other elements the place has to be known.
    if (!is_known) static_cast<void>(context.node.known(position, "position"));
    throw;
  }
}

ir::ValueId position_operand(const StructureContext& context, size_t index) {
  return context.has_input(index) ? context.node.input(index) : ir::kAbsent;
}

}  // namespace

Bindings convert_sequence_at(StructureContext& context) {
  check_not_empty(context);
  if (const std::optional<Binding> all = run_time_elements(context, 1))
    return one_tensor(stack_element(context, *all, context.node.input(1)));
  const Elements& elements = context.sequence(0);
  const int64_t size = size_of(elements);
  return one_tensor(elements[static_cast<size_t>(position_of(context, 1, size, size - 1))]);
}

Bindings convert_sequence_insert(StructureContext& context) {
  if (context.input(0).kind == Binding::Kind::kRagged && !context.has_input(2))
    return std::vector{ragged_with(context, context.input(0), context.node.input(1))};
  const std::optional<Binding> all = run_time_elements(context, 2);
  const ir::ValueId element = context.node.input(1);
  if (all) {
    check_type(context, context.node.type(all->tensor).dtype, 1);
    return std::vector{stack_with(context, *all, element, position_operand(context, 2))};
  }
  Elements elements = context.sequence(0);
  if (!elements.empty()) check_type(context, context.node.type(elements[0]).dtype, 1);
  const int64_t size = size_of(elements);
  if (context.has_input(2) && !context.node.is_known(2)) {
    // An empty list has one place.
    Compose c(context.node);
    const ir::ValueId place = c.reshape(c.cast(context.node.input(2), DType::kInt64), {1});
    return one_sequence({value_if(context.node, element,
                                  {c.binary("equal", place, c.ints({0}, {1})),
                                   "position {} of an empty sequence, expected 0",
                                   {place}})});
  }
  const std::ptrdiff_t at =
      context.has_input(2) ? position_of(context, 2, size, size) : static_cast<std::ptrdiff_t>(size);
  elements.insert(elements.begin() + at, element);
  return one_sequence(std::move(elements));
}

Bindings convert_sequence_erase(StructureContext& context) {
  check_not_empty(context);
  if (const std::optional<Binding> all = run_time_elements(context, 1))
    return std::vector{stack_without(context, *all, position_operand(context, 1))};
  Elements elements = context.sequence(0);
  const int64_t size = size_of(elements);
  const std::ptrdiff_t at =
      context.has_input(1) ? position_of(context, 1, size, size - 1) : static_cast<std::ptrdiff_t>(size - 1);
  elements.erase(elements.begin() + at);
  return one_sequence(std::move(elements));
}

Bindings convert_sequence_length(StructureContext& context) {
  const Binding& sequence = context.input(0);
  if (sequence.kind == Binding::Kind::kStack || sequence.kind == Binding::Kind::kRagged)
    return one_tensor(Compose(context.node).reshape(number_of_elements(context, sequence), {}));
  Tensor length(DType::kInt64, {});
  length.set_element_int(0, size_of(context.sequence(0)));
  return std::vector<Binding>{context.builder.constant(std::move(length))};
}

Bindings convert_concat_from_sequence(StructureContext& context) {
  const bool new_axis = context.node.int_attr("new_axis", 0) != 0;
  const int64_t given_axis = context.node.required_int("axis");
  const Binding& sequence = context.input(0);
  if (sequence.kind == Binding::Kind::kRagged) {
    const int64_t rank = context.node.rank(sequence.tensor);
    const int64_t along = context.node.normalize_axis(given_axis, rank + (new_axis ? 1 : 0));
    const bool is_joined = !new_axis && static_cast<size_t>(along) == sequence.uneven.front();
    return one_tensor(is_joined ? sequence.tensor
                                : joined_stack(context, stack_of_ragged(context, sequence), along, new_axis));
  }
  if (sequence.kind == Binding::Kind::kStack)
    return one_tensor(joined_stack(context, sequence, given_axis, new_axis));
  check_not_empty(context);
  return one_tensor(joined_elements(context, context.sequence(0), given_axis, new_axis));
}

// Other operands are sequences of the same length, or tensors for every iteration.
namespace {

/// A loop over the elements of a stack, and of all sequences beside it.
Bindings mapped_stacks(StructureContext& context, bool binds_symbols) {
  Compose c(context.node);
  LoopForm loop;
  loop.binds_symbols = binds_symbols;
  loop.parts_are_elements = true;
  std::vector<std::vector<size_t>> uneven;
  for (const Binding& operand : context.inputs) {
    if (!is_sequence(operand)) continue;
    const bool is_first = loop.scanned.empty();
    if (is_first) loop.max_trips = number_of_elements(context, operand);
    const Binding all = stacked_elements(context, operand, "a sequence");
    loop.scanned.push_back(all.tensor);
    if (!all.uneven.empty()) loop.scanned.push_back(all.extents);
    uneven.push_back(all.uneven);
    if (!is_first && !context.node.same_count(loop.max_trips, number_of_elements(context, operand)))
      context.node.unsupported("operand", "sequences of which it cannot be told that they have one length");
  }
  for (const ir::ValueId scanned : loop.scanned) {
    const ir::SymInt own = c.shape(scanned)[0];
    loop.most_trips = loop.most_trips ? max(*loop.most_trips, own) : own;
  }
  loop.body = [&](const std::vector<Binding>& rows) {
    std::vector<Binding> arguments = context.inputs;
    auto row = rows.begin();
    auto own = uneven.begin();
    for (Binding& argument : arguments) {
      if (!is_sequence(argument)) continue;
      argument = *row++;
      if (!own->empty())
        argument.tensor = element_as(context, argument.tensor, *own, c.unsqueeze((row++)->tensor, 0));
      ++own;
    }
    return context.builder.run_body(context.body("body"), context.scope, arguments);
  };
  return convert_as_loop(context, loop);
}

}  // namespace

Bindings convert_sequence_map(StructureContext& context) {
  const bool has_stack =
      std::any_of(context.inputs.begin(), context.inputs.end(), [](const Binding& operand) {
        return is_sequence(operand) && operand.kind != Binding::Kind::kSequence;
      });
  if (has_stack) {
    const auto mapped = [&](bool binds_symbols) { return mapped_stacks(context, binds_symbols); };
    if (Bindings results = attempt_loop(context, mapped)) return results;
    return mapped(false);
  }
  const GraphProto& body = context.body("body");
  const size_t length = context.sequence(0).size();
  std::vector<Binding> results(body.outputs.size(), {Binding::Kind::kSequence, ir::kAbsent, {}});
  for (size_t i = 0; i < length; ++i) {
    std::vector<Binding> arguments = context.inputs;
    for (size_t operand = 0; operand < arguments.size(); ++operand) {
      if (arguments[operand].kind != Binding::Kind::kSequence) continue;
      const Elements& elements = context.sequence(operand);
      if (elements.size() != length) context.node.invalid("the sequences have other lengths");
      arguments[operand] = {Binding::Kind::kTensor, elements[i], {}};
    }
    const Bindings outputs = context.builder.run_body(body, context.scope, arguments);
    if (!outputs) return std::nullopt;
    for (size_t o = 0; o < outputs->size(); ++o) results[o].elements.push_back((*outputs)[o].tensor);
  }
  return results;
}

Bindings convert_optional(StructureContext& context) {
  if (context.has_input(0)) return std::vector<Binding>{context.input(0)};
  return std::vector<Binding>{{Binding::Kind::kNone, ir::kAbsent, {}}};
}

Bindings convert_optional_has_element(StructureContext& context) {
  if (context.has_input(0) && context.input(0).present != ir::kAbsent)
    return one_tensor(Compose(context.node).reshape(context.input(0).present, {}));
  Tensor has(DType::kBool, {});
  has.set_element_int(0, context.has_input(0) && context.input(0).kind != Binding::Kind::kNone ? 1 : 0);
  return std::vector<Binding>{context.builder.constant(std::move(has))};
}

namespace {

constexpr const char* kEmpty = "the optional value is empty";

}  // namespace

Bindings convert_optional_get_element(StructureContext& context) {
  if (context.input(0).kind == Binding::Kind::kNone) {
    if (context.builder.guard() != ir::kAbsent) throw BranchFails{kEmpty};
    context.node.invalid(kEmpty);
  }
  if (is_sequence(context.input(0)) && context.input(0).present != ir::kAbsent) {
    Binding sequence = context.input(0);
    sequence.tensor = value_if(context.node, sequence.tensor, {sequence.present, kEmpty});
    sequence.present = ir::kAbsent;
    return std::vector{sequence};
  }
  if (context.input(0).kind == Binding::Kind::kMaybe) {
    return one_tensor(value_if(context.node, context.input(0).tensor, {context.input(0).present, kEmpty}));
  }
  return std::vector<Binding>{context.input(0)};
}

StructureConverter find_structure_op(std::string_view domain, std::string_view op, int64_t opset) {
  struct Row {
    std::string_view domain, op;
    int64_t since, until;
    StructureConverter convert;
  };
  static const std::vector<Row> rows = {
#define TM_STRUCTURE_OP(domain, op, since, until, function) {domain, op, since, until, &function},
#include "compiler/frontend/onnx/operators/structure_ops.def"
#undef TM_STRUCTURE_OP
  };
  for (const Row& row : rows) {
    if (row.domain == domain && row.op == op && opset >= row.since && opset <= row.until) return row.convert;
  }
  return nullptr;
}

}  // namespace tensormill::frontend::onnx
