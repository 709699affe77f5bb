#include "compiler/frontend/cntk/import.h"

#include <algorithm>
#include <set>

#include "compiler/build/missing.h"
#include "compiler/frontend/cntk/node_context.h"
#include "compiler/ir/patch.h"

namespace tensormill::frontend::cntk {

using build::Missing;

namespace {

/// Functions that an import converts.
constexpr size_t kMostFunctions = size_t{1} << 17;

struct ReasonRow {
  std::string_view op, reason;
};
constexpr ReasonRow kReasons[] = {
#define CNTK_MISSING(op, reason) {op, reason},
#include "compiler/frontend/cntk/missing.def"
#undef CNTK_MISSING
};

/// Why an operator has no converter; "" where there is nothing to say but that.
std::string reason_of(std::string_view op) {
  const auto* row = std::find_if(std::begin(kReasons), std::end(kReasons),
                                 [&](const ReasonRow& each) { return each.op == op; });
  return row == std::end(kReasons) ? std::string() : std::string(row->reason);
}

/// The shapes of the first operands that the file says, as tensors have them.
std::string shown_operands(const Model& model, const std::vector<Source>& operands) {
  std::string shapes;
  for (size_t i = 0; i < std::min<size_t>(operands.size(), 4); ++i) {
    if (!operands[i].is_variable) continue;
    std::vector<std::string> dims;
    for (const int64_t dim : tensor_dims(model.variables[operands[i].index]))
      dims.push_back(dim < 0 ? "?" : std::to_string(dim));
    const std::optional<DType> dtype = dtype_of(model.variables[operands[i].index].dtype);
    if (dtype) shapes += (shapes.empty() ? "" : ", ") + shown_type(dtype_name(*dtype), dims);
  }
  return shapes.empty() ? shapes : "operands " + shapes;
}

void add_missing(Missing& missing, const LoadedModel& loaded, size_t index, const std::string& why) {
  const Function& function = loaded.model().functions[index];
  missing.add("op " + function.op, why, function_label(function),
              shown_operands(loaded.model(), loaded.walk().operands[index]), std::to_string(index));
}

Missing missing_of(const LoadedModel& loaded) {
  Missing missing("operator", "node");
  for (const size_t index : loaded.walk().order) {
    const Function& function = loaded.model().functions[index];
    if (find_converter(function) == nullptr) add_missing(missing, loaded, index, reason_of(function.op));
  }
  return missing;
}

class ModelImport {
public:
  ModelImport(const LoadedModel& loaded, const build::GraphRequest& request, const ir::OpRegistry& ops)
      : loaded_(loaded),
        model_(loaded.model()),
        walk_(loaded.walk()),
        request_(request),
        graph_(ops),
        reserved_(names_of(walk_)),
        state_{loaded, graph_, reserved_} {}

  ir::Graph run() {
    graph_.set_name(std::string(model_.name));
    graph_.set_symbols(request_.symbols);
    check_operators(loaded_);
    if (walk_.has_cycle)
      throw Error(ErrorCode::kInvalidModel, "a function reads what is made of its own result");
    if (walk_.order.size() > kMostFunctions)
      throw Error(ErrorCode::kTooLarge,
                  "the model has more than " + std::to_string(kMostFunctions) + " functions");
    add_inputs();
    convert_all();
    if (!missing_.empty()) missing_.throw_all();
    set_outputs();
    return ir::remove_dead(graph_);
  }

private:
  static std::set<std::string> names_of(const Walk& walk) {
    std::set<std::string> names;
    for (const Input& input : walk.inputs) names.insert(input.name);
    for (const Output& output : walk.outputs) names.insert(output.name);
    return names;
  }

  void add_inputs() {
    for (size_t i = 0; i < walk_.inputs.size(); ++i) {
      const Input& input = walk_.inputs[i];
      const Variable& variable = model_.variables[input.variable];
      const V value = build::add_input(graph_, request_, i, input.name, input_dtype(variable));
      state_.items.emplace(Source{true, input.variable, 0}, Item{value, !variable.dynamic_axes.empty()});
    }
  }

  void convert_all() {
    std::set<size_t> lost;
    for (const size_t index : walk_.order) {
      // What stands behind a function that could not be converted has no operands.
      const std::vector<Source>& operands = walk_.operands[index];
      const bool has_operands = std::none_of(operands.begin(), operands.end(), [&](const Source& operand) {
        return !operand.is_variable && lost.count(operand.index) != 0;
      });
      if (!has_operands || !convert(index)) lost.insert(index);
    }
  }

  bool convert(size_t index) {
    const Function& function = model_.functions[index];
    const std::string label = function_label(function);
    const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
    NodeContext context(state_, index);
    try {
      find_converter(function)(context);
      context.check_read();
      return true;
    } catch (const UnsupportedForm& form) {
      add_missing(missing_, loaded_, index, form.attribute + ": " + form.reason);
      return false;
    } catch (Error& error) {
      error.add_context("function " + std::to_string(index) + ", " + function.op + " \"" + label + "\"");
      if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
      throw;
    }
  }

  V output(const Output& output) {
    const auto found = state_.items.find(output.source);
    if (found != state_.items.end()) return found->second.value;
    if (!output.source.is_variable)
      throw Error(ErrorCode::kInvalidModel,
                  "nothing makes the output \"" + output.name.substr(0, 200) + "\"");
    return graph_.add_constant(graph_.unique_name("constant"),
                               loaded_.tensor(model_.variables[output.source.index]));
  }

  void set_outputs() {
    std::vector<std::string> names;
    for (const Output& each : walk_.outputs) names.push_back(each.name);
    build::set_outputs(graph_, request_, names, [&](size_t i) { return output(walk_.outputs[i]); });
  }

  const LoadedModel& loaded_;
  const Model& model_;
  const Walk& walk_;
  const build::GraphRequest& request_;
  ir::Graph graph_;
  const std::set<std::string> reserved_;
  Missing missing_{"operator", "node"};
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

template <size_t N>
Converter find_in(const OpRow (&rows)[N], std::string_view op) {
  const auto* row =
      std::find_if(std::begin(rows), std::end(rows), [&](const OpRow& each) { return each.op == op; });
  return row == std::end(rows) ? nullptr : row->convert;
}

}  // namespace

Converter find_converter(const Function& function) {
  return function.block ? find_in(kBlocks, function.op) : find_in(kOps, function.op);
}

std::vector<ErrorDetail> unsupported_operators(const LoadedModel& model) {
  return missing_of(model).details();
}

void check_operators(const LoadedModel& model) {
  const Missing missing = missing_of(model);
  if (!missing.empty()) missing.throw_all();
}

ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops) {
  return ModelImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::cntk
