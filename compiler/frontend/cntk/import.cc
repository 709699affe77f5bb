#include "compiler/frontend/cntk/import.h"

#include <algorithm>
#include <array>

#include "compiler/build/format_import.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/cntk/node_context.h"

namespace tensormill::frontend::cntk {

namespace {

/// Functions that an import converts.
constexpr size_t kMostFunctions = size_t{1} << 17;

constexpr build::RefusedRow kReasons[] = {
#define CNTK_MISSING(op, reason) {op, reason},
#include "compiler/frontend/cntk/missing.def"
#undef CNTK_MISSING
};

/// The shapes of the first operands that the file says, as tensors have them.
std::string shown_operands(const Model& model, const std::vector<Source>& operands) {
  std::string shapes;
  for (size_t i = 0; i < std::min<size_t>(operands.size(), 4); ++i) {
    if (!operands[i].is_variable) continue;
    const std::string type = shown_type_of(model.variables[operands[i].index]);
    if (!type.empty()) shapes += (shapes.empty() ? "" : ", ") + type;
  }
  return shapes.empty() ? shapes : "operands " + shapes;
}

build::NodePlace place_of(const LoadedModel& loaded, size_t index) {
  const Function& function = loaded.model().functions[index];
  const std::string label = function_label(function);
  return {"op " + function.op, label, shown_operands(loaded.model(), loaded.walk().operands[index]),
          std::to_string(index), build::numbered_node("function", index, function.op, label)};
}

class ModelImport final : public build::FormatImport {
public:
  ModelImport(const LoadedModel& loaded, const build::GraphRequest& request, const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {std::string(loaded.model().name), build::names_of(loaded.walk().inputs),
                      build::names_of(loaded.walk().outputs)},
                     missing_operators(loaded)),
        loaded_(loaded),
        model_(loaded.model()),
        walk_(loaded.walk()),
        state_{loaded, graph_, reserved_} {}

private:
  bool convert_all() override {
    if (walk_.has_cycle)
      throw Error(ErrorCode::kInvalidModel, "a function reads what is made of its own result");
    if (walk_.order.size() > kMostFunctions)
      throw Error(ErrorCode::kTooLarge,
                  "the model has more than " + std::to_string(kMostFunctions) + " functions");
    for (size_t i = 0; i < walk_.inputs.size(); ++i) {
      const size_t index = walk_.inputs[i].variable;
      const Variable& variable = model_.variables[index];
      const V value = add_input(i, input_dtype(variable));
      state_.items.emplace(Source{true, index, 0}, Item{value, !variable.dynamic_axes.empty()});
    }
    build::LostValues<size_t> lost;
    for (const size_t index : walk_.order) {
      std::vector<size_t> read;
      for (const Source& operand : walk_.operands[index])
        if (!operand.is_variable) read.push_back(operand.index);
      lost.convert(read, std::array{index}, [&] { return convert(index); });
    }
    return lost.is_whole();
  }

  bool convert(size_t index) {
    const Function& function = model_.functions[index];
    return try_convert(
        function_label(function), [&] { return place_of(loaded_, index); },
        [&] {
          NodeContext context(state_, index);
          find_converter(function)(context);
          context.check_read();
        });
  }

  V output(size_t index) override {
    const Output& output = walk_.outputs[index];
    const auto found = state_.items.find(output.source);
    if (found != state_.items.end()) return found->second.value;
    if (!output.source.is_variable)
      throw Error(ErrorCode::kInvalidModel,
                  "nothing makes the output \"" + output.name.substr(0, 200) + "\"");
    return graph_.add_constant(graph_.unique_name("constant"),
                               loaded_.tensor(model_.variables[output.source.index]));
  }

  const LoadedModel& loaded_;
  const Model& model_;
  const Walk& walk_;
  ImportState state_;
};

struct OpRow {
  std::string_view op;
  Converter convert;
};
constexpr OpRow kOps[] = {
#define CNTK_OP(op, convert) {op, &convert},
#include "compiler/frontend/cntk/ops.def"
#undef CNTK_OP
};
constexpr OpRow kBlocks[] = {
#define CNTK_BLOCK(name, attribute, convert) {name, &convert},
#include "compiler/frontend/cntk/blocks.def"
#undef CNTK_BLOCK
};

}  // namespace

Converter find_converter(const Function& function) {
  const OpRow* row = function.block ? build::find_in(kBlocks, &OpRow::op, function.op)
                                    : build::find_in(kOps, &OpRow::op, function.op);
  return row == nullptr ? nullptr : row->convert;
}

build::Missing missing_operators(const LoadedModel& model) {
  build::Missing missing;
  for (const size_t index : model.walk().order) {
    const Function& function = model.model().functions[index];
    if (find_converter(function) == nullptr)
      missing.add(place_of(model, index), build::reason_of(kReasons, function.op));
  }
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops) {
  return ModelImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::cntk
