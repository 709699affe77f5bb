#include "compiler/frontend/coreml/node_context.h"

#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/missing.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::coreml {

namespace {

constexpr build::UnreadRow kUnread[] = {
#define COREML_UNREAD(op, operand, why) {op, operand},
#include "compiler/frontend/coreml/unread_options.def"
#undef COREML_UNREAD
};

std::string base_name(const Operation& node, const std::string& label) {
  return node.outputs.empty() ? label : std::string(node.outputs.front().name);
}

}  // namespace

Item* BlockState::find(std::string_view name) {
  for (BlockState* state = this; state != nullptr; state = state->around) {
    const auto found = state->items.find(name);
    if (found != state->items.end()) return &found->second;
  }
  return nullptr;
}

NodeContext::NodeContext(BlockState& state, const Operation& node, const std::string& label)
    : OpBuilder(state.import.graph, label, base_name(node, label), state.import.reserved),
      state_(state),
      node_(node) {}

std::vector<Item*> NodeContext::given(const char* name) {
  read_.insert(name);
  std::vector<Item*> items;
  const auto own = [&](const Value& value) {
    Item& item = own_items_[&value];
    item.stored = &value;
    return &item;
  };
  if (const auto found = node_.inputs.find(name); found != node_.inputs.end()) {
    for (const Binding& binding : found->second) {
      Item* item = binding.value != nullptr ? own(*binding.value) : state_.find(binding.name);
      if (item == nullptr)
        invalid("value \"" + std::string(binding.name.substr(0, 200)) +
                "\" is read before anything makes it");
      items.push_back(item);
    }
  } else if (const auto attribute = node_.attributes.find(name); attribute != node_.attributes.end()) {
    items.push_back(own(attribute->second));
  }
  return items;
}

bool NodeContext::has(const char* name) { return !given(name).empty(); }

Item& NodeContext::single(const char* name) {
  const std::vector<Item*> items = given(name);
  if (items.size() != 1)
    invalid("operand " + std::string(name) +
            (items.empty() ? " is missing" : " is " + std::to_string(items.size()) + " values, expected 1"));
  return *items.front();
}

V NodeContext::value_of(Item& item) {
  if (!item.state.empty()) invalid("\"" + std::string(item.state) + "\" is a state, expected a tensor");
  if (item.value == ir::kAbsent) item.value = constant(state_.import.loaded.constant(*item.stored));
  return item.value;
}

V NodeContext::tensor(const char* name) { return value_of(single(name)); }

V& NodeContext::state(const char* name) {
  const Item& item = single(name);
  if (item.state.empty()) invalid("operand " + std::string(name) + " is no state");
  return state_.import.states.at(item.state);
}

ir::CheckedList<V> NodeContext::tensors(const char* name) {
  std::vector<V> values;
  for (Item* item : given(name)) values.push_back(value_of(*item));
  if (values.empty()) invalid("operand " + std::string(name) + " is missing");
  return values;
}

std::optional<Tensor> NodeContext::elements_of(Item& item) {
  if (item.stored != nullptr) return state_.import.loaded.constant(*item.stored);
  return graph().value(item.value).constant;
}

std::optional<Tensor> NodeContext::constant_of(const char* name) { return elements_of(single(name)); }

std::vector<Tensor> NodeContext::known_elements(const char* name) {
  std::vector<Tensor> all;
  for (Item* item : given(name)) {
    std::optional<Tensor> elements = elements_of(*item);
    const Tensor* known = elements ? &*elements : graph().value(item->value).tensor();
    if (known == nullptr) unsupported(name, "it is worked out by a run");
    if (known->dtype() == kString) invalid("operand " + std::string(name) + " is a text");
    all.push_back(*known);
  }
  if (all.empty()) invalid("operand " + std::string(name) + " is missing");
  return all;
}

std::vector<const Value*> NodeContext::listed(const char* name) {
  std::vector<const Value*> all;
  for (const Item* item : given(name)) {
    if (item->stored == nullptr) unsupported(name, "it is worked out by a run");
    if (const auto* list = std::get_if<std::vector<Value>>(&item->stored->data)) {
      for (const Value& value : *list) all.push_back(&value);
    } else {
      all.push_back(item->stored);
    }
  }
  return all;
}

ir::CheckedList<std::string> NodeContext::texts(const char* name) {
  std::vector<std::string> all;
  for (const Value* value : listed(name)) {
    const auto* elements = std::get_if<Elements>(&value->data);
    if (elements == nullptr || value->type.tensor.dtype != DataType::kString)
      invalid("operand " + std::string(name) + " is no text");
    for (const std::string_view each : elements->strings) {
      if (!is_utf8(each)) invalid("operand " + std::string(name) + " is no text of UTF-8");
      all.emplace_back(each);
    }
  }
  return all;
}

std::string NodeContext::text(const char* name, std::optional<std::string> otherwise) {
  const ir::CheckedList<std::string> all = texts(name);
  if (all.empty() && otherwise) return *std::move(otherwise);
  if (all.size() != 1) invalid("operand " + std::string(name) + " is no text");
  return all.front();
}

ir::CheckedList<double> NodeContext::reals(const char* name) {
  std::vector<double> all;
  for (const Tensor& elements : known_elements(name))
    for (int64_t i = 0; i < elements.num_elements(); ++i) all.push_back(elements.element_as_double(i));
  return all;
}

double NodeContext::real(const char* name, std::optional<double> otherwise) {
  if (otherwise && !has(name)) return *otherwise;
  const ir::CheckedList<double> all = reals(name);
  if (all.size() != 1) invalid("operand " + std::string(name) + " is no number");
  return all.front();
}

ir::CheckedList<bool> NodeContext::flags(const char* name) {
  std::vector<bool> all;
  for (const Tensor& elements : known_elements(name)) {
    if (elements.dtype() != DType::kBool) invalid("operand " + std::string(name) + " is no bool");
    for (int64_t i = 0; i < elements.num_elements(); ++i) all.push_back(elements.element_as_int(i) != 0);
  }
  return all;
}

bool NodeContext::flag(const char* name, std::optional<bool> otherwise) {
  if (otherwise && !has(name)) return *otherwise;
  const ir::CheckedList<bool> all = flags(name);
  if (all.size() != 1) invalid("operand " + std::string(name) + " is no bool");
  return all.front();
}

ir::Ints NodeContext::ints(const char* name, std::optional<std::vector<int64_t>> otherwise) {
  if (otherwise && !has(name)) return *std::move(otherwise);
  std::vector<int64_t> all;
  if (!is_known(name)) unsupported(name, "it is worked out by a run");
  for (const ir::SymInt& each : numbers(name)) all.push_back(each);
  return all;
}

int64_t NodeContext::integer(const char* name, std::optional<int64_t> otherwise) {
  if (otherwise && !has(name)) return *otherwise;
  const ir::Ints all = ints(name);
  if (all.size() != 1) invalid("operand " + std::string(name) + " is no number");
  return all.front();
}

bool NodeContext::is_known(const char* name) {
  const std::vector<Item*> items = given(name);
  return std::all_of(items.begin(), items.end(), [&](const Item* item) {
    if (item->stored != nullptr) return true;
    const ir::Value& value = graph().value(item->value);
    return value.constant.has_value() || static_cast<bool>(value.known);
  });
}

ir::SymShape NodeContext::numbers_of(const char* name, Item& item, std::optional<int64_t> low,
                                     const std::optional<ir::SymInt>& high) {
  std::optional<Tensor> stored;
  if (item.stored != nullptr) stored = state_.import.loaded.constant(*item.stored);
  const DType own = stored ? stored->dtype() : dtype(item.value);
  if (is_float(own) || own == kString) invalid("operand " + std::string(name) + " is no integers");
  return build::integers_of(*this, stored, item.value, name, low, high);
}

ir::SymShape NodeContext::numbers(const char* name, std::optional<int64_t> low,
                                  const std::optional<ir::SymInt>& high) {
  const std::vector<Item*> items = given(name);
  if (items.empty()) invalid("operand " + std::string(name) + " is missing");
  ir::SymShape all;
  for (Item* item : items) {
    const ir::SymShape part = numbers_of(name, *item, low, high);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

ir::SymInt NodeContext::number(const char* name, std::optional<int64_t> low,
                               const std::optional<ir::SymInt>& high) {
  const ir::SymShape all = numbers(name, low, high);
  if (all.size() != 1) invalid("operand " + std::string(name) + " is no number");
  return all[0];
}

int64_t NodeContext::axis(const char* name, int64_t rank, std::optional<int64_t> otherwise) {
  return normalize_axis(integer(name, otherwise), rank);
}

ir::Ints NodeContext::axes(const char* name, int64_t rank) {
  return has(name) ? normalize_axes(ints(name), rank) : Compose(*this).count_to(rank);
}

const TensorType& NodeContext::output_type(size_t index) const {
  if (index >= node_.outputs.size()) invalid("output " + std::to_string(index) + " is missing");
  return node_.outputs[index].type.tensor;
}

DType NodeContext::output_dtype(size_t index) const {
  const DataType type = output_type(index).dtype;
  const std::optional<DType> dtype = dtype_of(type);
  if (!dtype)
    unsupported("output " + std::to_string(index), "elements of type " + std::string(type_name(type)));
  return *dtype;
}

void NodeContext::set_output(size_t index, V value) {
  const TensorType& said = output_type(index);
  const NamedType& output = node_.outputs[index];
  if (output.type.kind == ValueKind::kTensor) {
    if (dtype(value) != output_dtype(index))
      invalid("output " + std::to_string(index) + " is " + std::string(dtype_long_name(dtype(value))) +
              ", the file says " + std::string(type_name(said.dtype)));
    const int64_t axes_of_text = dtype(value) == kString ? 1 : 0;
    for (size_t d = 0; d < said.dims.size() && d < shape(value).size(); ++d) {
      const ir::SymInt extent = shape(value)[d];
      if (said.dims[d] >= 0 && extent.is_constant() && extent.hint() != said.dims[d])
        invalid("output " + std::to_string(index) + " has shape " + to_string(shape(value)) +
                ", the file says " + std::to_string(said.dims[d]) + " in dim " + std::to_string(d));
    }
    if (said.has_rank && rank(value) != static_cast<int64_t>(said.dims.size()) + axes_of_text)
      invalid("output " + std::to_string(index) + " has rank " + std::to_string(rank(value)) +
              ", the file says " + std::to_string(said.dims.size()));
  }
  state_.items.insert_or_assign(output.name, Item{nullptr, value});
  if (is_own(value) && !graph().value(value).constant) rename_if_free(value, std::string(output.name));
}

void NodeContext::set_outputs(const std::vector<V>& values) {
  if (values.size() != num_outputs())
    invalid("it has " + std::to_string(num_outputs()) + " outputs, expected " +
            std::to_string(values.size()));
  for (size_t i = 0; i < values.size(); ++i) set_output(i, values[i]);
}

void NodeContext::set_alias(const char* name) {
  const Item item = single(name);
  output_type(0);
  state_.items.insert_or_assign(node_.outputs[0].name, item);
}

void NodeContext::set_stored(const Value& value) {
  output_type(0);
  state_.items.insert_or_assign(node_.outputs[0].name, Item{&value, ir::kAbsent});
}

const Block& NodeContext::block(size_t index) const {
  if (index >= node_.blocks.size()) invalid("block " + std::to_string(index) + " is missing");
  return node_.blocks[index];
}

std::vector<V> NodeContext::call(const Block& block, const std::vector<V>& inputs) {
  std::optional<std::vector<V>> outputs = state_.import.call(block, state_, inputs);
  if (!outputs) throw CallFails();
  return *std::move(outputs);
}

void NodeContext::check_read() const {
  const auto check = [&](std::string_view name) {
    if (read_.count(name) == 0 && !build::may_stay_unread(kUnread, op(), name))
      unsupported(std::string(name.substr(0, 200)), "the operand is not implemented");
  };
  for (const auto& [name, bindings] : node_.inputs)
    if (!bindings.empty()) check(name);
  for (const auto& [name, value] : node_.attributes) check(name);
}

}  // namespace tensormill::frontend::coreml
