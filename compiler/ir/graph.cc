#include "compiler/ir/graph.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ir/sym_evaluate.h"
#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::ir {

std::string to_string(const ValueType& type) {
  return std::string(dtype_name(type.dtype)) + to_string(type.shape);
}

void add_origins(const std::vector<std::string>& more, std::vector<std::string>& origins) {
  for (const std::string& origin : more) {
    if (std::find(origins.begin(), origins.end(), origin) == origins.end()) origins.push_back(origin);
  }
}

namespace {

template <typename T>
const T& attr_as(const std::map<std::string, AttrValue>& values, const std::string& name) {
  const auto found = values.find(name);
  TM_CHECK(found != values.end(), "attribute " + name + " is missing");
  const T* value = std::get_if<T>(&found->second);
  TM_CHECK(value != nullptr, "attribute " + name + " has another kind");
  return *value;
}

bool is_shape_dtype(DType dtype) { return !is_float(dtype); }

}  // namespace

int64_t Attrs::int_of(const std::string& name) const { return sym_int_of(name); }
double Attrs::float_of(const std::string& name) const { return attr_as<double>(values_, name); }
const std::string& Attrs::string_of(const std::string& name) const {
  return attr_as<std::string>(values_, name);
}
void Attrs::set(const std::string& name, AttrValue value) {
  if (const SymInt* number = std::get_if<SymInt>(&value); number != nullptr && number->is_constant()) {
    value = number->hint();
  } else if (const SymShape* list = std::get_if<SymShape>(&value); list != nullptr && list->is_constant()) {
    value = list->hints();
  }
  values_[name] = std::move(value);
}

bool Attrs::is_constant() const {
  return std::none_of(values_.begin(), values_.end(), [](const auto& each) {
    return std::holds_alternative<SymInt>(each.second) || std::holds_alternative<SymShape>(each.second);
  });
}

Ints Attrs::ints_of(const std::string& name) const { return sym_ints_of(name); }

SymInt Attrs::sym_int_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end() && std::holds_alternative<SymInt>(found->second))
    return std::get<SymInt>(found->second);
  return attr_as<int64_t>(values_, name);
}

SymShape Attrs::sym_ints_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end() && std::holds_alternative<SymShape>(found->second))
    return std::get<SymShape>(found->second);
  return attr_as<std::vector<int64_t>>(values_, name);
}

bool Attrs::operator==(const Attrs& other) const {
  const auto alike = [](const auto& a, const auto& b) {
    if (a.first != b.first || a.second.index() != b.second.index()) return false;
    if (const SymInt* number = std::get_if<SymInt>(&a.second))
      return same(*number, std::get<SymInt>(b.second));
    if (const SymShape* list = std::get_if<SymShape>(&a.second))
      return same(*list, std::get<SymShape>(b.second));
    return a.second == b.second;
  };
  return std::equal(values_.begin(), values_.end(), other.values_.begin(), other.values_.end(), alike);
}

KnownValue::KnownValue(DType dtype, const Shape& shape, SymShape elements) : tensor_(Tensor(dtype, shape)) {
  TM_CHECK(static_cast<int64_t>(elements.size()) == tensor_->num_elements(), "known elements");
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_float(dtype)) {
      const std::optional<float> value = float_of_code(elements[i].hint());
      TM_CHECK(value.has_value(), "a known float that is not finite");
      tensor_->set_element(at, *value);
    } else {
      tensor_->set_element_int(at, elements[i].hint());
    }
  }
  if (!elements.is_constant()) elements_ = std::move(elements);
}

SymShape KnownValue::elements() const {
  if (is_symbolic()) return elements_;
  SymShape elements;
  for (int64_t i = 0; i < tensor_->num_elements(); ++i) elements.push_back(tensor_->element_as_int(i));
  return elements;
}

const Tensor& KnownValue::operator*() const {
  for (const SymInt& element : elements_) static_cast<void>(static_cast<int64_t>(element));
  return *tensor_;
}

DType Attrs::dtype_of(const std::string& name) const { return attr_as<DType>(values_, name); }

std::string Graph::unique_name(const std::string& base) const {
  if (!base.empty() && by_name_.find(base) == by_name_.end()) return base;
  // The number of values grows with every name, so that the search is short.
  for (size_t i = values_.size();; ++i) {
    std::string name = (base.empty() ? "v" : base + ".") + std::to_string(i);
    if (by_name_.find(name) == by_name_.end()) return name;
  }
}

void Graph::throw_not_there(int32_t id) {
  throw OutOfRange(id == kAbsent ? "a value that is not given"
                                 : "value " + std::to_string(id) + " of the graph");
}

ValueId Graph::add_value(std::string name, ValueType type) {
  const ValueId id = static_cast<ValueId>(values_.size());
  name = unique_name(name);
  by_name_.emplace(name, id);
  Value value;
  value.type = std::move(type);
  value.name = std::move(name);
  values_.push_back(std::move(value));
  return id;
}

ValueId Graph::add_input(const std::string& name, ValueType type) {
  TM_CHECK(!find_value(name), "graph input " + name + " exists already");
  const ValueId id = add_value(name, std::move(type));
  inputs_.push_back(id);
  return id;
}

std::vector<std::string> Graph::output_names() const {
  std::vector<std::string> names;
  for (const ValueId output : outputs_) names.push_back(value(output).name);
  return names;
}

ValueId Graph::add_constant(const std::string& name, Tensor tensor) {
  const ValueId id = add_value(name, {tensor.dtype(), tensor.shape()});
  Value& value = values_[static_cast<size_t>(id)];
  if (is_shape_dtype(tensor.dtype()) && tensor.num_elements() <= kMaxKnownElements) value.known = tensor;
  value.constant = std::move(tensor);
  return id;
}

std::vector<ValueId> Graph::add_node(const std::string& op, std::vector<ValueId> inputs, Attrs attrs,
                                     std::vector<std::string> origins,
                                     std::vector<std::string> output_names) {
  const OpDef& def = ops_->get(op);
  InferContext context{attrs, {}};
  for (ValueId input : inputs) {
    TM_CHECK(input == kAbsent || (input >= 0 && static_cast<size_t>(input) < values_.size()),
             op + " reads value " + std::to_string(input) + " of " + std::to_string(values_.size()));
    context.inputs.push_back(input == kAbsent ? nullptr : &value(input).type);
  }
  const int count = static_cast<int>(inputs.size());
  TM_CHECK(count >= def.min_inputs && (def.max_inputs < 0 || count <= def.max_inputs),
           op + " has " + std::to_string(count) + " inputs");
  std::vector<ValueType> types;
  try {
    types = as_invalid_model([&] { return def.infer(context); });
    for (const ValueType& type : types) num_bytes(type.shape.hints(), type.dtype);
  } catch (Error& error) {
    error.add_context(op + (origins.empty() ? "" : " \"" + origins.front() + "\""));
    throw;
  }
  const NodeId id = static_cast<NodeId>(nodes_.size());
  Node node{op, std::move(attrs), std::move(inputs), {}, std::move(origins), nullptr};
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId output = add_value(i < output_names.size() ? output_names[i] : "", std::move(types[i]));
    values_[static_cast<size_t>(output)].producer = id;
    values_[static_cast<size_t>(output)].slot = static_cast<int>(i);
    node.outputs.push_back(output);
  }
  nodes_.push_back(std::move(node));
  propagate_known(nodes_.back());
  return nodes_.back().outputs;
}

std::vector<ValueId> Graph::add_fused(std::vector<ValueId> inputs, std::shared_ptr<const Graph> region,
                                      std::vector<std::string> origins,
                                      std::vector<std::string> output_names) {
  TM_CHECK(inputs.size() == region->inputs().size(), "a fused node has as many inputs as its region");
  const NodeId id = static_cast<NodeId>(nodes_.size());
  Node node{"fused", {}, std::move(inputs), {}, std::move(origins), std::move(region)};
  for (size_t i = 0; i < node.region->outputs().size(); ++i) {
    const Value& inner = node.region->value(node.region->outputs()[i]);
    const ValueId output = add_value(i < output_names.size() ? output_names[i] : "", inner.type);
    values_[static_cast<size_t>(output)].producer = id;
    values_[static_cast<size_t>(output)].slot = static_cast<int>(i);
    node.outputs.push_back(output);
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::propagate_known(const Node& node) {
  if (const OpDef& def = ops_->get(node.op); def.known != nullptr) {
    values_[static_cast<size_t>(node.outputs[0])].known = def.known(node.attrs);
    return;
  }
  for (ValueId input : node.inputs) {
    if (input != kAbsent && !value(input).known) return;
  }
  if (node.inputs.empty()) return;
  for (ValueId output : node.outputs) {
    const ValueType& type = value(output).type;
    if (!is_shape_dtype(type.dtype) || !type.shape.is_constant() ||
        num_elements(type.shape) > kMaxKnownElements)
      return;
  }
  if (propagate_symbolic(node)) return;
  ReferenceContext context{node.attrs, {}, {}};
  for (ValueId input : node.inputs)
    context.inputs.push_back(input == kAbsent ? nullptr : &*value(input).known);
  std::vector<Tensor> results;
  for (ValueId output : node.outputs)
    results.push_back(Tensor::zeros(value(output).type.dtype, value(output).type.shape));
  for (Tensor& result : results) context.outputs.push_back(&result);
  try {
    ops_->get(node.op).reference(context);
  } catch (const Error&) {
    // Data that the operator refuses (an index out of range) is reported when the model runs; here the value
    // is just not known.
    return;
  }
  for (size_t i = 0; i < results.size(); ++i)
    values_[static_cast<size_t>(node.outputs[i])].known = results[i];
}

bool Graph::propagate_symbolic(const Node& node) {
  std::vector<const KnownValue*> inputs;
  std::vector<ValueType> input_types, types;
  bool is_symbolic = false;
  for (const ValueId input : node.inputs) {
    inputs.push_back(input == kAbsent ? nullptr : &value(input).known);
    input_types.push_back(input == kAbsent ? ValueType{} : value(input).type);
    is_symbolic = is_symbolic || (input != kAbsent && value(input).known.is_symbolic());
  }
  const auto depends = [](const auto& attr) {
    return std::holds_alternative<SymInt>(attr.second) || std::holds_alternative<SymShape>(attr.second);
  };
  is_symbolic = is_symbolic || std::any_of(node.attrs.all().begin(), node.attrs.all().end(), depends);
  if (!is_symbolic) return false;
  for (const ValueId output : node.outputs) types.push_back(value(output).type);
  auto results =
      evaluate_symbolic(ops_->get(node.op), node.attrs, inputs, input_types, types, Undecided::kUnknown);
  for (size_t i = 0; results && i < results->size(); ++i)
    values_[static_cast<size_t>(node.outputs[i])].known = std::move((*results)[i]);
  return true;
}

void Graph::rename_value(ValueId id, const std::string& name) {
  Value& value = values_[static_cast<size_t>(id)];
  if (value.name == name) return;
  TM_CHECK(!find_value(name), "value " + name + " exists already");
  by_name_.erase(value.name);
  by_name_.emplace(name, id);
  value.name = name;
}

std::optional<ValueId> Graph::find_value(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::vector<NodeId>> Graph::uses() const {
  std::vector<std::vector<NodeId>> result(values_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (ValueId input : nodes_[i].inputs) {
      if (input == kAbsent) continue;
      std::vector<NodeId>& readers = result[static_cast<size_t>(input)];
      if (readers.empty() || readers.back() != static_cast<NodeId>(i))
        readers.push_back(static_cast<NodeId>(i));
    }
  }
  return result;
}

}  // namespace tensormill::ir
