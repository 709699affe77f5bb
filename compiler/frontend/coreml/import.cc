#include "compiler/frontend/coreml/import.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/build/format_import.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/coreml/file_graph.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

namespace {

using Paths = std::map<const Block*, std::string>;

/// What the paths of operations begin with, of those of the block and of the blocks within it.
void add_paths(const Block& block, const std::string& path, Paths& paths) {
  paths.emplace(&block, path);
  for (size_t i = 0; i < block.operations.size(); ++i)
    for (size_t k = 0; k < block.operations[i].blocks.size(); ++k)
      add_paths(block.operations[i].blocks[k], path_within(path, i, k), paths);
}

build::NodePlace place_of(const Block& block, size_t index, const std::string& path) {
  const Operation& node = block.operations[index];
  const std::string label = operation_label(node, index);
  return {"op " + std::string(node.type), label, "", path + std::to_string(index),
          build::numbered_node("operation", index, node.type.substr(0, 200), label)};
}

void note_missing(const Block& block, const Paths& paths, build::Missing& missing) {
  for (size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& node = block.operations[i];
    if (find_converter(node.type) == nullptr) missing.add(place_of(block, i, paths.at(&block)), "");
    for (const Block& within : node.blocks) note_missing(within, paths, missing);
  }
}

class FunctionImport final : public build::FormatImport {
public:
  FunctionImport(const LoadedModel& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {std::string(request.function->name), build::names_of(request.function->inputs),
                      output_names(*request.function)},
                     missing_operations(*request.function),
                     {"operation", size_t{1} << 17, "", {"operation "}}),
        loaded_(loaded),
        request_(request),
        function_(*request.function),
        state_{loaded, graph_, reserved_, opset_number(function_.opset)} {
    add_paths(function_.block, "", paths_);
    state_.call = [this](const Block& block, BlockState& around, const std::vector<V>& inputs) {
      return call(block, around, inputs);
    };
  }

private:
  bool convert_all() override {
    add_inputs();
    if (!convert_block(main_, function_.block)) return false;
    // Behind what is wrong with the model, which an import at any extents finds.
    for (size_t i = 0; i < function_.inputs.size(); ++i) check_ranges(i, true);
    return true;
  }

  void add_inputs() {
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const NamedType& input = function_.inputs[i];
      const std::string name(input.name);
      const std::optional<DType> dtype = dtype_of(input.type.tensor.dtype);
      const bool is_state = input.type.kind == ValueKind::kState;
      if ((input.type.kind != ValueKind::kTensor && !is_state) || !dtype ||
          type_bits(input.type.tensor.dtype) < 8)
        throw Error(ErrorCode::kNotSupported,
                    "input \"" + name + "\" is no tensor of a type that is known here");
      Item item{nullptr, add_input(i, *dtype)};
      if (is_state) {
        item.state = input.name;
        state_.states.emplace(input.name, item.value);
      }
      if (!main_.items.emplace(input.name, item).second)
        throw Error(ErrorCode::kInvalidModel, "input \"" + name + "\" stands twice");
      check_ranges(i, false);
    }
  }

  /// Of extents that are numbers, or of free ones.
  void check_ranges(size_t index, bool of_numbers) const {
    const NamedType& input = function_.inputs[index];
    const ir::SymShape& shape = request_.input_shapes[index];
    if (request_.fixed_inputs.count(std::string(input.name)) != 0) return;
    const Feature* feature = loaded_.model().input(function_.name, input.name);
    if (feature == nullptr || feature->ranges.size() != shape.size()) return;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto [low, high] = feature->ranges[axis];
      const bool is_fixed = axis < input.type.tensor.dims.size() && input.type.tensor.dims[axis] >= 0;
      if (is_fixed || shape[axis].is_constant() != of_numbers) continue;
      const bool is_above = low <= 1 || ir::demand(ir::Relation::kLessEqual, low, shape[axis]);
      const bool is_below =
          high < 0 || high >= INT32_MAX || ir::demand(ir::Relation::kLessEqual, shape[axis], high);
      if (is_above && is_below) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  "input \"" + std::string(input.name) + "\" has the extent " + to_string(shape[axis]) +
                      " in dim " + std::to_string(axis) + ", the model takes " + std::to_string(low) +
                      " to " + (high < 0 ? "any" : std::to_string(high)));
    }
  }

  /// Whether all operations could be converted.
  bool convert_block(BlockState& state, const Block& block) {
    build::LostValues<std::string> lost;
    for (size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& node = block.operations[i];
      lost.convert(operand_names(node), build::names_of(node.outputs),
                   [&] { return convert(state, block, i); });
    }
    return lost.is_whole();
  }

  bool convert(BlockState& state, const Block& block, size_t index) {
    const Operation& node = block.operations[index];
    const std::string label = operation_label(node, index);
    return try_convert(
        label, [&] { return place_of(block, index, paths_.at(&block)); },
        [&] {
          NodeContext context(state, node, label);
          find_converter(node.type)(context);
          context.check_read();
        });
  }

  std::optional<std::vector<V>> call(const Block& block, BlockState& around, const std::vector<V>& inputs) {
    if (inputs.size() != block.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "a block of " + std::to_string(block.inputs.size()) +
                                                " inputs is called with " + std::to_string(inputs.size()));
    BlockState state{state_, &around};
    for (size_t i = 0; i < inputs.size(); ++i)
      state.items.insert_or_assign(block.inputs[i].name, Item{nullptr, inputs[i]});
    if (!convert_block(state, block)) return std::nullopt;
    std::vector<V> outputs;
    for (const std::string_view output : block.outputs)
      outputs.push_back(value_of(state, output, "output of a block"));
    return outputs;
  }

  V value_of(BlockState& state, std::string_view name, const std::string& what) {
    Item* item = state.find(name);
    if (item == nullptr)
      throw Error(ErrorCode::kInvalidModel,
                  what + ": nothing makes \"" + std::string(name.substr(0, 200)) + "\"");
    if (!item->state.empty()) throw Error(ErrorCode::kInvalidModel, what + " is a state");
    if (item->value == ir::kAbsent)
      item->value = graph_.add_constant(graph_.unique_name("constant"), loaded_.constant(*item->stored));
    return item->value;
  }

  V output(size_t index) override {
    const std::string& name = names_.outputs[index];
    const std::string_view state = state_of(function_, name);
    return state.empty() ? value_of(main_, name, "output \"" + name + "\"") : state_.states.at(state);
  }

  const LoadedModel& loaded_;
  const ImportRequest& request_;
  const Function& function_;
  Paths paths_;
  ImportState state_;
  BlockState main_{state_};
};

std::vector<std::string> result_names(const Function& function) {
  std::vector<std::string> names;
  for (const std::string_view output : function.block.outputs)
    if (std::find(names.begin(), names.end(), output) == names.end()) names.emplace_back(output);
  return names;
}

/// Of each state the output that says what it is behind a run, of a name that nothing else has.
std::vector<std::pair<std::string, const NamedType*>> outputs_of_states(const Function& function) {
  std::vector<std::pair<std::string, const NamedType*>> outputs;
  std::set<std::string, std::less<>> taken;
  for (std::string& name : result_names(function)) taken.insert(std::move(name));
  for (const NamedType& input : function.inputs) taken.emplace(input.name);
  for (const NamedType& input : function.inputs) {
    if (input.type.kind != ValueKind::kState) continue;
    std::string name = std::string(input.name) + "_out";
    while (!taken.insert(name).second) name += "_";
    outputs.emplace_back(std::move(name), &input);
  }
  return outputs;
}

struct OpRow {
  std::string_view type;
  Converter convert;
};
constexpr OpRow kOps[] = {
#define COREML_OP(type, convert) {type, &convert},
#include "compiler/frontend/coreml/ops.def"
#undef COREML_OP
};

}  // namespace

Converter find_converter(std::string_view type) {
  const OpRow* row = build::find_in(kOps, &OpRow::type, type);
  return row == nullptr ? nullptr : row->convert;
}

const Function& entry_function(const Model& model, std::string_view name) {
  const std::string_view wanted = !name.empty()                     ? name
                                  : !model.default_function.empty() ? model.default_function
                                                                    : std::string_view("main");
  if (const Function* found = model.find(wanted)) return *found;
  if (name.empty() && model.functions.size() == 1) return model.functions.front();
  std::string known;
  for (const Function& each : model.functions)
    known += (known.empty() ? "" : ", ") + std::string(each.name.substr(0, 200));
  throw Error(name.empty() ? ErrorCode::kInvalidModel : ErrorCode::kInvalidArgument,
              "the model has no function \"" + std::string(wanted.substr(0, 200)) + "\"; it has " + known);
}

std::vector<std::string> output_names(const Function& function) {
  std::vector<std::string> names = result_names(function);
  for (const auto& [output, state] : outputs_of_states(function)) names.push_back(output);
  return names;
}

std::string_view state_of(const Function& function, std::string_view output) {
  for (const auto& [name, state] : outputs_of_states(function))
    if (name == output) return state->name;
  return {};
}

const ValueType* type_of(const Function& function, std::string_view value) {
  for (const auto& [name, state] : outputs_of_states(function))
    if (name == value) return &state->type;
  for (const NamedType& input : function.inputs)
    if (input.name == value) return &input.type;
  for (const Operation& node : function.block.operations)
    for (const NamedType& output : node.outputs)
      if (output.name == value) return &output.type;
  return nullptr;
}

build::Missing missing_operations(const Function& function) {
  build::Missing missing;
  Paths paths;
  add_paths(function.block, "", paths);
  note_missing(function.block, paths, missing);
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops) {
  return FunctionImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::coreml
