#include "compiler/frontend/pytorch/node_context.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

std::vector<std::string> outputs_of(const Node& node) {
  std::vector<std::string> names;
  for (const Argument& output : node.outputs) {
    if (output.kind == ArgumentKind::kNone && node.outputs.size() > 1) names.emplace_back();
    names.insert(names.end(), output.names.begin(), output.names.end());
  }
  return names;
}

std::string base_of(const Node& node, const std::string& label) {
  const std::vector<std::string> names = outputs_of(node);
  return names.empty() || names.front().empty() ? label : names.front();
}

}  // namespace

NodeContext::NodeContext(GraphState& state, const Node& node, const OpRow& row, const std::string& label)
    : OpBuilder(state.import.graph, label, base_of(node, label), state.import.reserved),
      state_(state),
      node_(node),
      row_(row),
      outputs_(outputs_of(node)),
      first_own_(static_cast<V>(state.import.graph.values().size())) {}

void NodeContext::bad(const char* name, const std::string& expected) const {
  invalid("argument " + std::string(name) + " is no " + expected);
}

std::string_view NodeContext::name_of(size_t input) const {
  const std::string& own = node_.inputs[input].name;
  if (!own.empty() || row_.arguments.empty()) return own;
  return row_.arguments[std::min(input, row_.arguments.size() - 1)].name;
}

const SchemaArgument& NodeContext::declared(const char* name) const {
  for (const SchemaArgument& argument : row_.arguments)
    if (argument.name == name) return argument;
  throw Error(ErrorCode::kInternal, "operator " + row_.target + " has no argument " + name);
}

const Argument* NodeContext::given(const char* name) {
  read_.insert(name);
  for (size_t i = 0; i < node_.inputs.size(); ++i)
    if (name_of(i) == name) return &node_.inputs[i].argument;
  if (!declared(name).otherwise) invalid("argument " + std::string(name) + " is missing");
  return nullptr;
}

bool NodeContext::has(const char* name) {
  const Argument* argument = given(name);
  if (argument == nullptr) return !declared(name).otherwise->is_null();
  if (argument->kind == ArgumentKind::kOptionalTensor) return !argument->names.front().empty();
  return argument->kind != ArgumentKind::kNone;
}

bool NodeContext::is_tensor(const char* name) {
  const Argument* argument = given(name);
  return argument != nullptr && (argument->kind == ArgumentKind::kTensor ||
                                 (argument->kind == ArgumentKind::kOptionalTensor && has(name)));
}

View& NodeContext::view(const std::string& name) {
  const auto found = state_.tensors.find(name);
  if (found == state_.tensors.end()) invalid("tensor \"" + name + "\" is read before anything makes it");
  Storage& storage = *found->second.storage;
  if (storage.is_stale) unsupported("self", why_stale(name));
  if (storage.value == ir::kAbsent) {
    if (storage.stored == nullptr) invalid("tensor \"" + name + "\" has no value");
    std::string own = graph().unique_name(storage.name);
    while (state_.import.reserved.count(own) != 0) own = graph().unique_name(own + "_");
    try {
      storage.value = graph().add_constant(own, state_.import.loaded.constant(*storage.stored));
    } catch (Error& error) {
      error.add_context("weight \"" + storage.name + "\"");
      throw;
    }
  }
  return found->second;
}

V NodeContext::tensor(const char* name) {
  if (!is_tensor(name)) bad(name, "tensor");
  return taken(view(given(name)->names.front()), name);
}

ir::CheckedList<V> NodeContext::tensors(const char* name) {
  std::vector<V> values = optional_tensors(name);
  if (std::find(values.begin(), values.end(), ir::kAbsent) != values.end())
    bad(name, "list of tensors alone");
  return values;
}

ir::CheckedList<V> NodeContext::optional_tensors(const char* name) {
  const Argument* argument = given(name);
  if (argument == nullptr) return {};
  if (argument->kind != ArgumentKind::kTensors && argument->kind != ArgumentKind::kOptionalTensors &&
      argument->kind != ArgumentKind::kTensor)
    bad(name, "list of tensors");
  std::vector<V> values;
  for (const std::string& each : argument->names)
    values.push_back(each.empty() ? ir::kAbsent : taken(view(each), name, values.size()));
  return values;
}

std::string NodeContext::text(const char* name) {
  const Argument* argument = given(name);
  const Json& json = argument == nullptr ? *declared(name).otherwise : argument->value;
  if (!json.is_string()) bad(name, "text");
  return json.get<std::string>();
}

std::optional<DType> NodeContext::optional_dtype(const char* name) {
  if (!has(name)) return std::nullopt;
  const Argument* argument = given(name);
  if (argument == nullptr) return std::nullopt;  // the schema's own, as the output has it
  if (argument->kind != ArgumentKind::kScalarType || !argument->value.is_number_integer())
    bad(name, "type of elements");
  const auto type = static_cast<ScalarType>(argument->value.get<int64_t>());
  const std::optional<DType> dtype = parts_ && part_type(type) ? part_type(type) : dtype_of(type);
  if (!dtype)
    unsupported(name, "elements of type " + std::string(scalar_name(type)) + " are not implemented");
  return dtype;
}

Operand NodeContext::operand(const char* name) {
  Operand operand;
  if (const std::optional<RunNumber> number = run_number(name)) {
    operand.value = is_filled(name) ? Compose(*this).number(number->value, 0) : number->value;
    const DType own = type(operand.value).dtype;
    operand.type = {is_float(own)         ? DType::kFloat64
                    : own == DType::kBool ? own
                                          : DType::kInt64,
                    OperandKind::kNumber};
    return operand;
  }
  if (is_tensor(name)) {
    operand.value = tensor(name);
    const ir::ValueType& own = type(operand.value);
    operand.type = {own.dtype, own.shape.empty() ? OperandKind::kScalar : OperandKind::kTensor};
    return operand;
  }
  operand.number = number(name);
  operand.type = {std::holds_alternative<bool>(operand.number)         ? DType::kBool
                  : std::holds_alternative<ir::SymInt>(operand.number) ? DType::kInt64
                                                                       : DType::kFloat64,
                  OperandKind::kNumber};
  return operand;
}

int64_t NodeContext::axis(const char* name, int64_t rank) {
  if (rank == 0) invalid("argument " + std::string(name) + " is an axis of a tensor without dims");
  return axis_of(integer(name), rank);
}

ir::Ints NodeContext::axes(const char* name, int64_t rank) {
  std::vector<int64_t> given_axes;
  if (has(name)) given_axes = ints(name);
  for (int64_t& each : given_axes) each = axis_of(each, rank);
  std::vector<int64_t> sorted = given_axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    invalid("argument " + std::string(name) + " names an axis twice");
  if (rank == 0) given_axes.clear();
  return given_axes;
}

const Graph& NodeContext::graph_of(const char* name) {
  const Argument* argument = given(name);
  if (argument == nullptr || argument->kind != ArgumentKind::kGraph || argument->graph == nullptr)
    bad(name, "graph");
  return *argument->graph;
}

std::vector<V> NodeContext::call(const Graph& graph, const char* operands) {
  static_cast<void>(given(operands));
  std::vector<View> inputs;
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (name_of(i) != operands) continue;
    const Argument& argument = node_.inputs[i].argument;
    if (argument.kind != ArgumentKind::kTensor && argument.kind != ArgumentKind::kTensors)
      unsupported(operands, "operands that are no tensors are not implemented");
    for (const std::string& name : argument.names) inputs.push_back(view(name));
  }
  std::optional<std::vector<V>> outputs = state_.import.call(graph, inputs);
  if (!outputs) throw CallFails();
  return *std::move(outputs);
}

std::vector<V> NodeContext::call(const Graph& graph, const std::vector<V>& operands) {
  std::vector<View> inputs;
  for (const V value : operands) {
    if (value == ir::kAbsent) invalid("an operand of a graph is missing");
    auto storage = std::make_shared<Storage>();
    storage->value = value;
    inputs.push_back({std::move(storage), {}, value, 0});
  }
  std::optional<std::vector<V>> outputs = state_.import.call(graph, inputs);
  if (!outputs) throw CallFails();
  return *std::move(outputs);
}

DType NodeContext::common_type(const std::vector<Operand>& operands) const {
  std::vector<OperandType> types;
  for (const Operand& each : operands) types.push_back(each.type);
  const std::optional<DType> common = result_type(types);
  if (!common) invalid("the operands have no common type");
  return *common;
}

V NodeContext::as(const Operand& operand, DType dtype) {
  Compose c(*this);
  if (operand.value != ir::kAbsent) return c.cast(operand.value, dtype);
  if (const auto* integer = std::get_if<ir::SymInt>(&operand.number)) {
    if (!integer->is_constant()) return c.cast(c.reshape(extents({*integer}), {}), dtype);
    Tensor tensor(dtype, {});
    is_float(dtype) ? tensor.set_element(0, static_cast<double>(integer->hint()))
                    : tensor.set_element_int(0, integer->hint());
    return constant(std::move(tensor));
  }
  const auto* is_set = std::get_if<bool>(&operand.number);
  Tensor tensor(dtype, {});
  tensor.set_element(0, is_set != nullptr ? static_cast<double>(*is_set) : std::get<double>(operand.number));
  return constant(std::move(tensor));
}

V NodeContext::as_output(V value, size_t index) { return Compose(*this).cast(value, output_dtype(index)); }

bool NodeContext::is_used(size_t index) const {
  if (!state_.is_typed) return index == 0;
  return index < outputs_.size() && state_.used.count(outputs_[index]) != 0;
}

bool NodeContext::is_number_used() const {
  if (!state_.is_typed) return true;
  for (const Argument& output : node_.outputs) {
    if (!output.value.is_object() || output.value.size() != 1) continue;
    const Json& name = output.value.begin().value();
    if (name.is_string() && state_.used.count(name.get<std::string>()) != 0) return true;
  }
  return false;
}

const TensorMeta& NodeContext::output_meta(size_t index) const {
  if (index >= outputs_.size() || outputs_[index].empty())
    invalid("output " + std::to_string(index) + " is missing");
  return state_.graph.tensors.at(outputs_[index]);
}

const TensorMeta& NodeContext::input_meta(const char* name) {
  if (!is_tensor(name)) bad(name, "tensor");
  return state_.graph.tensors.at(given(name)->names.front());
}

DType NodeContext::output_dtype(size_t index) {
  if (!state_.is_typed) return untyped_result(*this);
  const ScalarType type = output_meta(index).dtype;
  const std::optional<DType> dtype = parts_ && part_type(type) ? part_type(type) : dtype_of(type);
  if (!dtype)
    unsupported("output " + std::to_string(index),
                "elements of type " + std::string(scalar_name(type)) + " are not implemented");
  return *dtype;
}

bool NodeContext::has_output(size_t index) {
  if (!state_.is_typed)
    for (size_t i = outputs_.size(); i <= index; ++i)
      outputs_.push_back(i == 0 ? node_.name : node_.name + "." + std::to_string(i));
  return index < outputs_.size() && !outputs_[index].empty();
}

void NodeContext::take(const std::string& name, View made) {
  if (state_.is_typed) check_type(name, made);
  const V value = made.value;
  state_.tensors.insert_or_assign(name, std::move(made));
  if (value >= first_own_ && rename_if_free(value, name)) first_own_ = value + 1;
}

void NodeContext::check_type(const std::string& name, const View& made) const {
  const ir::ValueType& own = type(made.value);
  const TensorMeta& meta = state_.graph.tensors.at(name);
  const size_t rank = meta.sizes.size();
  bool is_as_said = (made.is_complex ? part_type(meta.dtype) : dtype_of(meta.dtype)) == own.dtype &&
                    rank + (made.is_complex ? 1 : 0) == own.shape.size();
  for (size_t i = 0; is_as_said && i < rank; ++i)
    is_as_said =
        !meta.sizes[i].value || !own.shape[i].is_constant() || *meta.sizes[i].value == own.shape[i].hint();
  if (!is_as_said) {
    std::string said;
    for (const SymDim& size : meta.sizes) said += (said.empty() ? "" : ",") + to_string(size);
    invalid("output \"" + name + "\" is " + (made.is_complex ? "pairs " : "") + ir::to_string(own) +
            ", the file says " + std::string(scalar_name(meta.dtype)) + "[" + said + "]");
  }
}

void NodeContext::write_to_first(size_t index, V value) {
  const char* target = row_.arguments.front().name.c_str();
  if (index != 0 || !is_tensor(target)) invalid("it writes to no tensor");
  View& written = view(given(target)->names.front());
  if (written.storage->is_weight)
    unsupported(target,
                "it writes to buffer \"" + written.storage->name +
                    "\", and a package keeps nothing between runs: export the module in eval mode, or "
                    "without the state");
  Compose c(*this);
  const ir::ValueType own = type(read_view(*this, written));
  write_view(*this, written, c.expand(c.cast(value, own.dtype), own.shape));
  if (has_output(0)) take(outputs_[0], View(written));
}

void NodeContext::set_output(size_t index, V value) {
  if (parts_) {
    made_.insert_or_assign(index, PartResult{value});
    return;
  }
  if (row_.is_in_place) return write_to_first(index, value);
  if (!has_output(index)) return;
  auto storage = std::make_shared<Storage>();
  storage->value = value;
  if (!state_.is_typed) storage->layout = layout_made(value);
  take(outputs_[index], {std::move(storage), {}, value, 0});
}

void NodeContext::set_outputs(const std::vector<V>& values) {
  if (state_.is_typed && values.size() != outputs_.size())
    invalid("it has " + std::to_string(values.size()) + " results, the file says " +
            std::to_string(outputs_.size()));
  for (size_t i = 0; i < values.size(); ++i) set_output(i, values[i]);
}

void NodeContext::set_view(size_t index, const char* of, std::shared_ptr<const ViewStep> step) {
  if (!has_output(index)) return;
  if (!is_tensor(of)) bad(of, "tensor");
  View& from = view(given(of)->names.front());
  // What is real becomes complex, or the other way round.
  if (parts_ && from.is_complex != makes_complex(index))
    return set_output(index, step->read(*this, tensor(of)));
  if (from.is_complex) step = step_of_pairs(step);
  if (row_.name.ends_with("_copy")) {
    const V copy = step->read(*this, read_view(*this, from));
    const V own = copy < first_own_ ? add("identity", {copy}) : copy;
    return from.is_complex ? set_pairs(index, own) : set_output(index, own);
  }
  take_view(index, from, {std::move(step)});
}

void NodeContext::set_view_in(size_t index, const char* of, size_t part,
                              std::vector<std::shared_ptr<const ViewStep>> steps) {
  if (!has_output(index)) return;
  View& from = view(given(of)->names.at(part));
  if (from.is_complex)
    for (auto& step : steps) step = step_of_pairs(step);
  take_view(index, from, std::move(steps));
}

void NodeContext::take_view(size_t index, View& from, std::vector<std::shared_ptr<const ViewStep>> steps) {
  View made = from;
  made.value = read_view(*this, from);
  made.version = from.version;
  for (auto& step : steps) {
    made.value = step->read(*this, made.value);
    made.steps.push_back(std::move(step));
  }
  take(outputs_[index], std::move(made));
}

void NodeContext::set_alias(const char* of, size_t index) {
  if (!has_output(index)) return;
  if (!is_tensor(of)) bad(of, "tensor");
  View& from = view(given(of)->names.front());
  if (parts_ && from.is_complex != makes_complex(index)) return set_output(index, tensor(of));
  const V value = read_view(*this, from);
  if (row_.name.ends_with("_copy")) {
    const V copy = add("identity", {value});
    return from.is_complex ? set_pairs(index, copy) : set_output(index, copy);
  }
  View made = from;
  made.value = value;
  take(outputs_[index], std::move(made));
}

void NodeContext::check_read() const {
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    const std::string name(name_of(i));
    if (read_.count(name) != 0 || node_.inputs[i].argument.kind == ArgumentKind::kNone) continue;
    const auto row = std::find_if(row_.arguments.begin(), row_.arguments.end(),
                                  [&](const SchemaArgument& each) { return each.name == name; });
    if (row != row_.arguments.end() && row->is_unread) continue;
    unsupported(name, "this argument is not implemented");
  }
}

}  // namespace tensormill::frontend::pytorch
