#include "compiler/frontend/tensorflow/converters/row_loops.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "compiler/frontend/tensorflow/converters/open_lists.h"
#include "compiler/frontend/tensorflow/converters/ragged_rows.h"
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
  kInvariant,  ///< the same in all
  kCounter,    ///< 1 more in each
  kCarried,    ///< a tensor
  kMade        ///< an open list, of which each iteration sets its own element
};

class RowLoop {
public:
  RowLoop(NodeContext& node, const LoopForm& form, const std::vector<Item>& initial)
      : node_(node), c_(node), form_(form), condition_(form.condition), body_(form.body), initial_(initial) {}

  std::vector<Item> run() {
    find_kinds();
    find_trips();
    const std::vector<V> begun = begin();
    const size_t bound =
        node_.graph().symbols() == nullptr ? 0 : node_.graph().symbols()->run_time_symbols().size();
    const std::vector<Item> arguments = arguments_of(begun);
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
        kinds_.push_back(Kind::kInvariant);
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

  /// Whether something is added to the argument, which is known at first: 1 that stays, or a constant, of
  /// which is seen later that it is 1.
  bool is_counted(size_t index) const {
    const tensorflow::Node* sum = body_.node_of(body_.result(index));
    if (sum == nullptr || (sum->op != "AddV2" && sum->op != "Add") || sum->inputs.size() < 2) return false;
    const bool is_first = body_.argument(sum->inputs[0]) == index;
    if (!is_first && body_.argument(sum->inputs[1]) != index) return false;
    const V initial = std::get<V>(initial_[index].value);
    return adds_one(body_.source(sum->inputs[is_first ? 1 : 0])) && node_.is_known(index) &&
           !is_float(node_.dtype(initial)) && node_.rank(initial) == 0 &&
           node_.known_int(index, "a counter").is_constant();
  }

  bool adds_one(std::string_view text) const {
    const std::optional<size_t> kept = body_.argument(text);
    if (kept && *kept < initial_.size()) {
      const V* value = std::get_if<V>(&initial_[*kept].value);
      const ::tensormill::Tensor* known = value == nullptr ? nullptr : node_.graph().value(*value).tensor();
      return body_.argument(body_.result(*kept)) == kept && known != nullptr && !is_float(known->dtype()) &&
             known->num_elements() == 1 && known->element_as_int(0) == 1;
    }
    const tensorflow::Node* more = body_.node_of(text);
    return more != nullptr && more->op == "Const";
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
      // What has no elements in it only says which list it is; of others that are read alone iterations may
      // want any elements.
      std::optional<int64_t> first;
      if (kinds_[i] == Kind::kMade) {
        first = first_made(*list_of(initial_[i]));
      } else if (kinds_[i] == Kind::kInvariant && is_open(initial_[i]) &&
                 list_of(initial_[i])->whole != ir::kAbsent) {
        first = first_read(*list_of(initial_[i]));
      }
      first_.push_back(first);
    }
  }

  /// The first element that iterations get as their own: the loop goes on to the last one.
  std::optional<int64_t> first_read(const TensorList& list) const {
    const ir::SymInt before = *list.length - trips_;
    if (before.is_constant()) return before.hint() < 0 ? std::nullopt : std::optional(before.hint());
    return is_proven(ir::Relation::kEqual, trips_, *list.length) ? std::optional<int64_t>(0) : std::nullopt;
  }

  /// The first element that the loop sets: those before it are there already.
  int64_t first_made(const TensorList& list) const {
    const ir::SymInt before = *list.length - trips_;
    const auto set = static_cast<int64_t>(list.head.size());
    if (before.is_constant() && before.hint() == set) return set;
    if (set == 0 && ir::demand(ir::Relation::kEqual, trips_, *list.length)) return 0;
    refuse("a list of " + to_string(*list.length) + " elements, of which " + std::to_string(set) +
           " are set, for " + to_string(trips_) + " iterations");
  }

  void add_limit(std::optional<size_t> counter, std::optional<size_t> limit) {
    if (!counter || !limit || kinds_[*counter] != Kind::kCounter || kinds_[*limit] != Kind::kInvariant)
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
    // A number that is less than that from which is counted means no iteration.
    trip_count_ = c_.dims({trips_}, {1});
    if (!has_natural_trips()) trip_count_ = c_.binary("max", trip_count_, c_.ints({0}, {1}));
    std::vector<V> operands{trip_count_};
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] != Kind::kCarried) continue;
      operands.push_back(checked(std::get<V>(initial_[i].value)));
      ++carried_;
    }
    for (size_t i = 0; i < initial_.size(); ++i)
      if (is_scanned(i)) add_scanned(*list_of(initial_[i]), *first_[i], operands);
    return node_.add_many(
        std::string(ir::kLoopBegin), operands,
        {{"loop", number_}, {"carried", carried_}, {"max_trips", int64_t{1}}, {"condition", int64_t{0}}});
  }

  /// Whether the number of iterations is 0 or more, whatever the extents.
  bool has_natural_trips() const {
    if (trips_.is_constant()) return trips_.hint() >= 0;
    return trips_.table()->proves_with_zeros(ir::Relation::kLessEqual, 0, trips_) == std::optional(true);
  }

  bool is_scanned(size_t index) const {
    return kinds_[index] == Kind::kInvariant && first_[index].has_value();
  }

  /// Of rows of lengths of their own where they begin and how long they are: each takes what it has of all.
  void add_scanned(const TensorList& list, int64_t first, std::vector<V>& operands) {
    const bool has_lengths = list.begins != ir::kAbsent;
    if (has_lengths) static_cast<void>(checked(list.whole));
    for (const V each : has_lengths ? std::vector{list.begins, list.lengths} : std::vector{list.whole})
      operands.push_back(first == 0 ? each : c_.slice(each, 0, first, trips_));
  }

  /// A tensor whose elements are all there.
  V checked(V value) const {
    if (node_.dtype(value) == ::tensormill::kString) refuse("a tensor of strings");
    if (node_.import_state().padded.contains(value)) refuse("a tensor of padded rows");
    return value;
  }

  std::vector<Item> arguments_of(const std::vector<V>& begun) {
    std::vector<Item> arguments(initial_.size());
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] != Kind::kCounter) continue;
      const int64_t start = start_of(i);
      const V number = c_.cast(begun[0], node_.dtype(std::get<V>(initial_[i].value)));
      arguments[i].value = start == 0 ? number : c_.plus(number, static_cast<double>(start));
    }
    size_t next = 1, row = 1 + static_cast<size_t>(carried_);
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (kinds_[i] == Kind::kCounter) continue;
      if (kinds_[i] == Kind::kCarried) {
        arguments[i].value = begun[next++];
      } else if (is_open(initial_[i])) {
        TensorList list = *list_of(initial_[i]);
        list.number = begun[0];
        list.trips = trips_;
        list.first = first_[i].value_or(0);
        list.row = ir::kAbsent;
        if (is_scanned(i) && list.begins != ir::kAbsent) {
          list.row = row_at(node_, list, begun[row], begun[row + 1]);
          if (same(trips_, *list.length)) own_extents_[i] = node_.shape(list.row)[0];
          row += 2;
        } else if (is_scanned(i)) {
          list.row = begun[row++];
        }
        arguments[i].value = std::make_shared<const TensorList>(std::move(list));
      } else {
        arguments[i].value = initial_[i].value;
      }
    }
    return arguments;
  }

  /// Whether an iteration works it out, which binds symbols from `bound` on.
  bool is_own(const ir::SymInt& extent, size_t bound) const {
    const auto& table = node_.graph().symbols();
    for (size_t i = bound; table != nullptr && i < table->run_time_symbols().size(); ++i)
      if (extent.expr().mentions(table->run_time_symbols()[i].name)) return true;
    return false;
  }

  /// Extents that an iteration works out are no others' extents.
  void check_extents(V value, size_t bound, size_t from = 0) const {
    const ir::SymShape shape = node_.shape(value);
    for (size_t d = from; d < shape.size(); ++d)
      if (is_own(shape[d], bound)) refuse("a result of other extents in each iteration");
  }

  /// What an extent that an iteration works out is at most in all of them.
  ir::SymInt most_of(const ir::SymInt& extent, size_t bound) const {
    const auto& table = node_.graph().symbols();
    ir::SymInt most = extent;
    while (is_own(most, bound)) {
      const te::Dim expr = most.expr();
      const ir::RunSymbol* symbol =
          expr.as_symbol() == nullptr ? nullptr : table->find_run_time_symbol(*expr.as_symbol());
      if (symbol == nullptr || !symbol->high)
        refuse("a row of " + to_string(extent) + " elements, of which is not known how many are the most,");
      most = ir::SymInt(*symbol->high, table);
    }
    return most;
  }

  /// Rows of lengths of their own that iterations make: how long they are at most, and whether they are as
  /// long as those of a list that is read, by which of the values that is.
  struct UnevenRows {
    ir::SymInt most = 0;
    std::optional<size_t> as = {};
  };

  /// The iteration's part of a list that it sets an element of. One of rows of lengths of their own has two:
  /// the row, with zeros behind it up to as long as the longest may be, and its length.
  void add_parts(size_t index, const TensorList& list, size_t bound, std::vector<V>& parts) {
    V part = checked(list.row);
    const ir::SymShape shape = node_.shape(part);
    if (!list.has_rows || shape.empty() || !is_own(shape[0], bound)) {
      check_extents(part, bound);
      return parts.push_back(part);
    }
    check_extents(part, bound, 1);
    const ir::SymInt most = most_of(shape[0], bound);
    ir::SymShape behind = shape;
    behind[0] = most - shape[0];
    parts.push_back(c_.concat({part, c_.filled(node_.dtype(part), behind, 0)}, 0));
    uneven_[index].most = most;
    for (const auto& [other, extent] : own_extents_)
      if (same(extent, shape[0])) uneven_[index].as = other;
    if (!uneven_[index].as) parts.push_back(c_.dims({shape[0]}, {1}));
  }

  /// The list that a loop has made: `parts` begins with what is made of add_parts, and goes on behind it.
  TensorList made_list(size_t index, std::vector<V>::const_iterator& part) {
    TensorList list = *list_of(initial_[index]);
    const auto uneven = uneven_.find(index);
    if (uneven != uneven_.end()) {
      if (!list.head.empty()) refuse("rows that are set before it");
      const V table = *part++;
      set_rows(list, table, rows_of(uneven->second, part), uneven->second.most);
      return list;
    }
    std::vector<V> rows;
    for (const V each : list.head) rows.push_back(c_.unsqueeze(each, 0));
    rows.push_back(*part++);
    list.whole = c_.concat(rows, 0);
    list.head.clear();
    return list;
  }

  RaggedRows rows_of(const UnevenRows& uneven, std::vector<V>::const_iterator& part) {
    if (!uneven.as) return run_time_rows(node_, c_.reshape(*part++, {trips_}));
    const TensorList& other = *list_of(initial_[*uneven.as]);
    return {other.begins, other.lengths, *other.length, node_.shape(other.whole)[0]};
  }

  /// The elements of rows of a table [trips,most,...], one row behind the other.
  void set_rows(TensorList& list, V table, const RaggedRows& rows, const ir::SymInt& most) {
    const V ids = row_ids(node_, rows);
    const V places = c_.add(c_.mul(ids, c_.dims({most}, {})), places_in_rows(node_, rows, ids));
    const ir::SymShape shape = node_.shape(table);
    ir::SymShape flat(shape.begin() + 1, shape.end());
    flat[0] = node_.product(shape[0], shape[1]);
    list.whole = c_.gather(c_.reshape(table, flat), places, 0);
    list.begins = rows.begins;
    list.lengths = rows.lengths;
    list.most = most;
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
      add_parts(i, *list, bound, parts);
    }
    operands.insert(operands.end(), parts.begin(), parts.end());
    const std::vector<V> made = node_.add_many(std::string(ir::kLoopEnd), operands,
                                               {{"loop", number_},
                                                {"carried", carried_},
                                                {"condition", int64_t{0}},
                                                {"trips", parts.empty() ? ir::SymInt(0) : trips_},
                                                {"counted", int64_t{0}}});
    std::vector<Item> results;
    std::vector<V>::const_iterator carried = made.begin(),
                                   part = made.begin() + static_cast<std::ptrdiff_t>(carried_);
    for (size_t i = 0; i < next.size(); ++i) {
      if (kinds_[i] == Kind::kInvariant) {
        results.push_back({initial_[i].value, {}});
      } else if (kinds_[i] == Kind::kCarried) {
        results.push_back({*carried++, {}});
      } else if (kinds_[i] == Kind::kCounter) {
        const DType dtype = node_.dtype(std::get<V>(initial_[i].value));
        const V last = has_natural_trips()
                           ? c_.dims({trips_ + start_of(i)}, {})
                           : c_.plus(c_.reshape(trip_count_, {}), static_cast<double>(start_of(i)));
        results.push_back({c_.cast(last, dtype), {}});
      } else {
        results.push_back({std::make_shared<const TensorList>(made_list(i, part)), {}});
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
  /// Of lists: the element that the first iteration has, where each has one.
  std::vector<std::optional<int64_t>> first_;
  std::map<size_t, ir::SymInt> own_extents_;  ///< how long the iteration's row is, of lists of rows
  std::map<size_t, UnevenRows> uneven_;       ///< by the list that is made
  V trip_count_ = ir::kAbsent;                ///< i64 [1]
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

bool has_open_list(const std::vector<Item>& items) {
  return std::any_of(items.begin(), items.end(), is_open);
}

bool is_free_number(const ir::Graph& graph, const Item& item) {
  const V* number = std::get_if<V>(&item.value);
  if (number == nullptr) return false;
  const ir::Value& value = graph.value(*number);
  return !value.constant && (!value.known || value.known.is_symbolic());
}

bool ends_at_free_number(NodeContext& node, const FunctionRef& condition, const std::vector<Item>& initial) {
  const auto limits = limits_of(LoopText(function_of(node, condition)));
  return limits && std::any_of(limits->begin(), limits->end(), [&](const LoopLimit& each) {
           return each.limit && *each.limit < initial.size() &&
                  is_free_number(node.graph(), initial[*each.limit]);
         });
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
