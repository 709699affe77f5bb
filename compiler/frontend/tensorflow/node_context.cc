#include "compiler/frontend/tensorflow/node_context.h"

#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

NodeContext::NodeContext(ImportState& state, const Node& node, const OpRow& row, std::vector<Item> inputs,
                         const Attributes* placeholders)
    : OpBuilder(state.graph, std::string(node.name.substr(0, 500)), std::string(node.name.substr(0, 500)),
                state.reserved),
      state_(state),
      node_(node),
      row_(row),
      inputs_(std::move(inputs)),
      placeholders_(placeholders) {}

NodeContext::NodeContext(NodeContext& node, std::vector<Item> inputs)
    : NodeContext(node.state_, node.node_, node.row_, std::move(inputs), node.placeholders_) {
  has_name_ = false;
}

const Item& NodeContext::item(size_t index) const {
  if (index >= inputs_.size()) invalid("operand " + std::to_string(index) + " is missing");
  return inputs_[index];
}

V NodeContext::input(size_t index) const {
  const auto* value = std::get_if<V>(&item(index).value);
  if (std::holds_alternative<Complex>(item(index).value))
    unsupported("operand " + std::to_string(index), "complex numbers are not implemented here");
  if (value == nullptr) invalid("operand " + std::to_string(index) + " is no tensor");
  return *value;
}

const Complex& NodeContext::complex(size_t index) const {
  const auto* value = std::get_if<Complex>(&item(index).value);
  if (value == nullptr) invalid("operand " + std::to_string(index) + " is not complex");
  return *value;
}

ir::CheckedList<V> NodeContext::inputs_from(size_t first, size_t behind) const {
  std::vector<V> values;
  for (size_t i = first; i < std::min(behind, inputs_.size()); ++i) values.push_back(input(i));
  return values;
}

const Resource& NodeContext::resource(size_t index) const {
  const auto* value = std::get_if<Resource>(&item(index).value);
  if (value == nullptr) invalid("operand " + std::to_string(index) + " is no variable");
  return *value;
}

const TableHandle& NodeContext::table(size_t index) const {
  const auto* value = std::get_if<TableHandle>(&item(index).value);
  if (value == nullptr) invalid("operand " + std::to_string(index) + " is no table");
  return *value;
}

const TensorList& NodeContext::list(size_t index) const {
  const TensorList& list = any_list(index);
  if (list.length)
    unsupported("operand " + std::to_string(index),
                "a list of as many elements as a free dim or a run says is not implemented here");
  return list;
}

const TensorList& NodeContext::any_list(size_t index) const {
  const auto* value = std::get_if<std::shared_ptr<const TensorList>>(&item(index).value);
  if (value == nullptr) invalid("operand " + std::to_string(index) + " is no list of tensors");
  return **value;
}

bool NodeContext::is_known(size_t index) const {
  const ir::Value& value = graph().value(input(index));
  return value.constant.has_value() || static_cast<bool>(value.known);
}

ir::SymShape NodeContext::known_ints(size_t index, const char* what) const {
  if (!is_known(index) && !is_float(dtype(input(index))) && dtype(input(index)) != kString) {
    const std::optional<ir::KnownValue> known = build::following_value(*this, input(index));
    if (known) return known->elements();
  }
  return build::known_integers(*this, input(index), what);
}

ir::SymInt NodeContext::known_int(size_t index, const char* what) const {
  return build::only_integer(*this, known_ints(index, what), what);
}

ir::SymShape NodeContext::run_time_numbers(size_t index, const char* what, std::optional<int64_t> low) {
  if (is_known(index)) return known_ints(index, what);
  const V value = input(index);
  const ir::SymShape shape = type(value).shape;
  if (is_float(dtype(value)) || dtype(value) == kString)
    invalid(std::string(what) + " is no list of integers");
  if (!num_elements(shape).is_constant()) unsupported(what, "a run works out how many numbers it has");
  const auto found = state_.run_symbols.find(value);
  if (found != state_.run_symbols.end()) return found->second;
  Compose c(*this);
  const V row = c.cast(c.reshape(value, {num_elements(shape)}), DType::kInt64);
  return state_.run_symbols.emplace(value, build::bind_run_numbers(*this, row, low, std::nullopt))
      .first->second;
}

ir::SymShape NodeContext::extents_at(size_t index, const char* what) {
  return run_time_numbers(index, what, 0);
}

ir::SymInt NodeContext::number_at(size_t index, const char* what) {
  return build::only_integer(*this, run_time_numbers(index, what, std::nullopt), what);
}

double NodeContext::known_real(size_t index, const char* what) const {
  const ir::Value& value = graph().value(input(index));
  std::optional<ir::KnownValue> known;
  if (value.tensor() == nullptr) known = build::following_value(*this, input(index));
  if (value.tensor() == nullptr && (!known || known->is_symbolic()))
    unsupported(what, "it is worked out by a run");
  const ::tensormill::Tensor& number = known ? **known : *value.tensor();
  if (number.num_elements() != 1)
    invalid(std::string(what) + " has " + std::to_string(number.num_elements()) + " elements, expected 1");
  return number.element_as_double(0);
}

std::vector<std::string> NodeContext::known_texts(size_t index, const char* what) const {
  const V value = input(index);
  if (dtype(value) != kString) invalid(std::string(what) + " is no string");
  const ::tensormill::Tensor* known = graph().value(value).tensor();
  if (known == nullptr) unsupported(what, "it is worked out by a run");
  const Texts texts({known->dtype(), known->shape(), known->data()});
  std::vector<std::string> all;
  for (int64_t i = 0; i < texts.count(); ++i) all.emplace_back(texts[i]);
  return all;
}

std::string NodeContext::known_text(size_t index, const char* what) const {
  const std::vector<std::string> texts = known_texts(index, what);
  if (texts.size() != 1)
    invalid(std::string(what) + " has " + std::to_string(texts.size()) + " elements, expected 1");
  return texts[0];
}

const AttrValue* NodeContext::attribute(const char* name) {
  if (!row_.knows(name))
    throw Error(ErrorCode::kInternal, "the row of " + std::string(row_.name) + " has no attribute " + name);
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  read_.insert(found->first);
  const auto* placeholder = std::get_if<AttrPlaceholder>(&found->second.value);
  if (placeholder == nullptr) return &found->second;
  if (placeholders_ == nullptr || !placeholders_->contains(placeholder->name))
    invalid("attribute " + std::string(name) + " stands for \"" +
            std::string(placeholder->name.substr(0, 200)) +
            "\" of its function, which has no such attribute");
  return &placeholders_->find(placeholder->name)->second;
}

template <typename T>
const T* NodeContext::attribute_of(const char* name, bool is_required, const char* kind) {
  const AttrValue* found = attribute(name);
  if (found == nullptr && is_required) invalid("attribute " + std::string(name) + " is missing");
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(&found->value);
  if (value == nullptr) invalid("attribute " + std::string(name) + " is no " + kind);
  return value;
}

bool NodeContext::has(const char* name) { return attribute(name) != nullptr; }

bool NodeContext::flag(const char* name, std::optional<bool> otherwise) {
  const bool* value = attribute_of<bool>(name, !otherwise, "truth value");
  return value == nullptr ? *otherwise : *value;
}

int64_t NodeContext::integer(const char* name, std::optional<int64_t> otherwise) {
  const int64_t* value = attribute_of<int64_t>(name, !otherwise, "integer");
  return value == nullptr ? *otherwise : *value;
}

double NodeContext::real(const char* name, std::optional<double> otherwise) {
  const float* value = attribute_of<float>(name, !otherwise, "number");
  return value == nullptr ? *otherwise : static_cast<double>(*value);
}

std::string NodeContext::text(const char* name, std::optional<std::string> otherwise) {
  const std::string_view* value = attribute_of<std::string_view>(name, !otherwise, "text");
  if (value == nullptr) return *otherwise;
  constexpr size_t kMostBytes = size_t{1} << 16;
  if (value->size() > kMostBytes) unsupported(name, "texts of more than 64 KiB are not implemented");
  return std::string(*value);
}

ir::Ints NodeContext::ints(const char* name, std::optional<std::vector<int64_t>> otherwise) {
  const auto* value = attribute_of<std::shared_ptr<const AttrList>>(name, !otherwise, "list of integers");
  return value == nullptr ? *otherwise : (*value)->ints;
}

std::vector<float> NodeContext::reals(const char* name) {
  return (*attribute_of<std::shared_ptr<const AttrList>>(name, true, "list of numbers"))->floats;
}

std::vector<std::string> NodeContext::texts(const char* name) {
  const auto* value = attribute_of<std::shared_ptr<const AttrList>>(name, false, "list of texts");
  std::vector<std::string> all;
  if (value != nullptr)
    for (const std::string_view each : (*value)->strings) all.emplace_back(each.substr(0, 4096));
  return all;
}

DataType NodeContext::file_type(const char* name, std::optional<DataType> otherwise) {
  const DataType* value = attribute_of<DataType>(name, !otherwise, "type");
  return value == nullptr ? *otherwise : *value;
}

DType NodeContext::dtype_attr(const char* name, std::optional<DataType> otherwise) {
  const DataType type = file_type(name, otherwise);
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype || *dtype == kString)
    unsupported(name,
                "elements of type " + (type_name(type).empty() ? std::to_string(static_cast<int32_t>(type))
                                                               : std::string(type_name(type))));
  return *dtype;
}

TensorShape NodeContext::shape_attr(const char* name) {
  return **attribute_of<std::shared_ptr<const TensorShape>>(name, true, "shape");
}

const TensorValue& NodeContext::tensor_attr(const char* name) {
  return **attribute_of<std::shared_ptr<const TensorValue>>(name, true, "tensor");
}

const FunctionRef& NodeContext::function(const char* name) {
  return **attribute_of<std::shared_ptr<const FunctionRef>>(name, true, "function");
}

std::vector<FunctionRef> NodeContext::functions(const char* name) {
  return (*attribute_of<std::shared_ptr<const AttrList>>(name, true, "list of functions"))->functions;
}

size_t NodeContext::list_size(const char* name) {
  const AttrList& list = **attribute_of<std::shared_ptr<const AttrList>>(name, true, "list");
  return std::max({list.types.size(), list.ints.size(), list.shapes.size(), list.strings.size()});
}

// Types of operands and results follow from the operands themselves; names with _ are notes of TensorFlow's
// own runtime.
void NodeContext::check_read() const {
  for (const auto& [name, attribute] : node_.attributes) {
    const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&attribute.value);
    const bool is_type =
        std::holds_alternative<DataType>(attribute.value) || (list != nullptr && !(*list)->types.empty());
    const bool is_read = read_.contains(name) || row_.knows(name) || name.starts_with('_') || is_type;
    if (!is_read)
      unsupported("attribute " + std::string(name.substr(0, 200)), "it means nothing that is known here");
  }
}

V NodeContext::file_constant(::tensormill::Tensor tensor) {
  std::string own = graph().unique_name(label());
  while (state_.reserved.contains(own)) own = graph().unique_name(own + "_");
  const V made = graph().add_constant(own, std::move(tensor));
  state_.from_file.insert(made);
  return made;
}

V NodeContext::variable(const Resource& resource) {
  if (resource.key.empty())
    invalid("variable \"" + resource.name.substr(0, 200) + "\" has no value in the checkpoint");
  const auto known = state_.variables.find(resource.key);
  if (known != state_.variables.end()) return known->second;
  const V made = file_constant(state_.loaded.variable(resource.key));
  state_.variables.emplace(resource.key, made);
  return made;
}

V NodeContext::weights(V value, const Shape& perm, const ir::SymShape& to) {
  Compose c(*this);
  const ir::Value& known = graph().value(value);
  if (!state_.from_file.contains(value) || !known.constant || !to.is_constant())
    return c.reshape(c.transpose(value, perm), to);
  return constant(state_.loaded.arranged(*known.constant, perm, to.hints()));
}

bool NodeContext::is_channels_first() {
  const std::string format = text("data_format", "NHWC");
  if (format == "NHWC" || format == "NDHWC") return false;
  if (format != "NCHW" && format != "NCDHW")
    unsupported("data_format", "\"" + format + "\" is not implemented");
  return true;
}

std::vector<Item> NodeContext::call(const FunctionRef& function, const std::vector<Item>& inputs) {
  std::optional<std::vector<Item>> outputs = state_.call(function, inputs);
  if (!outputs) throw CallFails();
  return *std::move(outputs);
}

void NodeContext::set_item(size_t index, Item item) {
  if (outputs_.size() <= index) outputs_.resize(index + 1);
  outputs_[index] = std::move(item);
}

void NodeContext::set_items(std::vector<Item> items) { outputs_ = std::move(items); }

void NodeContext::set_output(size_t index, V value) {
  set_item(index, {value, {}});
  // Values have the names of the nodes that make them, where these are free.
  if (is_own(value) && index == 0 && has_name_) rename_if_free(value, label());
}

}  // namespace tensormill::frontend::tensorflow
