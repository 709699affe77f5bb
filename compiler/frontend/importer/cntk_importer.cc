#include "compiler/frontend/importer/cntk_importer.h"

#include "compiler/frontend/cntk/import.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

/// All inputs have the samples of one batch.
constexpr const char* kBatch = "N";

class CntkImporter final : public Importer {
public:
  explicit CntkImporter(ModelSource source)
      : Importer(std::move(source)),
        loaded_(this->source().model, cntk::read_model(this->source().model->text())) {
    facts_ = model_facts("CNTK ", cntk::facts_of(loaded_.model()));
    for (const cntk::Input& input : loaded_.walk().inputs) {
      const cntk::Variable& variable = loaded_.model().variables[input.variable];
      DimShape shape = dim_shape(cntk::tensor_dims(variable));
      if (!variable.dynamic_axes.empty()) shape.front() = std::string(kBatch);
      facts_.inputs.push_back(signature_value(input.name, cntk::input_dtype(variable), std::move(shape)));
    }
    for (const cntk::Output& output : loaded_.walk().outputs)
      facts_.outputs.push_back(signature_value(output.name, DType::kFloat32, any_shape()));
    set_output_types(facts_, *this);
  }

  std::string format() const override { return "cntk"; }
  std::vector<ErrorDetail> unsupported() const override { return cntk::missing_operators(loaded_).details(); }
  FileGraph file_graph() const override { return cntk::file_graph(loaded_.model(), loaded_.walk()); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    return with_facts(facts_, [&] {
      // What is not there is told before any shape is asked for.
      cntk::missing_operators(loaded_).check();
      return cntk::import_graph(loaded_, graph_request(facts_, options), ops);
    });
  }

private:
  const cntk::LoadedModel loaded_;
};

}  // namespace

bool is_cntk(std::string_view bytes) { return detect_format(bytes) == FileFormat::kCntk; }

std::unique_ptr<Importer> make_cntk_importer(ModelSource source) {
  return made_importer<CntkImporter>("CNTK model", std::move(source));
}

}  // namespace tensormill::frontend
