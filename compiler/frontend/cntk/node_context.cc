#include "compiler/frontend/cntk/node_context.h"

#include <algorithm>

#include "compiler/build/missing.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::cntk {

namespace {

constexpr build::UnreadRow kUnread[] = {
#define CNTK_UNREAD(op, attribute, reason) {op, attribute},
#include "compiler/frontend/cntk/unread_options.def"
#undef CNTK_UNREAD
};

std::string base_of(const Function& function) {
  return function.name.empty() ? output_uid(function, 0) : std::string(function.name);
}

}  // namespace

std::string function_label(const Function& function) {
  return std::string((function.name.empty() ? function.uid : function.name).substr(0, 500));
}

NodeContext::NodeContext(ImportState& state, size_t function)
    : OpBuilder(state.graph, function_label(state.loaded.model().functions[function]),
                base_of(state.loaded.model().functions[function]), state.reserved),
      state_(state),
      index_(function),
      function_(state.loaded.model().functions[function]),
      sources_(state.loaded.walk().operands[function]) {}

ir::SymShape NodeContext::sample(const Item& item) const {
  const ir::SymShape all = shape(item.value);
  return {all.begin() + item.offset(), all.end()};
}

Item NodeContext::operand(size_t index) {
  if (!has_operand(index)) invalid("operand " + std::to_string(index) + " is missing");
  read_operands_.insert(index);
  const Source& source = sources_[index];
  const auto found = state_.items.find(source);
  if (found != state_.items.end()) return found->second;
  if (!source.is_variable) invalid("nothing makes operand " + std::to_string(index));
  const Item item{constant(state_.loaded.tensor(state_.loaded.model().variables[source.index])), false};
  return state_.items.emplace(source, item).first->second;
}

NodeContext::Aligned NodeContext::aligned(const std::vector<Item>& items) {
  Aligned made;
  int64_t most = 0;
  for (const Item& item : items) {
    made.has_batch = made.has_batch || item.has_batch;
    most = std::max(most, sample_rank(item));
  }
  for (const Item& item : items) {
    ir::SymShape to = shape(item.value);
    if (item.has_batch) to.insert(to.begin() + 1, static_cast<size_t>(most - sample_rank(item)), 1);
    made.values.push_back(Compose(*this).reshape(item.value, to));
  }
  return made;
}

NodeContext::Aligned NodeContext::aligned_operands() {
  std::vector<Item> items;
  for (size_t i = 0; i < num_operands(); ++i) items.push_back(operand(i));
  return aligned(items);
}

V NodeContext::with_sample(const Item& like, V value, const ir::SymShape& sample) {
  ir::SymShape to = sample;
  if (like.has_batch) to.insert(to.begin(), shape(like.value)[0]);
  return Compose(*this).reshape(value, to);
}

const Value* NodeContext::attribute(const char* name) {
  read_.insert(name);
  return function_.attributes.find(name);
}

void NodeContext::wrong(const char* name) const {
  invalid("attribute " + std::string(name) + " is missing, or of another kind");
}

bool NodeContext::has(const char* name) { return attribute(name) != nullptr; }

int64_t NodeContext::integer(const char* name, std::optional<int64_t> otherwise) {
  const Value* found = attribute(name);
  if (found == nullptr && otherwise) return *otherwise;
  const auto* number = found == nullptr ? nullptr : found->as<int64_t>();
  if (number == nullptr) wrong(name);
  return *number;
}

double NodeContext::real(const char* name, std::optional<double> otherwise) {
  const Value* found = attribute(name);
  if (found == nullptr && otherwise) return *otherwise;
  const auto* number = found == nullptr ? nullptr : found->as<double>();
  if (number != nullptr) return *number;
  const auto* whole = found == nullptr ? nullptr : found->as<int64_t>();
  if (whole == nullptr) wrong(name);
  return static_cast<double>(*whole);
}

bool NodeContext::flag(const char* name, std::optional<bool> otherwise) {
  const Value* found = attribute(name);
  if (found == nullptr && otherwise) return *otherwise;
  const auto* is_set = found == nullptr ? nullptr : found->as<bool>();
  if (is_set == nullptr) wrong(name);
  return *is_set;
}

std::string NodeContext::text(const char* name) {
  const Value* found = attribute(name);
  const auto* given = found == nullptr ? nullptr : found->as<std::string_view>();
  if (given == nullptr || !is_utf8(*given)) wrong(name);
  return std::string(given->substr(0, 200));
}

ir::Ints NodeContext::dims(const char* name) {
  const Value* found = attribute(name);
  if (found == nullptr) return {};
  const auto* given = found->as<Dims>();
  if (given == nullptr) wrong(name);
  return *given;
}

template <typename T>
std::vector<T> NodeContext::list(const char* name) {
  const Value* found = attribute(name);
  if (found == nullptr) return {};
  const auto* given = found->as<List>();
  if (given == nullptr) wrong(name);
  std::vector<T> values;
  for (const Value& each : *given) {
    const T* value = each.as<T>();
    if (value == nullptr) wrong(name);
    values.push_back(*value);
  }
  return values;
}

ir::CheckedList<bool> NodeContext::flags(const char* name) { return list<bool>(name); }
ir::Ints NodeContext::integers(const char* name) { return list<int64_t>(name); }
std::vector<Axis> NodeContext::axes(const char* name) { return list<Axis>(name); }

int64_t NodeContext::place_of(const Axis& axis, int64_t rank) const {
  if (axis.index >= kFirstMark)
    unsupported("axis", "\"" + std::string(axis.name.substr(0, 100)) + "\" is no axis of a sample");
  const int64_t own = axis.index < 0 ? axis.index + rank : axis.index;
  if (own < 0 || own >= rank)
    invalid("axis " + std::to_string(axis.index) + " of an operand of rank " + std::to_string(rank));
  return rank - 1 - own;
}

int64_t NodeContext::place(const char* name, int64_t rank, std::optional<int64_t> otherwise) {
  const Value* found = attribute(name);
  if (found == nullptr && otherwise) return *otherwise;
  const Axis* axis = found == nullptr ? nullptr : found->as<Axis>();
  if (axis == nullptr) wrong(name);
  return place_of(*axis, rank);
}

void NodeContext::set_output(size_t index, V value, bool has_batch) {
  state_.items.insert_or_assign(Source{false, index_, index}, Item{value, has_batch});
  if (!is_own(value) || graph().value(value).constant) return;
  const bool is_named = index == 0 && !function_.name.empty() && is_utf8(function_.name);
  const std::string name = is_named ? std::string(function_.name) : output_uid(function_, index);
  if (is_utf8(name)) rename_if_free(value, name);
}

void NodeContext::check_read() const {
  for (size_t i = 0; i < num_operands(); ++i)
    if (read_operands_.count(i) == 0)
      unsupported("operand " + std::to_string(i), "the operand is not implemented");
  for (const Entry& each : function_.attributes.entries)
    if (read_.count(each.key) == 0 && !build::may_stay_unread(kUnread, op(), each.key))
      unsupported(std::string(each.key.substr(0, 200)), "the attribute is not implemented");
}

}  // namespace tensormill::frontend::cntk
