#include "compiler/frontend/tensorflow/converters/loop_text.h"

namespace tensormill::frontend::tensorflow {

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
    } else if (at->op == "Greater") {
      limits.push_back({condition.argument(at->inputs[1]), condition.argument(at->inputs[0])});
    } else {
      return std::nullopt;
    }
  }
  return limits;
}

}  // namespace tensormill::frontend::tensorflow
