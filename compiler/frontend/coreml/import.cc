#include "compiler/frontend/coreml/import.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/build/missing.h"
#include "compiler/frontend/coreml/file_graph.h"
#include "compiler/frontend/coreml/node_context.h"
#include "compiler/ir/patch.h"

namespace tensormill::frontend::coreml {

using build::Missing;

namespace {

/// Operations that an import converts, those of blocks that stand for several as often as they do.
constexpr size_t kMostOperations = size_t{1} << 17;

using Paths = std::map<const Block*, std::string>;

void add_missing(Missing& missing, const Block& block, size_t index, const std::string& path,
                 const std::string& why) {
  const Operation& node = block.operations[index];
  missing.add("op " + std::string(node.type), why, operation_label(node, index), "",
              path + std::to_string(index));
}

/// Of the block and of those of its operations.
void note_missing(const Block& block, const std::string& path, Paths& paths, Missing& missing) {
  paths.emplace(&block, path);
  for (size_t i = 0; i < block.operations.size(); ++i) {
    const Operation& node = block.operations[i];
    if (find_converter(node.type) == nullptr) add_missing(missing, block, i, path, "");
    for (size_t k = 0; k < node.blocks.size(); ++k)
      note_missing(node.blocks[k], path_within(path, i, k), paths, missing);
  }
}

class FunctionImport {
public:
  FunctionImport(const LoadedModel& loaded, const ImportRequest& request, const ir::OpRegistry& ops)
      : loaded_(loaded),
        request_(request),
        function_(*request.function),
        graph_(ops),
        reserved_(names_of(function_)),
        state_{loaded, graph_, reserved_, opset_number(function_.opset)} {
    state_.call = [this](const Block& block, BlockState& around, const std::vector<V>& inputs) {
      return call(block, around, inputs);
    };
  }

  ir::Graph run() {
    graph_.set_name(std::string(function_.name));
    graph_.set_symbols(request_.symbols);
    note_missing(function_.block, "", paths_, missing_);
    if (!missing_.empty()) missing_.throw_all();
    BlockState state{state_};
    add_inputs(state);
    convert_all(state, function_.block);
    if (!missing_.empty()) missing_.throw_all();
    // Behind what is wrong with the model, which an import at any extents finds.
    for (size_t i = 0; i < function_.inputs.size(); ++i) check_ranges(i, true);
    set_outputs(state);
    return ir::remove_dead(graph_);
  }

private:
  static std::set<std::string> names_of(const Function& function) {
    std::set<std::string> names;
    for (const NamedType& input : function.inputs) names.emplace(input.name);
    for (const std::string& output : output_names(function)) names.insert(output);
    return names;
  }

  void add_inputs(BlockState& state) {
    for (size_t i = 0; i < function_.inputs.size(); ++i) {
      const NamedType& input = function_.inputs[i];
      const std::string name(input.name);
      const std::optional<DType> dtype = dtype_of(input.type.tensor.dtype);
      const bool is_state = input.type.kind == ValueKind::kState;
      if ((input.type.kind != ValueKind::kTensor && !is_state) || !dtype ||
          type_bits(input.type.tensor.dtype) < 8)
        throw Error(ErrorCode::kNotSupported,
                    "input \"" + name + "\" is no tensor of a type that is known here");
      Item item{nullptr, build::add_input(graph_, request_, i, name, *dtype)};
      if (is_state) {
        item.state = input.name;
        state_.states.emplace(input.name, item.value);
      }
      if (!state.items.emplace(input.name, item).second)
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
  bool convert_all(BlockState& state, const Block& block) {
    std::set<std::string_view> lost;
    for (size_t i = 0; i < block.operations.size(); ++i) {
      const Operation& node = block.operations[i];
      // What stands behind an operation that could not be converted has no operands.
      const bool has_operands =
          std::none_of(node.inputs.begin(), node.inputs.end(), [&](const auto& operand) {
            return std::any_of(operand.second.begin(), operand.second.end(), [&](const Binding& binding) {
              return binding.value == nullptr && lost.count(binding.name) != 0;
            });
          });
      if (has_operands && convert(state, block, i)) continue;
      for (const NamedType& output : node.outputs) lost.insert(output.name);
    }
    return lost.empty();
  }

  bool convert(BlockState& state, const Block& block, size_t index) {
    const Operation& node = block.operations[index];
    const std::string label = operation_label(node, index);
    if (++converted_ > kMostOperations)
      throw Error(ErrorCode::kTooLarge, "operation \"" + label + "\": more than " +
                                            std::to_string(kMostOperations) + " operations");
    const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
    NodeContext context(state, node, label);
    try {
      find_converter(node.type)(context);
      context.check_read();
      return true;
    } catch (const UnsupportedForm& form) {
      add_missing(missing_, block, index, paths_.at(&block), form.attribute + ": " + form.reason);
      return false;
    } catch (const CallFails&) {
      return false;
    } catch (Error& error) {
      if (error.message().find("operation ") != 0)
        error.add_context("operation " + std::to_string(index) + ", " +
                          std::string(node.type.substr(0, 200)) + " \"" + label + "\"");
      if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
      throw;
    }
  }

  std::optional<std::vector<V>> call(const Block& block, BlockState& around, const std::vector<V>& inputs) {
    if (inputs.size() != block.inputs.size())
      throw Error(ErrorCode::kInvalidModel, "a block of " + std::to_string(block.inputs.size()) +
                                                " inputs is called with " + std::to_string(inputs.size()));
    BlockState state{state_, &around};
    for (size_t i = 0; i < inputs.size(); ++i)
      state.items.insert_or_assign(block.inputs[i].name, Item{nullptr, inputs[i]});
    if (!convert_all(state, block)) return std::nullopt;
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

  void set_outputs(BlockState& state) {
    const std::vector<std::string> names = output_names(function_);
    build::set_outputs(graph_, request_, names, [&](size_t i) {
      const std::string_view kept = state_of(function_, names[i]);
      return kept.empty() ? value_of(state, names[i], "output \"" + names[i] + "\"") : state_.states.at(kept);
    });
  }

  const LoadedModel& loaded_;
  const ImportRequest& request_;
  const Function& function_;
  ir::Graph graph_;
  const std::set<std::string> reserved_;
  Missing missing_{"operator", "node"};
  Paths paths_;
  ImportState state_;
  size_t converted_ = 0;
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
  const auto* row =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const OpRow& each) { return each.type == type; });
  return row == std::end(kOps) ? nullptr : row->convert;
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

std::vector<ErrorDetail> unsupported_operations(const Function& function) {
  Missing missing("operator", "node");
  Paths paths;
  note_missing(function.block, "", paths, missing);
  return missing.details();
}

ir::Graph import_graph(const LoadedModel& model, const ImportRequest& request, const ir::OpRegistry& ops) {
  return FunctionImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::coreml
