#include "compiler/frontend/mxnet/node_context.h"

#include <algorithm>
#include <charconv>

#include "compiler/build/missing.h"
#include "compiler/frontend/mxnet/interface.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr build::UnreadRow kUnread[] = {
#define MXNET_UNREAD(op, option, why) {op, option},
#include "compiler/frontend/mxnet/unread_options.def"
#undef MXNET_UNREAD
};

/// "__NAME__" is a note of whoever made the symbol; before 1.0 these were called NAME, or OPERAND_NAME.
bool may_stay_unread(std::string_view op, std::string_view option) {
  const auto is_note = [&](const build::UnreadRow& row) {
    return row.op == "*" && option.ends_with("_" + std::string(row.option));
  };
  return option.starts_with("__") || std::any_of(std::begin(kUnread), std::end(kUnread), is_note) ||
         build::may_stay_unread(kUnread, op, option);
}

/// Both ends without blanks and what encloses a list.
std::vector<std::string_view> entries_of(std::string_view list) {
  if (list.size() >= 2 && (list.front() == '(' || list.front() == '['))
    list = list.substr(1, list.size() - 2);
  std::vector<std::string_view> entries;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (!entry.empty()) entries.push_back(entry);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return entries;
}

std::optional<double> real_of(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string node_label(const Node& node, size_t index) {
  return node.name.empty() ? node.op.substr(0, 500) + "#" + std::to_string(index) : node.name.substr(0, 500);
}

NodeContext::NodeContext(ImportState& state, size_t index, const std::string& label)
    : OpBuilder(state.graph, label, label, state.reserved),
      state_(state),
      index_(index),
      node_(state.loaded.symbol().nodes[index]) {}

V NodeContext::value_of(const Entry& entry) {
  const auto found = state_.values.find({entry.node, entry.index});
  if (found != state_.values.end()) return found->second;
  const Node& made = state_.loaded.symbol().nodes[entry.node];
  const Parameter* parameter = made.is_variable() ? state_.loaded.find(made.name) : nullptr;
  if (parameter == nullptr || entry.index != 0)
    invalid("it reads output " + std::to_string(entry.index) + " of \"" + made.name.substr(0, 200) +
            "\", which is not there");
  const V value = constant(state_.loaded.tensor(*parameter));
  state_.values.emplace(std::pair(entry.node, entry.index), value);
  return value;
}

V NodeContext::input(size_t index) {
  if (!has_input(index))
    invalid("it has " + std::to_string(num_inputs()) + " inputs, input " + std::to_string(index) +
            " is missing");
  return value_of(node_.inputs[index]);
}

ir::CheckedList<V> NodeContext::inputs() {
  std::vector<V> all;
  for (size_t i = 0; i < num_inputs(); ++i) all.push_back(input(i));
  if (all.empty()) invalid("it has no inputs");
  return all;
}

V NodeContext::input_or(size_t index, const char* name) {
  if (has_input(index)) return input(index);
  const std::string implicit = node_.name + "_" + name;
  const auto found = state_.implicit.find(implicit);
  if (found != state_.implicit.end()) return found->second;
  const Parameter* parameter = state_.loaded.find(implicit);
  if (parameter == nullptr) invalid("the file has no parameter \"" + implicit.substr(0, 200) + "\"");
  return state_.implicit.emplace(implicit, constant(state_.loaded.tensor(*parameter))).first->second;
}

const std::string* NodeContext::given(const char* name) {
  read_.insert(name);
  const auto found = node_.attributes.find(name);
  return found == node_.attributes.end() || found->second == "None" ? nullptr : &found->second;
}

void NodeContext::wrong(const char* name, const std::string& value) const {
  invalid("attribute " + std::string(name) + " is \"" + value.substr(0, 200) + "\"");
}

bool NodeContext::has(const char* name) { return given(name) != nullptr; }

std::string NodeContext::text(const char* name, std::optional<std::string> otherwise) {
  if (const std::string* value = given(name)) return *value;
  if (!otherwise) invalid("attribute " + std::string(name) + " is missing");
  return *std::move(otherwise);
}

double NodeContext::real(const char* name, std::optional<double> otherwise) {
  if (otherwise && !has(name)) return *otherwise;
  const std::string value = text(name);
  if (const std::optional<double> number = real_of(value)) return *number;
  if (value == "True" || value == "False") return value == "True" ? 1 : 0;
  wrong(name, value);
}

bool NodeContext::flag(const char* name, bool otherwise) {
  if (!has(name)) return otherwise;
  const std::string value = text(name);
  if (value == "True" || value == "true" || value == "1") return true;
  if (value == "False" || value == "false" || value == "0") return false;
  wrong(name, value);
}

std::vector<std::optional<int64_t>> NodeContext::maybe_ints(const char* name) {
  const std::string value = text(name);
  std::vector<std::optional<int64_t>> all;
  for (const std::string_view entry : entries_of(value)) {
    if (entry == "None") {
      all.emplace_back();
      continue;
    }
    const std::optional<std::vector<int64_t>> number = listed_numbers(entry);
    if (!number || number->size() != 1) wrong(name, value);
    all.emplace_back((*number)[0]);
  }
  return all;
}

ir::Ints NodeContext::ints(const char* name, std::optional<std::vector<int64_t>> otherwise) {
  if (otherwise && !has(name)) return *std::move(otherwise);
  std::vector<int64_t> all;
  for (const std::optional<int64_t>& each : maybe_ints(name)) {
    if (!each) wrong(name, text(name));
    all.push_back(*each);
  }
  return all;
}

int64_t NodeContext::integer(const char* name, std::optional<int64_t> otherwise) {
  if (otherwise && !has(name)) return *otherwise;
  const std::vector<int64_t> all = ints(name);
  if (all.size() != 1) wrong(name, text(name));
  return all.front();
}

ir::CheckedList<double> NodeContext::reals(const char* name, std::optional<std::vector<double>> otherwise) {
  if (otherwise && !has(name)) return *std::move(otherwise);
  const std::string value = text(name);
  std::vector<double> all;
  for (const std::string_view entry : entries_of(value)) {
    const std::optional<double> number = real_of(entry);
    if (!number) wrong(name, value);
    all.push_back(*number);
  }
  return all;
}

DType NodeContext::dtype_named(const char* name, DType otherwise) {
  if (!has(name)) return otherwise;
  const std::string value = text(name);
  if (const std::optional<DType> dtype = dtype_from_long_name(value)) return *dtype;
  unsupported(name, "\"" + value.substr(0, 40) + "\" is not implemented");
}

int64_t NodeContext::axis(const char* name, int64_t rank, std::optional<int64_t> otherwise) {
  return normalize_axis(integer(name, otherwise), rank);
}

ir::Ints NodeContext::axes(const char* name, int64_t rank) {
  const std::vector<int64_t> named = ints(name, std::vector<int64_t>());
  return named.empty() ? Compose(*this).count_to(rank) : normalize_axes(named, rank);
}

void NodeContext::set_output(size_t index, V value) {
  state_.values.insert_or_assign(std::pair(index_, index), value);
  if (is_own(value) && !graph().value(value).constant) rename_if_free(value, output_name(node_, index));
}

void NodeContext::set_outputs(const std::vector<V>& values) {
  for (size_t i = 0; i < values.size(); ++i) set_output(i, values[i]);
}

void NodeContext::check_read() const {
  for (const auto& [name, value] : node_.attributes)
    if (read_.count(name) == 0 && !may_stay_unread(op(), name))
      unsupported(name.substr(0, 200), "the attribute is not implemented");
}

}  // namespace tensormill::frontend::mxnet
