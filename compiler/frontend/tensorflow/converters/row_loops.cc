#include "compiler/frontend/tensorflow/converters/row_loops.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "compiler/ir/loops.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

const TensorList* list_of(const Item& item) {
  const auto* list = std::get_if<std::shared_ptr<const TensorList>>(&item.value);
  return list == nullptr ? nullptr : list->get();
}

bool is_open(const Item& item) {
  const TensorList* list = list_of(item);
  return list != nullptr && list->length.has_value();
}

/// What becomes of a value that iterations hand on.
enum class Kind : uint8_t {
  kKept,     ///< the same in all
  kCounter,  ///< 1 more in each
  kCarried,  ///< a tensor
  kMade      ///< an open list, of which each iteration sets its own element
};

class RowLoop {
public:
  RowLoop(NodeContext& node, const LoopForm& form, const std::vector<Item>& initial)
      : node_(node), c_(node), form_(form), condition_(form.condition), body_(form.body), initial_(initial) {}

  std::vector<Item> run() {
    find_kinds();
    find_trips();
    const std::vector<V> begun = begin();
    const std::vector<Item> arguments = arguments_of(begun);
    const size_t bound = bound_symbols().size();
    const std::vector<Item> next = form_.step(node_, arguments);
    if (next.size() != initial_.size())
      node_.invalid("its body has another number of outputs than of inputs");
    return end(begun, arguments, next, bound);
  }

private:
  [[noreturn]] void refuse(const std::string& what) const {
    node_.unsupported("body", "in a loop over rows " + what + " is not implemented");
  }

  void find_kinds() {
    if (body_.num_results() != initial_.size())
      node_.invalid("its body has another number of outputs than of inputs");
    for (size_t i = 0; i < initial_.size(); ++i) {
      const bool is_kept = body_.argument(body_.result(i)) == i;
      const bool is_tensor = std::holds_alternative<V>(initial_[i].value);
      if (is_kept) {
        kinds_.push_back(Kind::kKept);
      } else if (is_open(initial_[i])) {
        if (list_of(initial_[i])->whole != ir::kAbsent || !is_set_once(i))
          refuse("a list whose elements are not set one by one");
        kinds_.push_back(Kind::kMade);
      } else if (!is_tensor) {
        refuse("another value than a tensor or a list of its rows");
      } else {
        kinds_.push_back(is_counted(i) ? Kind::kCounter : Kind::kCarried);
      }
    }
  }

  bool is_set_once(size_t index) const {
    const tensorflow::Node* set = body_.node_of(body_.result(index));
    if (set == nullptr) return false;
    const size_t list = set->op == "TensorListSetItem" ? 0 : 3;
    return (list == 0 || set->op == "TensorArrayWriteV3") && set->inputs.size() > list &&
           body_.argument(set->inputs[list]) == index;
  }

  /// Whether something is added to the argument, which is known at first: that it is 1 is seen later.
  bool is_counted(size_t index) const {
    const tensorflow::Node* sum = body_.node_of(body_.result(index));
    if (sum == nullptr || (sum->op != "AddV2" && sum->op != "Add") || sum->inputs.size() < 2) return false;
    const bool is_first = body_.argument(sum->inputs[0]) == index;
    if (!is_first && body_.argument(sum->inputs[1]) != index) return false;
    const tensorflow::Node* more = body_.node_of(body_.source(sum->inputs[is_first ? 1 : 0]));
    const V initial = std::get<V>(initial_[index].value);
    return more != nullptr && more->op == "Const" && node_.is_known(index) &&
           !is_float(node_.dtype(initial)) && node_.rank(initial) == 0 &&
           node_.known_int(index, "a counter").is_constant();
  }

  int64_t start_of(size_t counter) const { return node_.known_int(counter, "a counter"); }

  /// Conditions are that counters are less than numbers that stay: of as many elements as lists have.
  void find_trips() {
    const std::optional<std::vector<LoopLimit>> limits = limits_of(condition_);
    if (!limits)
      node_.unsupported("cond",
                        "in a loop over rows another condition than that a counter is less than a number is "
                        "not implemented");
    for (const auto& [counter, limit] : *limits) add_limit(counter, limit);
    for (size_t i = 0; i < initial_.size(); ++i) {
      // What has no elements in it only says which list it is.
      const bool has_rows = is_open(initial_[i]) && (kinds_[i] == Kind::kMade || is_scanned(i));
      first_.push_back(has_rows ? first_of(*list_of(initial_[i])) : 0);
    }
  }

  /// The first element that the loop comes to: where it goes over a part, the others are there already.
  int64_t first_of(const TensorList& list) const {
    const ir::SymInt before = *list.length - trips_;
    const auto set = static_cast<int64_t>(list.head.size());
    if (before.is_constant() && (before.hint() == set || (before.hint() > set && list.whole != ir::kAbsent)))
      return before.hint();
    if (set == 0 && ir::demand(ir::Relation::kEqual, trips_, *list.length)) return 0;
    refuse("a list of " + to_string(*list.length) + " elements, of which " + std::to_string(set) +
           " are set, for " + to_string(trips_) + " iterations");
  }

  void add_limit(std::optional<size_t> counter, std::optional<size_t> limit) {
    if (!counter || !limit || kinds_[*counter] != Kind::kCounter || kinds_[*limit] != Kind::kKept)
      node_.unsupported("cond", "in a loop over rows a number that changes is not implemented as its limit");
    const ir::SymInt trips = node_.number_at(*limit, "a loop's limit") - start_of(*counter);
    // Of two limits the one that is met first counts.
    const ir::SymInt more = has_trips_ ? trips - trips_ : ir::SymInt(0);
    if (!more.is_constant() && !ir::demand(ir::Relation::kEqual, trips_, trips))
      node_.unsupported("cond", "limits that differ are not implemented");
    if (!has_trips_ || (more.is_constant() && more.hint() < 0)) trips_ = trips;
    has_trips_ = true;
  }

  std::vector<V> begin() {
    number_ = node_.import_state().loops++;
    std::vector<V> operands{c_.dims({trips_}, {1})};
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] != Kind::kCarried) continue;
      operands.push_back(checked(std::get<V>(initial_[i].value)));
      ++carried_;
    }
    for (size_t i = 0; i < initial_.size(); ++i)
      if (is_scanned(i)) operands.push_back(from_first(i));
    return node_.add_many(
        std::string(ir::kLoopBegin), operands,
        {{"loop", number_}, {"carried", carried_}, {"max_trips", int64_t{1}}, {"condition", int64_t{0}}});
  }

  bool is_scanned(size_t index) const {
    return kinds_[index] == Kind::kKept && is_open(initial_[index]) &&
           list_of(initial_[index])->whole != ir::kAbsent;
  }

  V from_first(size_t index) {
    const V whole = list_of(initial_[index])->whole;
    return first_[index] == 0 ? whole : c_.slice(whole, 0, first_[index], trips_);
  }

  /// A tensor whose elements are all there.
  V checked(V value) const {
    if (node_.dtype(value) == ::tensormill::kString) refuse("a tensor of strings");
    if (node_.import_state().padded.contains(value)) refuse("a tensor of padded rows");
    return value;
  }

  std::vector<Item> arguments_of(const std::vector<V>& begun) {
    std::vector<Item> arguments(initial_.size());
    std::map<int64_t, std::vector<V>> places;  // by where counters start
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] != Kind::kCounter) continue;
      const int64_t start = start_of(i);
      const V number = c_.cast(begun[0], node_.dtype(std::get<V>(initial_[i].value)));
      const V own = start == 0 ? number : c_.plus(number, static_cast<double>(start));
      places[start].push_back(own);
      arguments[i].value = own;
    }
    size_t next = 1, row = 1 + static_cast<size_t>(carried_);
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] == Kind::kCounter) continue;
      if (kinds_[i] == Kind::kCarried) {
        arguments[i].value = begun[next++];
      } else if (is_open(initial_[i])) {
        TensorList list = *list_of(initial_[i]);
        list.places = places[first_[i]];
        list.row = is_scanned(i) ? begun[row++] : ir::kAbsent;
        arguments[i].value = std::make_shared<const TensorList>(std::move(list));
      } else {
        arguments[i].value = initial_[i].value;
      }
    }
    return arguments;
  }

  /// Symbols that runs bind, as far as there are nodes that do so.
  std::set<std::string> bound_symbols() const {
    std::set<std::string> names;
    if (const auto& table = node_.graph().symbols(); table != nullptr)
      for (const ir::RunSymbol& symbol : table->of_run()) names.insert(symbol.name);
    return names;
  }

  /// Extents that an iteration works out are no others' extents.
  void check_extents(V value, size_t bound) const {
    const auto& table = node_.graph().symbols();
    for (const ir::SymInt& extent : node_.shape(value)) {
      for (size_t i = bound; table != nullptr && i < table->of_run().size(); ++i)
        if (extent.expr().mentions(table->of_run()[i].name))
          refuse("a result of other extents in each iteration");
    }
  }

  void check_counter(V argument, const Item& next) const {
    const V* value = std::get_if<V>(&next.value);
    const ir::NodeId producer = value == nullptr ? ir::kAbsent : node_.graph().value(*value).producer;
    if (producer != ir::kAbsent) {
      const ir::Node& sum = node_.graph().node(producer);
      const bool is_sum = sum.op == "add" && (sum.inputs[0] == argument || sum.inputs[1] == argument);
      const V more = is_sum ? sum.inputs[sum.inputs[0] == argument ? 1 : 0] : ir::kAbsent;
      const ::tensormill::Tensor* known = more == ir::kAbsent ? nullptr : node_.graph().value(more).tensor();
      if (known != nullptr && known->num_elements() == 1 && known->element_as_int(0) == 1) return;
    }
    refuse("a counter that does not grow by 1");
  }

  std::vector<Item> end(const std::vector<V>& begun, const std::vector<Item>& arguments,
                        const std::vector<Item>& next, size_t bound) {
    std::vector<V> operands{begun[0]}, parts;
    for (size_t i = 0; i < next.size(); ++i) {
      if (kinds_[i] == Kind::kCounter) check_counter(std::get<V>(arguments[i].value), next[i]);
      if (kinds_[i] == Kind::kCarried) operands.push_back(carried_on(initial_[i], next[i], bound));
      if (kinds_[i] != Kind::kMade) continue;
      const TensorList* list = list_of(next[i]);
      if (list == nullptr || list->row == ir::kAbsent) refuse("a list whose elements are not set one by one");
      parts.push_back(checked(list->row));
      check_extents(parts.back(), bound);
    }
    operands.insert(operands.end(), parts.begin(), parts.end());
    const std::vector<V> made = node_.add_many(std::string(ir::kLoopEnd), operands,
                                               {{"loop", number_},
                                                {"carried", carried_},
                                                {"condition", int64_t{0}},
                                                {"trips", parts.empty() ? ir::SymInt(0) : trips_},
                                                {"counted", int64_t{0}}});
    std::vector<Item> results;
    auto carried = made.begin(), part = made.begin() + static_cast<std::ptrdiff_t>(carried_);
    for (size_t i = 0; i < next.size(); ++i) {
      if (kinds_[i] == Kind::kKept) {
        results.push_back({initial_[i].value, {}});
      } else if (kinds_[i] == Kind::kCarried) {
        results.push_back({*carried++, {}});
      } else if (kinds_[i] == Kind::kCounter) {
        const DType dtype = node_.dtype(std::get<V>(initial_[i].value));
        results.push_back({c_.cast(c_.dims({trips_ + start_of(i)}, {}), dtype), {}});
      } else {
        TensorList list = *list_of(initial_[i]);
        std::vector<V> rows;
        for (const V each : list.head) rows.push_back(c_.unsqueeze(each, 0));
        rows.push_back(*part++);
        list.whole = rows.size() == 1 ? rows[0] : c_.concat(rows, 0);
        list.head.clear();
        results.push_back({std::make_shared<const TensorList>(std::move(list)), {}});
      }
    }
    return results;
  }

  V carried_on(const Item& from, const Item& to, size_t bound) const {
    const V* value = std::get_if<V>(&to.value);
    if (value == nullptr) refuse("a tensor that becomes a list");
    const ir::ValueType first = node_.type(std::get<V>(from.value)), last = node_.type(checked(*value));
    check_extents(*value, bound);
    if (first.dtype != last.dtype || !ir::demand_equal(first.shape, last.shape))
      refuse("a tensor " + ir::to_string(first) + " that becomes " + ir::to_string(last));
    return *value;
  }

  NodeContext& node_;
  Compose c_;
  const LoopForm& form_;
  const LoopText &condition_, &body_;
  const std::vector<Item>& initial_;
  std::vector<Kind> kinds_;
  std::vector<int64_t> first_;  ///< of lists: the first element that the loop comes to
  ir::SymInt trips_ = 0;
  bool has_trips_ = false;
  int64_t number_ = 0, carried_ = 0;
};

const Function& function_of(NodeContext& node, const FunctionRef& called) {
  const auto& functions = node.import_state().loaded.model().graph.functions;
  const auto found = functions.find(called.name);
  if (found == functions.end())
    node.invalid("there is no function \"" + std::string(called.name.substr(0, 200)) + "\"");
  if (found->second.inputs.size() != node.num_inputs())
    node.invalid("a function of another number of arguments than there are operands");
  return found->second;
}

}  // namespace

LoopText::LoopText(const Function& function) : is_function_(true) {
  for (const Node& node : function.nodes) nodes_.emplace(node.name, &node);
  for (size_t i = 0; i < function.inputs.size(); ++i) values_.emplace(function.inputs[i].name, i);
  for (const Argument& output : function.outputs) {
    const auto found = function.results.find(output.name);
    results_.push_back(found == function.results.end() ? std::string_view() : found->second);
  }
}

LoopText::LoopText(const std::vector<Node>& nodes, std::map<std::string_view, size_t> values,
                   std::vector<std::string_view> results)
    : is_function_(false), values_(std::move(values)), results_(std::move(results)) {
  for (const Node& node : nodes) nodes_.emplace(node.name, &node);
}

std::string_view LoopText::source(std::string_view text) const {
  constexpr int kMostSteps = 64;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* node = node_of(text);
    if (node == nullptr || node->inputs.empty()) break;
    const std::string_view from = node->inputs[0];
    const bool is_switch = !is_function_ && (node->op == "Switch" || node->op == "RefSwitch") &&
                           values_.contains(from.substr(0, from.find(':')));
    if (!is_switch && node->op != "Identity") break;
    text = from;
  }
  return text;
}

const Node* LoopText::node_of(std::string_view text) const {
  const size_t colon = text.find(':');
  if (is_function_ && colon == std::string_view::npos) return nullptr;
  const std::string_view name = text.substr(0, colon);
  if (!is_function_ && values_.contains(name)) return nullptr;
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second;
}

std::optional<size_t> LoopText::argument(std::string_view text) const {
  std::string_view name = source(text);
  if (node_of(name) == nullptr) name = name.substr(0, name.find(':'));
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<LoopLimit>> limits_of(const LoopText& condition) {
  constexpr size_t kMostConditions = 16;
  if (condition.num_results() != 1) return std::nullopt;
  std::vector<std::string_view> open{condition.result(0)};
  std::vector<LoopLimit> limits;
  for (size_t seen = 0; !open.empty(); ++seen) {
    const Node* at = condition.node_of(open.back());
    open.pop_back();
    if (at == nullptr || at->inputs.size() < 2 || seen == kMostConditions) return std::nullopt;
    if (at->op == "LogicalAnd") {
      open.push_back(condition.source(at->inputs[0]));
      open.push_back(condition.source(at->inputs[1]));
    } else if (at->op == "Less") {
      limits.push_back({condition.argument(at->inputs[0]), condition.argument(at->inputs[1])});
    } else {
      return std::nullopt;
    }
  }
  return limits;
}

bool has_open_list(const std::vector<Item>& items) {
  return std::any_of(items.begin(), items.end(), is_open);
}

std::vector<Item> looped_over_rows(NodeContext& node, const LoopForm& form,
                                   const std::vector<Item>& initial) {
  return RowLoop(node, form, initial).run();
}

std::vector<Item> looped_over_rows(NodeContext& node, const FunctionRef& condition, const FunctionRef& body,
                                   const std::vector<Item>& initial) {
  const LoopForm form = {
      LoopText(function_of(node, condition)), LoopText(function_of(node, body)),
      [&](NodeContext& own, const std::vector<Item>& values) { return own.call(body, values); }};
  return looped_over_rows(node, form, initial);
}

}  // namespace tensormill::frontend::tensorflow
