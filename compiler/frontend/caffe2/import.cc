#include "compiler/frontend/caffe2/import.h"

#include "compiler/build/format_import.h"
#include "compiler/build/rows.h"
#include "compiler/frontend/caffe2/file_graph.h"
#include "compiler/frontend/caffe2/node_context.h"

namespace tensormill::frontend::caffe2 {

namespace {

/// Operators that an import converts.
constexpr size_t kMostOperators = size_t{1} << 17;

constexpr std::string_view kDrawn =
    "its numbers are drawn when the net runs, and are no trained weights: save these, as "
    "caffe2.python.predictor.mobile_exporter does";
constexpr std::string_view kNets =
    "it runs a net that is an argument of it, step by step; nets inside of nets are not implemented: export "
    "the network to ONNX, which has recurrent layers and loops as operators";

constexpr build::RefusedRow kRefused[] = {
#define CAFFE2_REFUSED(type, why) {type, why},
#include "compiler/frontend/caffe2/refused_ops.def"
#undef CAFFE2_REFUSED
};

build::NodePlace place_of(const Net& net, bool is_init, size_t index) {
  const Operator& node = net.operators[index];
  const std::string type(node.type.substr(0, 200)), label = operator_label(node, index);
  return {"op " + type, label, "", operator_path(is_init, index),
          std::string(is_init ? kInitNet : kPredictNet) + ", " +
              build::numbered_node("operator", index, type, label)};
}

void note_missing(const Net& net, bool is_init, build::Missing& missing) {
  for (size_t i = 0; i < net.operators.size(); ++i) {
    const std::string_view type = net.operators[i].type;
    if (find_converter(type) == nullptr)
      missing.add(place_of(net, is_init, i), build::reason_of(kRefused, type));
  }
}

class ModelImport final : public build::FormatImport {
public:
  ModelImport(const LoadedModel& loaded, const build::GraphRequest& request, const ir::OpRegistry& ops)
      : FormatImport(ops, request,
                     {std::string(loaded.model().predict.name), build::names_of(loaded.model().inputs),
                      output_names(loaded.model())},
                     missing_operators(loaded.model())),
        model_(loaded.model()),
        state_{loaded, graph_, reserved_} {}

private:
  bool convert_all() override {
    const size_t all = model_.init.operators.size() + model_.predict.operators.size();
    if (all > kMostOperators)
      throw Error(ErrorCode::kTooLarge,
                  "the nets have more than " + std::to_string(kMostOperators) + " operators");
    convert_net(model_.init, true);
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      const Input& input = model_.inputs[i];
      state_.items.insert_or_assign(std::string_view(input.name),
                                    Item{std::nullopt, add_input(i, input.dtype), std::nullopt});
    }
    convert_net(model_.predict, false);
    return lost_.is_whole();
  }

  void convert_net(const Net& net, bool is_init) {
    for (size_t i = 0; i < net.operators.size(); ++i) {
      const Operator& node = net.operators[i];
      lost_.convert(node.inputs, node.outputs, [&] { return convert(net, is_init, i); });
    }
  }

  bool convert(const Net& net, bool is_init, size_t index) {
    const Operator& node = net.operators[index];
    const std::string label = operator_label(node, index);
    return try_convert(
        label, [&] { return place_of(net, is_init, index); },
        [&] {
          NodeContext context(state_, node, label);
          find_converter(node.type)(context);
          context.check_read();
        });
  }

  V output(size_t index) override {
    const std::string& name = names_.outputs[index];
    const auto found = state_.items.find(name);
    if (found == state_.items.end())
      throw Error(ErrorCode::kInvalidModel, "nothing makes the output \"" + name.substr(0, 200) + "\"");
    Item& item = found->second;
    if (item.value == ir::kAbsent)
      item.value = graph_.add_constant(graph_.unique_name("constant"), *item.stored);
    return item.value;
  }

  const Model& model_;
  build::LostValues<std::string_view> lost_;
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
  const OpRow* row = build::find_in(kOps, &OpRow::type, type);
  return row == nullptr ? nullptr : row->convert;
}

build::Missing missing_operators(const Model& model) {
  build::Missing missing;
  note_missing(model.init, true, missing);
  note_missing(model.predict, false, missing);
  return missing;
}

ir::Graph import_graph(const LoadedModel& model, const build::GraphRequest& request,
                       const ir::OpRegistry& ops) {
  return ModelImport(model, request, ops).run();
}

}  // namespace tensormill::frontend::caffe2
