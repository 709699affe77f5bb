#include "compiler/frontend/importer/torchscript_importer.h"

#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/onnx/free_dims/free_dims.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/pytorch/script/file_graph.h"
#include "compiler/frontend/pytorch/script/import.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

namespace script = pytorch::script;

class TorchscriptImporter final : public Importer {
public:
  explicit TorchscriptImporter(ModelSource source)
      : Importer(std::move(source)),
        loaded_(this->source().model),
        ports_(script::ports_of(loaded_.module())) {
    facts_ = model_facts("TorchScript ", script::facts_of(loaded_.module()));
    for (const script::InputPort& port : ports_.inputs)
      facts_.inputs.push_back(
          signature_value(port.name, port.dtype,
                          port.traced ? DimShape(port.traced->size(), Dim(std::string())) : any_shape()));
    for (const std::string& name : ports_.outputs)
      facts_.outputs.push_back(signature_value(name, DType::kFloat32, any_shape()));
  }

  std::string format() const override { return "torchscript"; }
  std::vector<ErrorDetail> unsupported() const override {
    return script::missing_operators(loaded_.module()).details();
  }
  FileGraph file_graph() const override { return script::file_graph(loaded_.module(), ports_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const script::ImportRequest request{graph_request(facts_at(options), options), ports_};
    return with_facts(facts_, [&] { return script::import_graph(loaded_, request, ops); });
  }

  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    const onnx::ImportGraph graph_at = [&](const ImportOptions& at, onnx::ImportTally*) {
      return import(at, ops);
    };
    return onnx::import_variants([this]() -> const ModelSource& { return source(); }, facts_at(options),
                                 options, buckets, graph_at, takes_symbolic);
  }

  ModelFacts facts_at(const ImportOptions& options) const override {
    ModelFacts facts = facts_;
    std::string without;
    for (size_t i = 0; i < facts.inputs.size(); ++i) {
      SignatureValue& input = facts.inputs[i];
      const auto given = options.input_shapes.find(input.name);
      const auto value = options.input_values.find(input.name);
      if (given != options.input_shapes.end()) {
        input.shape = given->second;
      } else if (value != options.input_values.end()) {
        input.shape = dim_shape(value->second.shape());
      } else {
        const std::optional<std::vector<int64_t>>& traced = ports_.inputs[i].traced;
        if (traced && traced->empty()) continue;  // there is nothing to say of it
        without += (without.empty() ? "\"" : ", \"") + input.name + "\"" +
                   (traced ? " (it was traced with " + to_string(dim_shape(*traced)) + ")" : "");
      }
    }
    if (without.empty()) return facts;
    // What is not there is told before any shape is asked for.
    with_facts(facts_, [&] { script::missing_operators(loaded_.module()).check(); });
    throw Error(
        ErrorCode::kShapeRequired,
        "a TorchScript module does not say the shapes of its inputs: give input_shapes of " + without);
  }

private:
  const script::LoadedModule loaded_;
  const script::Ports ports_;
};

}  // namespace

bool is_torchscript(std::string_view bytes) {
  return wire::begins_as_zip(bytes) && detect_format(bytes) == FileFormat::kTorchScript;
}

std::unique_ptr<Importer> make_torchscript_importer(ModelSource source) {
  return made_importer<TorchscriptImporter>("TorchScript module", std::move(source));
}

}  // namespace tensormill::frontend
