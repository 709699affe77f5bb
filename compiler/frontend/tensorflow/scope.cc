#include "compiler/frontend/tensorflow/scope.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr int kMostLoops = 128;
/// Iterations that are unrolled.
constexpr int64_t kMostRounds = 1024;

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

std::string quoted(std::string_view name) { return "\"" + std::string(name.substr(0, 200)) + "\""; }

size_t number_of(std::string_view text, std::string_view whole) {
  size_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number > (1u << 20))
    refuse("input " + quoted(whole) + " names no output");
  return number;
}

bool is_dead(const Item& item) { return std::holds_alternative<Dead>(item.value); }
bool is_op(const Node& node, std::string_view op) {
  return node.op == op || node.op == "Ref" + std::string(op);
}

/// Loops within loops.
class Deeper {
public:
  explicit Deeper(int& depth) : depth_(depth) {
    if (++depth_ > kMostLoops) {
      --depth_;
      refuse("loops stand in each other more than " + std::to_string(kMostLoops) + " deep");
    }
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth_; }

private:
  int& depth_;
};

std::string_view frame_of(const Node& enter) {
  const auto found = enter.attributes.find("frame_name");
  if (found == enter.attributes.end()) return {};
  const auto* name = std::get_if<std::string_view>(&found->second.value);
  return name == nullptr ? std::string_view() : *name;
}

}  // namespace

Body::Body(const std::vector<Node>& all, std::optional<std::string_view> of) : nodes(&all), function(of) {
  for (size_t i = 0; i < all.size(); ++i)
    if (!by_name.emplace(all[i].name, i).second) refuse("two nodes are called " + quoted(all[i].name));
}

size_t Body::find(std::string_view name) const {
  const auto found = by_name.find(name);
  if (found == by_name.end()) refuse("there is no node " + quoted(name));
  return found->second;
}

namespace {

/// How many outputs a node says in an attribute.
size_t count_in(const Node& node, std::string_view attribute) {
  const auto found = node.attributes.find(attribute);
  const auto* count = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second.value);
  if (count == nullptr || *count < 0 || *count > (1 << 16))
    refuse("node " + quoted(node.name) + " does not say how many outputs it has");
  return static_cast<size_t>(*count);
}

}  // namespace

Reference parse_reference(const Body& body, std::string_view text,
                          const std::map<std::string_view, Item>* arguments) {
  Reference reference;
  if (text.starts_with('^')) return {text.substr(1), 0, false, true};
  const size_t first = text.find(':');
  reference.name = text.substr(0, first);
  if (first == std::string_view::npos) {
    reference.is_argument = arguments != nullptr && arguments->contains(text);
    return reference;
  }
  const size_t last = text.rfind(':');
  reference.output = number_of(text.substr(last + 1), text);
  if (last == first) {
    reference.is_argument = arguments != nullptr && !body.by_name.contains(reference.name);
    return reference;
  }
  // By the name of an output.
  const std::string_view output = text.substr(first + 1, last - first - 1);
  const OpRow* row = find_row((*body.nodes)[body.find(reference.name)].op);
  if (row == nullptr || row->outputs.empty()) return reference;
  const Node& node = (*body.nodes)[body.find(reference.name)];
  for (const std::string_view word : row->outputs) {
    const size_t star = word.find('*');
    if (word.substr(0, star) == output) return reference;
    reference.output += star == std::string_view::npos ? 1 : count_in(node, word.substr(star + 1));
  }
  refuse("input " + quoted(text) + " names no output");
}

Item ScopeImport::output_of(const Scope& scope, size_t node, size_t output) const {
  const std::vector<Item>& outputs = scope.results.at(node);
  if (output < outputs.size()) return outputs[output];
  if (!outputs.empty() && is_dead(outputs[0])) return outputs[0];
  refuse("node " + quoted((*scope.body.nodes)[node].name) + " has no output " + std::to_string(output));
}

std::optional<Item> ScopeImport::lookup(const Scope& scope, std::string_view text) const {
  const Reference reference = parse_reference(scope.body, text, &scope.arguments);
  if (reference.is_argument) {
    const auto found = scope.arguments.find(reference.name);
    if (found == scope.arguments.end()) refuse("there is no argument " + quoted(reference.name));
    return found->second;
  }
  const size_t node = scope.body.find(reference.name);
  if (scope.lost.contains(node)) return std::nullopt;
  return output_of(scope, node, reference.output);
}

std::optional<Item> ScopeImport::evaluate(Scope& scope, std::string_view text) {
  const Reference reference = parse_reference(scope.body, text, &scope.arguments);
  if (!reference.is_argument && !run(scope, scope.body.find(reference.name))) return std::nullopt;
  return lookup(scope, text);
}

namespace {

/// Whether a node that reads nothing belongs to the side of a branch that it has to wait for.
bool is_pivot(const Scope& scope, const Node& node, const Reference& waits_for) {
  const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [](std::string_view input) { return !input.starts_with('^'); });
  if (reads || scope.body.is_function() || !scope.body.by_name.contains(waits_for.name)) return false;
  const Node& other = (*scope.body.nodes)[scope.body.find(waits_for.name)];
  if (is_op(other, "Switch")) return true;
  if (other.op != "Identity" || other.inputs.empty()) return false;
  const Reference source = parse_reference(scope.body, other.inputs[0], &scope.arguments);
  return !source.is_argument && scope.body.by_name.contains(source.name) &&
         is_op((*scope.body.nodes)[scope.body.find(source.name)], "Switch");
}

}  // namespace

/// The nodes that come before this one and are not there yet.
std::vector<size_t> ScopeImport::needed(Scope& scope, size_t node) const {
  std::vector<size_t> missing;
  const Node& at = (*scope.body.nodes)[node];
  // What goes into a loop stands outside of it, and what comes out is made by the loop as a whole.
  const bool is_outside = is_op(at, "Enter") && scope.around != nullptr && frame_of(at) == scope.frame;
  if (is_outside || is_op(at, "Exit")) return missing;
  for (const std::string_view input : at.inputs) {
    const Reference reference = parse_reference(scope.body, input, &scope.arguments);
    if (reference.is_argument || (reference.is_control && !is_pivot(scope, at, reference))) continue;
    const size_t before = scope.body.find(reference.name);
    if (!scope.results.contains(before) && !scope.lost.contains(before)) missing.push_back(before);
  }
  return missing;
}

bool ScopeImport::run(Scope& scope, size_t wanted) {
  std::vector<size_t> stack{wanted};
  std::set<size_t> open;
  while (!stack.empty()) {
    const size_t node = stack.back();
    if (scope.results.contains(node) || scope.lost.contains(node)) {
      stack.pop_back();
      continue;
    }
    const std::vector<size_t> missing = needed(scope, node);
    if (missing.empty()) {
      if (!finish(scope, node)) scope.lost.insert(node);
      open.erase(node);
      stack.pop_back();
      continue;
    }
    if (!open.insert(node).second) refuse("node " + quoted((*scope.body.nodes)[node].name) + " needs itself");
    stack.insert(stack.end(), missing.begin(), missing.end());
  }
  return !scope.lost.contains(wanted);
}

bool ScopeImport::finish(Scope& scope, size_t node) {
  const Node& at = (*scope.body.nodes)[node];
  if (is_op(at, "Exit")) {
    try {
      return run_loop(scope, node);
    } catch (const UnsupportedForm& form) {
      note_(scope.body, at, form);
      return false;
    }
  }
  if (is_op(at, "Enter") && scope.around != nullptr && frame_of(at) == scope.frame) {
    if (!run(*scope.around, node)) return false;
    scope.results[node] = scope.around->results.at(node);
    return true;
  }
  std::vector<Item> inputs, pivots;
  for (const std::string_view input : at.inputs) {
    const Reference reference = parse_reference(scope.body, input, &scope.arguments);
    if (reference.is_control && !is_pivot(scope, at, reference)) continue;
    const std::optional<Item> item = lookup(scope, reference.is_control ? reference.name : input);
    if (!item) return false;
    (reference.is_control ? pivots : inputs).push_back(*item);
  }
  const bool is_skipped = std::any_of(pivots.begin(), pivots.end(), is_dead) ||
                          (!is_op(at, "Merge") && std::any_of(inputs.begin(), inputs.end(), is_dead));
  if (is_skipped) {
    scope.results[node] = {{Dead(), {}}};
    return true;
  }
  std::optional<std::vector<Item>> outputs = convert_(scope, node, inputs);
  if (!outputs) return false;
  for (const Item& pivot : pivots)
    for (Item& output : *outputs) output.under.insert(pivot.under.begin(), pivot.under.end());
  scope.results[node] = *std::move(outputs);
  return true;
}

/// A loop of TensorFlow 1: variables go in by Enter, come round by NextIteration, and leave by Exit.
struct ScopeImport::Loop {
  std::string_view frame;
  size_t condition_node = 0;   ///< LoopCond
  std::string_view condition;  ///< what it reads
  struct Variable {
    size_t merge = 0, enter = 0;
    std::string_view next;  ///< what NextIteration reads
  };
  std::vector<Variable> variables;
  std::vector<std::pair<size_t, size_t>> exits;  ///< Exit, and the Merge whose value it has
};

namespace {

/// The node that stands for input `index` of a node.
size_t source_of(const Scope& scope, size_t node, size_t index) {
  const Node& at = (*scope.body.nodes)[node];
  if (index >= at.inputs.size()) refuse("node " + quoted(at.name) + " has too few inputs");
  const Reference reference = parse_reference(scope.body, at.inputs[index], &scope.arguments);
  if (reference.is_argument || reference.is_control)
    refuse("node " + quoted(at.name) + " is no part of a loop");
  return scope.body.find(reference.name);
}

}  // namespace

ScopeImport::Loop ScopeImport::loop_of(const Scope& scope, size_t exit) const {
  const std::vector<Node>& nodes = *scope.body.nodes;
  const auto check = [&](size_t node, const char* op) {
    if (!is_op(nodes[node], op))
      refuse("node " + quoted(nodes[node].name) + " is " + quoted(nodes[node].op) + " where a loop has " +
             op);
    return node;
  };
  Loop loop;
  const size_t own_switch = check(source_of(scope, exit, 0), "Switch");
  const size_t own_merge = check(source_of(scope, own_switch, 0), "Merge");
  loop.frame = frame_of(nodes[check(source_of(scope, own_merge, 0), "Enter")]);
  const size_t condition = source_of(scope, own_switch, 1);
  if (nodes[condition].op != "LoopCond" || nodes[condition].inputs.empty())
    refuse("node " + quoted(nodes[condition].name) + " is no condition of a loop");
  loop.condition_node = condition;
  loop.condition = nodes[condition].inputs[0];
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_op(nodes[i], "Merge") && nodes[i].inputs.size() == 2) {
      const size_t enter = source_of(scope, i, 0), next = source_of(scope, i, 1);
      if (!is_op(nodes[enter], "Enter") || frame_of(nodes[enter]) != loop.frame) continue;
      check(next, "NextIteration");
      if (nodes[next].inputs.empty()) refuse("node " + quoted(nodes[next].name) + " has too few inputs");
      loop.variables.push_back({i, enter, nodes[next].inputs[0]});
    }
    if (is_op(nodes[i], "Exit")) {
      const size_t merge = source_of(scope, source_of(scope, i, 0), 0);
      if (!is_op(nodes[merge], "Merge")) continue;
      const size_t enter = source_of(scope, merge, 0);
      if (is_op(nodes[enter], "Enter") && frame_of(nodes[enter]) == loop.frame)
        loop.exits.emplace_back(i, merge);
    }
  }
  return loop;
}

std::optional<bool> ScopeImport::goes_on(const Item& condition) const {
  const V* value = std::get_if<V>(&condition.value);
  const Tensor* known = value == nullptr ? nullptr : graph_.value(*value).tensor();
  if (known == nullptr) return std::nullopt;
  if (known->num_elements() != 1)
    refuse("a loop's condition has " + std::to_string(known->num_elements()) + " elements");
  return known->element_as_int(0) != 0;
}

/// What goes into the loop by Enter and stays as it is, as far as iterations read it.
std::vector<size_t> ScopeImport::kept_in(const Scope& scope, const Loop& loop) const {
  std::set<size_t> seen, kept, entered;
  std::vector<std::string_view> open{loop.condition};
  for (const Loop::Variable& variable : loop.variables) {
    open.push_back(variable.next);
    entered.insert(variable.enter);
  }
  while (!open.empty()) {
    const Reference reference = parse_reference(scope.body, open.back(), &scope.arguments);
    open.pop_back();
    if (reference.is_argument || reference.is_control) continue;
    const size_t node = scope.body.find(reference.name);
    if (!seen.insert(node).second || entered.contains(node)) continue;
    const Node& at = (*scope.body.nodes)[node];
    if (is_op(at, "Enter") && frame_of(at) == loop.frame) {
      kept.insert(node);
    } else {
      open.insert(open.end(), at.inputs.begin(), at.inputs.end());
    }
  }
  return {kept.begin(), kept.end()};
}

/// The values of a loop: its variables, then what it keeps.
struct ScopeImport::LoopValues {
  std::vector<size_t> nodes, enters;         ///< what iterations read, and where that is from at first
  std::map<std::string_view, size_t> names;  ///< those nodes' names
  std::vector<std::string_view> results;     ///< what an iteration makes of them
};

ScopeImport::LoopValues ScopeImport::values_of(const Scope& scope, const Loop& loop) const {
  LoopValues own;
  const auto add = [&](size_t node, size_t enter, std::string_view result) {
    own.names.emplace((*scope.body.nodes)[node].name, own.nodes.size());
    own.nodes.push_back(node);
    own.enters.push_back(enter);
    own.results.push_back(result);
  };
  for (const Loop::Variable& variable : loop.variables) add(variable.merge, variable.enter, variable.next);
  for (const size_t enter : kept_in(scope, loop)) add(enter, enter, (*scope.body.nodes)[enter].name);
  return own;
}

/// Whether iterations are counted to a number that is not one for all runs.
bool ScopeImport::ends_at_free_number(Scope& scope, const Loop& loop, const LoopValues& own) {
  const auto limits = limits_of(LoopText(*scope.body.nodes, own.names, {loop.condition}));
  return limits && std::any_of(limits->begin(), limits->end(), [&](const LoopLimit& each) {
           if (!each.limit || !run(scope, own.enters[*each.limit])) return false;
           return is_free_number(graph_, output_of(scope, own.enters[*each.limit], 0));
         });
}

std::vector<Item> ScopeImport::iterate(Scope& scope, const Loop& loop, const LoopValues& own,
                                       const std::vector<Item>& values, Item condition) {
  Scope iteration{scope.body, scope.arguments, scope.placeholders, &scope, loop.frame};
  for (size_t i = 0; i < own.nodes.size(); ++i) iteration.results[own.nodes[i]] = {{values[i].value, {}}};
  // Iterations that are there go on.
  iteration.results[loop.condition_node] = {std::move(condition)};
  std::vector<Item> next;
  for (const Loop::Variable& variable : loop.variables) {
    const std::optional<Item> value = evaluate(iteration, variable.next);
    if (!value) throw CallFails();
    next.push_back({value->value, {}});
  }
  next.insert(next.end(), values.begin() + static_cast<std::ptrdiff_t>(next.size()), values.end());
  return next;
}

bool ScopeImport::run_loop_over_rows(Scope& scope, size_t exit, const Loop& loop, const LoopValues& own,
                                     const std::vector<Item>& initial) {
  const std::vector<Node>& nodes = *scope.body.nodes;
  const LoopForm form = {LoopText(nodes, own.names, {loop.condition}),
                         LoopText(nodes, own.names, own.results),
                         [&](NodeContext& node, const std::vector<Item>& values) {
                           Tensor is_true(DType::kBool, {});
                           is_true.set_element(0, 1);
                           return iterate(scope, loop, own, values, {node.constant(std::move(is_true)), {}});
                         }};
  try {
    const std::vector<Item> made = loop_over_(scope, exit, form, initial);
    for (const auto& [node, merge] : loop.exits)
      scope.results[node] = {made.at(own.names.at(nodes[merge].name))};
    return true;
  } catch (const CallFails&) {
    return false;
  }
}

bool ScopeImport::run_loop(Scope& scope, size_t exit) {
  const Loop loop = loop_of(scope, exit);
  const Deeper deeper(depth_);
  const LoopValues own = values_of(scope, loop);
  const auto over_rows = [&](bool has_to_be_of_lists) -> std::optional<bool> {
    std::vector<Item> initial;
    for (const size_t enter : own.enters) {
      if (!run(scope, enter)) return false;
      initial.push_back({output_of(scope, enter, 0).value, {}});
    }
    if (has_to_be_of_lists && !has_open_list(initial)) return std::nullopt;
    return run_loop_over_rows(scope, exit, loop, own, initial);
  };
  if (ends_at_free_number(scope, loop, own)) return over_rows(false).value_or(false);
  std::map<size_t, Item> values;
  for (const Loop::Variable& variable : loop.variables) {
    if (!run(scope, variable.enter)) return false;
    values[variable.merge] = output_of(scope, variable.enter, 0);
  }
  for (int64_t trip = 0;; ++trip) {
    Scope iteration{scope.body, scope.arguments, scope.placeholders, &scope, loop.frame};
    for (const auto& [merge, value] : values) iteration.results[merge] = {value, {}};
    const std::optional<Item> condition = evaluate(iteration, loop.condition);
    if (!condition) return false;
    const std::optional<bool> is_on = goes_on(*condition);
    if (!is_on && trip == 0)
      if (const std::optional<bool> is_run = over_rows(true)) return *is_run;
    if (!is_on) throw UnsupportedForm{"condition", "how often the loop goes round is worked out by a run"};
    if (!*is_on) break;
    if (trip == kMostRounds)
      throw UnsupportedForm{"condition",
                            "more than " + std::to_string(kMostRounds) + " iterations are not implemented"};
    std::map<size_t, Item> next;
    for (const Loop::Variable& variable : loop.variables) {
      std::optional<Item> value = evaluate(iteration, variable.next);
      if (!value) return false;
      next[variable.merge] = *std::move(value);
    }
    values = std::move(next);
  }
  for (const auto& [node, merge] : loop.exits) scope.results[node] = {values.at(merge)};
  return true;
}

}  // namespace tensormill::frontend::tensorflow
