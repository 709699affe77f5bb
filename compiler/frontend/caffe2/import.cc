#include "compiler/frontend/caffe2/import.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/build/missing.h"
#include "compiler/frontend/caffe2/file_graph.h"
#include "compiler/frontend/caffe2/node_context.h"
#include "compiler/ir/patch.h"

namespace tensormill::frontend::caffe2 {

using build::Missing;

namespace {

/// Operators that an import converts.
constexpr size_t kMostOperators = size_t{1} << 17;

constexpr std::string_view kDrawn =
    "its numbers are drawn when the net runs, and are no trained weights: save these, as "
    "caffe2.python.predictor.mobile_exporter does";
constexpr std::string_view kNets =
    "it runs a net that is an argument of it, step by step; nets inside of nets are not implemented: export "
    "the network to ONNX, which has recurrent layers and loops as operators";

struct RefusedRow {
  std::string_view type, why;
};
constexpr RefusedRow kRefused[] = {
#define CAFFE2_REFUSED(type, why) {type, why},
#include "compiler/frontend/caffe2/refused_ops.def"
#undef CAFFE2_REFUSED
};

/// Why an operator has no converter; "" where there is nothing to say but that.
std::string reason_of(std::string_view type) {
  const auto* row = std::find_if(std::begin(kRefused), std::end(kRefused),
                                 [&](const RefusedRow& each) { return each.type == type; });
  return row == std::end(kRefused) ? "" : std::string(row->why);
}

void add_missing(Missing& missing, const Operator& node, bool is_init, size_t index, const std::string& why) {
  missing.add("op " + std::string(node.type.substr(0, 200)), why, operator_label(node, index), "",
              operator_path(is_init, index));
}

void note_missing(const Net& net, bool is_init, Missing& missing) {
  for (size_t i = 0; i < net.operators.size(); ++i)
    if (find_converter(net.operators[i].type) == nullptr)
      add_missing(missing, net.operators[i], is_init, i, reason_of(net.operators[i].type));
}

Missing missing_of(const Model& model) {
  Missing missing("operator", "node");
  note_missing(model.init, true, missing);
  note_missing(model.predict, false, missing);
  return missing;
}

class ModelImport {
public:
  ModelImport(const LoadedModel& loaded, const build::GraphRequest& request, const ir::OpRegistry& ops)
      : loaded_(loaded),
        model_(loaded.model()),
        request_(request),
        outputs_(output_names(model_)),
        graph_(ops),
        reserved_(names_of(model_, outputs_)),
        state_{loaded, graph_, reserved_} {}

  ir::Graph run() {
    graph_.set_name(std::string(model_.predict.name));
    graph_.set_symbols(request_.symbols);
    check_operators(model_);
    const size_t all = model_.init.operators.size() + model_.predict.operators.size();
    if (all > kMostOperators)
      throw Error(ErrorCode::kTooLarge,
                  "the nets have more than " + std::to_string(kMostOperators) + " operators");
    convert_all(model_.init, true);
    add_inputs();
    convert_all(model_.predict, false);
    if (!missing_.empty()) missing_.throw_all();
    set_outputs();
    return ir::remove_dead(graph_);
  }

private:
  static std::set<std::string> names_of(const Model& model, const std::vector<std::string>& outputs) {
    std::set<std::string> names(outputs.begin(), outputs.end());
    for (const Input& input : model.inputs) names.insert(input.name);
    return names;
  }

  void add_inputs() {
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const Input& input = model_.inputs[i];
      const V value = build::add_input(graph_, request_, i, input.name, input.dtype);
      state_.items.insert_or_assign(std::string_view(input.name), Item{std::nullopt, value, std::nullopt});
    }
  }

  void convert_all(const Net& net, bool is_init) {
    for (size_t i = 0; i < net.operators.size(); ++i) {
      const Operator& node = net.operators[i];
      // What stands behind an operator that could not be converted has no operands.
      const bool has_operands = std::none_of(node.inputs.begin(), node.inputs.end(),
                                             [&](std::string_view name) { return lost_.count(name) != 0; });
      const bool is_done = has_operands && convert(node, is_init, i);
      for (const std::string_view output : node.outputs) {
        if (is_done) {
          lost_.erase(output);
        } else {
          lost_.insert(output);
        }
      }
    }
  }

  bool convert(const Operator& node, bool is_init, size_t index) {
    const std::string label = operator_label(node, index);
    const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
    NodeContext context(state_, node, label);
    try {
      find_converter(node.type)(context);
      context.check_read();
      return true;
    } catch (const UnsupportedForm& form) {
      add_missing(missing_, node, is_init, index, form.attribute + ": " + form.reason);
      return false;
    } catch (Error& error) {
      error.add_context(std::string(is_init ? kInitNet : kPredictNet) + ", operator " +
                        std::to_string(index) + ", " + std::string(node.type.substr(0, 200)) + " \"" + label +
                        "\"");
      if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
      throw;
    }
  }

  V output(const std::string& name) {
    const auto found = state_.items.find(name);
    if (found == state_.items.end())
      throw Error(ErrorCode::kInvalidModel, "nothing makes the output \"" + name.substr(0, 200) + "\"");
    Item& item = found->second;
    if (item.value == ir::kAbsent)
      item.value = graph_.add_constant(graph_.unique_name("constant"), *item.stored);
    return item.value;
  }

  void set_outputs() {
    build::set_outputs(graph_, request_, outputs_, [&](size_t i) { return output(outputs_[i]); });
  }

  const LoadedModel& loaded_;
  const Model& model_;
  const build::GraphRequest& request_;
  const std::vector<std::string> outputs_;
  ir::Graph graph_;
  const std::set<std::string> reserved_;
  Missing missing_{"operator", "node"};
  std::set<std::string_view> lost_;
  ImportState state_;
};

struct OpRow {
  std::string_view type;
  Converter convert;
};
constexpr OpRow kOps[] = {
#define CAFFE2_OP(type, convert) {type, &convert},
#include "compiler/frontend/caffe2/ops.def"
#undef CAFFE2_OP
};

}  // namespace

Converter find_converter(std::string_view type) {
  if (const Int8Row* row = find_int8(type)) type = row->op;
  const auto* row =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const OpRow& each) { return each.type == type; });
  return row == std::end(kOps) ? nullptr : row->convert;
}

std::vector<ErrorDetail> unsupported_operators(const Model& model) { return missing_of(model).details(); }

void check_operators(const Model& model) {
  const Missing missing = missing_of(model);
  if (!missing.empty()) missing.throw_all();
}

ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops) {
  return ModelImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::caffe2
