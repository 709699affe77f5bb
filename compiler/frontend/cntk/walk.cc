#include "compiler/frontend/cntk/walk.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::cntk {

namespace {

constexpr std::string_view kOutputMark = "_Output_";

[[noreturn]] void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

std::string quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 200)) + "\""; }

struct BlockRow {
  std::string_view name;
  std::string_view attribute;
};
constexpr BlockRow kWholeBlocks[] = {
#define CNTK_BLOCK(name, attribute, convert) {name, attribute},
#include "compiler/frontend/cntk/blocks.def"
#undef CNTK_BLOCK
};

class Walker {
public:
  explicit Walker(const Model& model);
  Walk run();

private:
  bool has_all_channels(const Function& function) const;
  bool is_one_operator(const Function& function) const;
  const Function& root() const;
  Source resolved(const std::string& uid);
  Source followed(std::string uid, std::vector<std::string>& passed);
  /// What the function's output is called that stands behind this one: of functions that only hand on.
  std::optional<std::string> handed_on(const Function& function, size_t output) const;
  std::optional<std::pair<size_t, size_t>> maker_of(std::string_view uid) const;
  std::vector<std::string> operand_uids(const Function& function) const;
  std::vector<std::string> result_uids();
  bool only_hands_on(const Function& function) const;
  void visit(size_t function);
  void add_inputs();
  void add_outputs();
  std::string name_of_result(const std::string& uid, bool is_only) const;

  const Model& model_;
  std::map<std::string_view, size_t> functions_, variables_;
  std::map<std::string_view, std::string_view> arguments_;  ///< of blocks, by their place holders
  std::vector<bool> are_operators_;                         ///< by function
  std::map<std::string, Source> known_;                     ///< by uid
  std::set<Source> read_;
  /// Each result of a block is named anew in all blocks within it, however many of both there are.
  wire::WorkBudget names_{"bytes of names of blocks' results", 32'000'000};
  enum class State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> states_;
  Walk walk_;
};

Walker::Walker(const Model& model) : model_(model), states_(model.functions.size(), State::kNew) {
  for (size_t i = 0; i < model.variables.size(); ++i) variables_.emplace(model.variables[i].uid, i);
  for (size_t i = 0; i < model.functions.size(); ++i) {
    const Function& function = model.functions[i];
    functions_.emplace(function.uid, i);
    are_operators_.push_back(is_one_operator(function));
    if (!function.block) continue;
    for (const auto& [holder, value] : function.block->arguments) arguments_.emplace(holder, value);
  }
  walk_.operands.resize(model.functions.size());
}

/// Where a map has fewer channels than a window of them, CNTK takes another window.
bool Walker::has_all_channels(const Function& function) const {
  const Value* radius = function.attributes.find("depthRadius");
  if (radius == nullptr) return true;
  const auto* number = radius->as<int64_t>();
  const auto holder = variables_.find(function.block->arguments[0].first);
  constexpr int64_t kMostRadius = 1 << 20;
  if (number == nullptr || *number < 0 || *number > kMostRadius || holder == variables_.end()) return false;
  const Dims& dims = model_.variables[holder->second].dims;
  return !dims.empty() && dims.back() >= 2 * *number + 1;
}

bool Walker::is_one_operator(const Function& function) const {
  if (!function.block || function.block->arguments.size() != 1) return false;
  // A block of somebody's own may have any name, but no attributes.
  const bool is_known =
      std::any_of(std::begin(kWholeBlocks), std::end(kWholeBlocks), [&](const BlockRow& row) {
        return row.name == function.op && function.attributes.find(row.attribute) != nullptr;
      });
  if (!is_known || !has_all_channels(function)) return false;
  const Value* given = function.attributes.find("axis");
  const Axis* axis = given == nullptr ? nullptr : given->as<Axis>();
  return given == nullptr || (axis != nullptr && axis->index < kFirstMark);
}

const Function& Walker::root() const {
  const auto found = functions_.find(model_.root);
  if (found == functions_.end()) refuse("there is no function " + quoted(model_.root) + ", the root");
  return model_.functions[found->second];
}

bool Walker::only_hands_on(const Function& function) const {
  const auto index = static_cast<size_t>(&function - model_.functions.data());
  return function.op == "Combine" || (function.block && !are_operators_[index]);
}

/// The function and its output of "UID_Output_0".
std::optional<std::pair<size_t, size_t>> Walker::maker_of(std::string_view uid) const {
  const size_t mark = uid.rfind(kOutputMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const auto found = functions_.find(uid.substr(0, mark));
  const std::string_view digits = uid.substr(mark + kOutputMark.size());
  constexpr size_t kMostDigits = 6;
  const bool is_number =
      !digits.empty() && digits.size() <= kMostDigits &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (found == functions_.end() || !is_number) return std::nullopt;
  return std::pair(found->second, static_cast<size_t>(std::stoul(std::string(digits))));
}

std::optional<std::string> Walker::handed_on(const Function& function, size_t output) const {
  if (!only_hands_on(function)) return std::nullopt;
  if (!function.block) {
    if (output >= function.inputs.size())
      refuse(quoted(function.uid) + " has no output " + std::to_string(output));
    return std::string(function.inputs[output]);
  }
  const auto found = functions_.find(function.block->root);
  if (found == functions_.end()) refuse("block " + quoted(function.uid) + " has no root");
  return output_uid(model_.functions[found->second], output);
}

/// What the value is, or what one on the way to it is known to be; names on the way are added to `passed`.
Source Walker::followed(std::string uid, std::vector<std::string>& passed) {
  // More steps than there are names would go round in a circle.
  const size_t most = arguments_.size() + model_.functions.size() + 1;
  while (passed.size() <= most) {
    if (const auto known = known_.find(uid); known != known_.end()) return known->second;
    passed.push_back(uid);
    if (const auto maker = maker_of(uid)) {
      const Function& function = model_.functions[maker->first];
      const std::optional<std::string> next = handed_on(function, maker->second);
      if (!next) return {false, maker->first, maker->second};
      if (function.block) names_.spend(next->size());
      uid = *next;
      continue;
    }
    if (const auto argument = arguments_.find(uid); argument != arguments_.end()) {
      uid = std::string(argument->second);
      continue;
    }
    const auto variable = variables_.find(uid);
    if (variable == variables_.end()) refuse("nothing makes " + quoted(uid));
    const VariableKind kind = model_.variables[variable->second].kind;
    if (kind == VariableKind::kPlaceholder || kind == VariableKind::kOutput)
      refuse("nothing stands for the place holder " + quoted(uid));
    return {true, variable->second, 0};
  }
  refuse("the value " + quoted(uid) + " stands for itself");
}

Source Walker::resolved(const std::string& uid) {
  std::vector<std::string> passed;
  const Source source = followed(uid, passed);
  for (std::string& each : passed) known_.emplace(std::move(each), source);
  return source;
}

std::vector<std::string> Walker::operand_uids(const Function& function) const {
  std::vector<std::string> uids;
  if (function.block) {
    for (const auto& [holder, value] : function.block->arguments) uids.emplace_back(value);
  } else {
    uids.assign(function.inputs.begin(), function.inputs.end());
  }
  return uids;
}

/// Depth first, without calls in one another: chains of functions are long.
void Walker::visit(size_t function) {
  struct Step {
    size_t function, next;
  };
  std::vector<Step> path;
  const auto open = [&](size_t index) {
    states_[index] = State::kOpen;
    for (const std::string& uid : operand_uids(model_.functions[index])) {
      walk_.operands[index].push_back(resolved(uid));
      read_.insert(walk_.operands[index].back());
    }
    path.push_back({index, 0});
  };
  if (states_[function] == State::kNew) open(function);
  while (!path.empty()) {
    Step& step = path.back();
    const std::vector<Source>& operands = walk_.operands[step.function];
    if (step.next == operands.size()) {
      states_[step.function] = State::kDone;
      walk_.order.push_back(step.function);
      path.pop_back();
      continue;
    }
    const Source operand = operands[step.next++];
    if (operand.is_variable) continue;
    if (states_[operand.index] == State::kOpen) walk_.has_cycle = true;
    if (states_[operand.index] == State::kNew) open(operand.index);
  }
}

/// Of a function that hands on what others make, the names of these.
std::vector<std::string> Walker::result_uids() {
  const Function* last = &root();
  const Function* made = last;
  for (size_t step = 0; made->block && only_hands_on(*made); ++step) {
    const auto found = functions_.find(made->block->root);
    if (found == functions_.end() || step > model_.functions.size())
      refuse("block " + quoted(made->uid) + " has no root");
    made = &model_.functions[found->second];
  }
  const bool is_combined = only_hands_on(*made);
  if (is_combined && last == made) return operand_uids(*last);
  const size_t count = is_combined ? made->inputs.size() : count_outputs(*made);
  std::vector<std::string> uids;
  for (size_t i = 0; i < count; ++i) {
    uids.push_back(output_uid(*last, i));
    names_.spend(uids.back().size());
  }
  return uids;
}

/// The name that the model gives the function or the variable, else the uid; of several results of one
/// function that.
std::string Walker::name_of_result(const std::string& uid, bool is_only) const {
  std::string_view name;
  const auto variable = variables_.find(uid);
  if (const auto maker = maker_of(uid)) {
    if (is_only) name = model_.functions[maker->first].name;
  } else if (variable != variables_.end()) {
    name = model_.variables[variable->second].name;
  }
  if (!is_utf8(name) || !is_utf8(uid)) refuse("an output has a name that is not UTF-8");
  return name.empty() ? uid : std::string(name);
}

void Walker::add_outputs() {
  const std::vector<std::string> uids = result_uids();
  if (uids.empty()) refuse("the model has no outputs");
  std::map<size_t, size_t> results;
  for (const std::string& uid : uids)
    if (const auto maker = maker_of(uid)) ++results[maker->first];
  std::set<std::string> names;
  for (const std::string& uid : uids) {
    const auto maker = maker_of(uid);
    std::string name = name_of_result(uid, !maker || results[maker->first] == 1);
    if (!names.insert(name).second && !names.insert(name = uid).second) continue;
    const Source source = resolved(uid);
    read_.insert(source);
    walk_.outputs.push_back({std::move(name), source});
    if (!source.is_variable) visit(source.index);
  }
}

void Walker::add_inputs() {
  std::set<std::string> names;
  for (const Output& output : walk_.outputs) names.insert(output.name);
  for (size_t i = 0; i < model_.variables.size(); ++i) {
    const Variable& variable = model_.variables[i];
    if (variable.kind != VariableKind::kInput || read_.count({true, i, 0}) == 0) continue;
    if (!is_utf8(variable.name) || !is_utf8(variable.uid)) refuse("an input has a name that is not UTF-8");
    std::string name(variable.name.empty() ? variable.uid : variable.name);
    if (!names.insert(name).second && !names.insert(name = std::string(variable.uid)).second)
      refuse("several inputs or outputs are called " + quoted(name));
    walk_.inputs.push_back({std::move(name), i});
  }
}

Walk Walker::run() {
  add_outputs();
  add_inputs();
  return std::move(walk_);
}

}  // namespace

size_t count_outputs(const Function& function) { return function.op == "TopK" ? 2 : 1; }

std::string output_uid(const Function& function, size_t index) {
  return std::string(function.uid) + std::string(kOutputMark) + std::to_string(index);
}

std::vector<int64_t> tensor_dims(const Variable& variable) {
  std::vector<int64_t> dims;
  if (!variable.dynamic_axes.empty()) dims.push_back(-1);
  for (size_t d = variable.dims.size(); d-- > 0;) dims.push_back(std::max<int64_t>(variable.dims[d], -1));
  return dims;
}

Walk walk(const Model& model) { return Walker(model).run(); }

}  // namespace tensormill::frontend::cntk
