#include <algorithm>

#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/extents/bounds.h"
#include "compiler/frontend/onnx/extents/data_extents.h"
#include "compiler/frontend/onnx/extents/run_checks.h"
#include "compiler/frontend/onnx/graph/converter.h"
#include "compiler/frontend/onnx/model/tensor_data.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/sym_evaluate.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

/// The values that `value` is computed from, itself included, in the graph's order.
std::vector<ir::ValueId> ancestors(const ir::Graph& graph, ir::ValueId value, bool is_number = false) {
  std::set<ir::ValueId> seen;
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::ValueId id = open.back();
    open.pop_back();
    if (id == ir::kAbsent || !seen.insert(id).second) continue;
    const ir::Value& current = graph.value(id);
    if (current.producer == ir::kAbsent || current.known) continue;
    const ir::Node& producer = graph.node(current.producer);
    if (is_number && producer.op == "take_first" && id == producer.outputs[1]) {
      open.push_back(producer.inputs[1]);
    } else {
      open.insert(open.end(), producer.inputs.begin(), producer.inputs.end());
    }
  }
  return {seen.begin(), seen.end()};
}

/// Names of the graph's inputs among `values`, and of loops that hand on some of them.
std::vector<std::string> graph_inputs(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  std::vector<std::string> names;
  for (ir::ValueId id : values) {
    const ir::Value& value = graph.value(id);
    if (value.producer != ir::kAbsent && graph.node(value.producer).op == ir::kLoopBegin)
      names.push_back(graph.node(value.producer).origins.front());
    if (value.producer == ir::kAbsent && !value.constant && !value.known) names.push_back(value.name);
  }
  return names;
}

/// Outputs of a node by its operator's reference, from numbers; symbolic integers by their expressions.
std::vector<ir::KnownValue> evaluate_node(const ir::Graph& graph, const ir::Node& node,
                                          const std::vector<const ir::KnownValue*>& inputs) {
  const ir::OpDef& def = graph.ops().get(node.op);
  std::vector<ir::ValueType> input_types, types;
  bool is_symbolic = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    is_symbolic = is_symbolic || (inputs[i] != nullptr && inputs[i]->is_symbolic());
    input_types.push_back(inputs[i] == nullptr ? ir::ValueType{} : graph.value(node.inputs[i]).type);
  }
  for (const ir::ValueId output : node.outputs) types.push_back(graph.value(output).type);
  if (is_symbolic) {
    auto results = evaluate_symbolic(def, node.attrs, inputs, input_types, types, ir::Undecided::kGuarded);
    if (results) return *std::move(results);
  }
  ir::ReferenceContext context{node.attrs, {}, {}};
  std::vector<Tensor> results;
  for (const ir::KnownValue* input : inputs) context.inputs.push_back(input == nullptr ? nullptr : &**input);
  for (const ir::ValueType& type : types) results.push_back(Tensor::zeros(type.dtype, type.shape));
  for (Tensor& result : results) context.outputs.push_back(&result);
  def.reference(context);
  return {results.begin(), results.end()};
}

/// The value of the last of `values`, among which is no graph input.
ir::KnownValue evaluate_constant(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  std::map<ir::ValueId, ir::KnownValue> results;
  for (ir::ValueId id : values) {
    const ir::Value& value = graph.value(id);
    if (value.constant || value.known) {
      results.emplace(id, value.constant ? ir::KnownValue(*value.constant) : value.known);
      continue;
    }
    if (results.count(id) != 0) continue;
    const ir::Node& node = graph.node(value.producer);
    std::vector<const ir::KnownValue*> inputs;
    for (ir::ValueId input : node.inputs)
      inputs.push_back(input == ir::kAbsent ? nullptr : &results.at(input));
    std::vector<ir::KnownValue> made = evaluate_node(graph, node, inputs);
    for (size_t i = 0; i < made.size(); ++i) results[node.outputs[i]] = std::move(made[i]);
  }
  return results.at(values.back());
}

/// The attribute, or null; models of the first IR versions leave its type out.
const AttributeProto* find_attribute(const NodeProto& node, const char* name, AttributeType type,
                                     const char* what) {
  const AttributeProto* attribute = node.find(name);
  if (attribute != nullptr && attribute->type != type && attribute->type != AttributeType::kUndefined)
    throw Error(ErrorCode::kInvalidModel, "attribute " + std::string(name) + " is no " + what);
  return attribute;
}

}  // namespace

NodeContext::NodeContext(ir::Graph& graph, DataExtents& extents, const NodeProto& node,
                         const std::string& label, int64_t opset, std::vector<ir::ValueId> inputs,
                         const ModelSource& source, const std::set<std::string>& reserved_names,
                         const ImportForm& form, ir::ValueId guard)
    : OpBuilder(graph, label, node.outputs.empty() ? label : node.outputs.front(), reserved_names),
      extents_(extents),
      node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      source_(source),
      reserved_(reserved_names),
      form_(form),
      guard_(guard),
      outputs_(node.outputs.size(), ir::kAbsent) {}

const Digest& NodeContext::source_digest() const { return source_.digest; }

ir::ValueId NodeContext::input(size_t index) const {
  if (!has_input(index)) invalid("operand " + std::to_string(index) + " is missing");
  return inputs_[index];
}

const Tensor& NodeContext::known(size_t index, const char* what) const {
  return known_value(input(index), what);
}

const Tensor& NodeContext::known_scalar(size_t index, const char* what) const {
  const Tensor& tensor = known(index, what);
  if (tensor.num_elements() != 1)
    invalid(std::string(what) + " has " + std::to_string(tensor.num_elements()) + " elements, expected 1");
  if (tensor.dtype() == kString) invalid(std::string(what) + " is a string");
  return tensor;
}

const Tensor& NodeContext::known_value(ir::ValueId id, const char* what) const {
  const ir::Value& value = graph().value(id);
  return value.constant && !value.known ? *value.constant : *known_symbolic(id, what);
}

const ir::KnownValue& NodeContext::known_symbolic(ir::ValueId id, const char* what) const {
  const ir::Value& value = graph().value(id);
  if (value.known) return value.known;
  const auto evaluated = evaluated_.find(id);
  if (evaluated != evaluated_.end()) return evaluated->second;
  if (value.constant) return evaluated_.emplace(id, *value.constant).first->second;
  const std::vector<ir::ValueId> values = ancestors(graph(), id);
  std::vector<std::string> inputs = graph_inputs(graph(), values);
  if (!inputs.empty()) throw ValueRequired{what, std::move(inputs)};
  return evaluated_.emplace(id, evaluate_constant(graph(), values)).first->second;
}

bool NodeContext::is_computable(ir::ValueId id) const {
  const ir::Value& value = graph().value(id);
  return value.known || value.constant || !extents_.reads_input(id);
}

void NodeContext::require_fixed_shape(size_t index) const {
  if (is_known(index) || !extents_.may_depend(input(index))) return;
  throw ValueRequired{"operand, whose shape depends on data,",
                      graph_inputs(graph(), ancestors(graph(), input(index)))};
}

void NodeContext::require_bound_extents(ir::ValueId x, int64_t first) const {
  if (x == ir::kAbsent || is_computable(x)) return;
  for (const DataExtent& extent : data_shape(x).extents) {
    if (static_cast<int64_t>(extent.axis) >= first)
      throw ValueRequired{"operand, whose extents depend on data,",
                          graph_inputs(graph(), ancestors(graph(), extent.count))};
  }
}

DataShape NodeContext::data_shape_of(size_t index) const {
  if (is_known(index)) return {};
  DataShape shape = data_shape(input(index));
  if (!shape.is_known) require_fixed_shape(index);
  return shape;
}

std::vector<std::string> NodeContext::deciding_numbers() const {
  constexpr int64_t kFewNumbers = 8;
  std::vector<std::string> names;
  for (const ir::ValueId operand : inputs_) {
    if (operand == ir::kAbsent) continue;
    for (const DataExtent& extent : data_shape(operand).extents) {
      const std::vector<std::string> own = graph_inputs(graph(), ancestors(graph(), extent.count, true));
      names.insert(names.end(), own.begin(), own.end());
    }
  }
  const bool are_numbers = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(graph().inputs().begin(), graph().inputs().end(), [&](ir::ValueId id) {
      const ir::Value& input = graph().value(id);
      return input.name == name && is_integer(input.type.dtype) &&
             num_elements(input.type.shape) <= kFewNumbers;
    });
  });
  return are_numbers ? names : std::vector<std::string>();
}

ir::SymShape NodeContext::known_ints(size_t index, const char* what) const {
  if (!is_known(index)) {
    if (std::optional<ir::SymShape> known = static_ints(*this, input(index))) return *std::move(known);
  }
  const ir::KnownValue& value = known_symbolic(input(index), what);
  const DType dtype = type(input(index)).dtype;
  if (is_float(dtype) || dtype == kString)
    invalid(std::string(what) + " has type " + std::string(dtype_name(dtype)));
  return value.elements();
}

int64_t NodeContext::int_attr(const char* name, int64_t fallback) const {
  const AttributeProto* attribute = find_attribute(node_, name, AttributeType::kInt, "integer");
  return attribute == nullptr ? fallback : attribute->i;
}

double NodeContext::float_attr(const char* name, double fallback) const {
  const AttributeProto* attribute = find_attribute(node_, name, AttributeType::kFloat, "float");
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f);
}

std::string NodeContext::string_attr(const char* name, const std::string& fallback) const {
  const AttributeProto* attribute = find_attribute(node_, name, AttributeType::kString, "string");
  return attribute == nullptr ? fallback : std::string(attribute->s);
}

ir::Ints NodeContext::ints_attr(const char* name, std::vector<int64_t> fallback) const {
  const AttributeProto* attribute = find_attribute(node_, name, AttributeType::kInts, "list of integers");
  if (attribute != nullptr) return attribute->ints;
  return fallback;
}

int64_t NodeContext::required_int(const char* name) const {
  if (!has_attr(name)) invalid("attribute " + std::string(name) + " is missing");
  return int_attr(name, 0);
}

ir::Ints NodeContext::required_ints(const char* name) const {
  if (!has_attr(name)) invalid("attribute " + std::string(name) + " is missing");
  return ints_attr(name, {});
}

DType NodeContext::dtype_attr(const char* name) const {
  const int64_t code = required_int(name);
  const std::optional<DType> dtype = dtype_of(static_cast<int32_t>(code));
  if (!dtype || *dtype == kString)
    unsupported(name, "element type " + data_type_name(static_cast<int32_t>(code)));
  return *dtype;
}

Tensor NodeContext::tensor_attr(const char* name) const {
  Tensor tensor = any_tensor_attr(name);
  if (tensor.dtype() == kString) unsupported(name, "strings are not implemented");
  return tensor;
}

Tensor NodeContext::any_tensor_attr(const char* name) const {
  const AttributeProto* attribute = node_.find(name);
  if (attribute == nullptr || !attribute->t) invalid("attribute " + std::string(name) + " is not a tensor");
  check_tensor(*attribute->t, source_);
  return read_tensor(*attribute->t, source_);
}

void NodeContext::fit_operands(const std::string& op, std::vector<ir::ValueId>& inputs,
                               const ir::Attrs& attrs) {
  const ir::OpDef& def = graph().ops().get(op);
  const bool is_pairwise = def.pattern == ir::Pattern::kElementwise && (def.max_inputs == 2 || op == "where");
  if (is_pairwise) inputs = with_same_counts(*this, std::move(inputs), std::nullopt);
  if (op == "concat") inputs = with_same_counts(*this, std::move(inputs), attrs.int_of("axis"));
}

ir::ValueId NodeContext::add_reduction(const std::string& op, ir::ValueId x, const ir::Attrs& attrs) {
  return reduced(*this, op, x, attrs);
}

std::vector<ir::ValueId> NodeContext::results_of_row(const std::vector<ir::ValueId>& operands) {
  return results_of(find_op(node_.domain, node_.op_type, opset_), operands);
}

std::vector<ir::ValueId> NodeContext::results_as(std::string_view domain, std::string_view op,
                                                 const std::vector<ir::ValueId>& operands) {
  return results_of(find_op(domain, op, kMaxOpset), operands);
}

std::vector<ir::ValueId> NodeContext::results_of(const OpRow* row, const std::vector<ir::ValueId>& operands) {
  if (row == nullptr) unsupported("opset", "the operator is not implemented at this opset");
  NodeProto own = node_;
  own.domain = row->domain;
  own.op_type = row->op;
  for (size_t i = 0; i < own.outputs.size(); ++i) {
    if (!own.outputs[i].empty()) own.outputs[i] = temporary_name() + "." + std::to_string(i);
  }
  NodeContext inner(graph(), extents_, own, label(), opset_, operands, source_, reserved_, form_, guard_);
  row->convert(inner);
  return inner.outputs();
}

void NodeContext::set_output(size_t index, ir::ValueId value) {
  TM_CHECK(index < outputs_.size() || index > 0, "output " + std::to_string(index) + " of " + label());
  // An output that the model does not name is not wanted.
  if (index >= outputs_.size() || node_.outputs[index].empty()) return;
  bool taken = !is_own(value);
  for (ir::ValueId output : outputs_) taken = taken || output == value;
  // Nothing computes in narrow types; a view of the same shape is another value too.
  if (taken)
    value = is_narrow(type(value).dtype) ? reshape(value, type(value).shape) : add("identity", {value});
  graph().rename_value(value, node_.outputs[index]);
  outputs_[index] = value;
}

}  // namespace tensormill::frontend::onnx
