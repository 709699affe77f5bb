#include "compiler/frontend/importer/cntk_importer.h"

#include "compiler/frontend/cntk/import.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

/// All inputs have the samples of one batch.
constexpr const char* kBatch = "N";

SignatureValue signature_value(const cntk::Input& input, const cntk::Variable& variable) {
  SignatureValue value;
  value.name = input.name;
  value.dtype = cntk::input_dtype(variable);
  for (const int64_t dim : cntk::tensor_dims(variable))
    value.shape.push_back(dim < 0 ? Dim(std::string()) : Dim(dim));
  if (!variable.dynamic_axes.empty()) value.shape.front() = std::string(kBatch);
  return value;
}

class CntkImporter final : public Importer {
public:
  explicit CntkImporter(ModelSource source)
      : Importer(std::move(source)),
        loaded_(this->source().model, cntk::read_model(this->source().model->text())) {
    const FileFacts file = cntk::facts_of(loaded_.model());
    facts_.producer = "CNTK " + file.version;
    for (const cntk::Input& input : loaded_.walk().inputs)
      facts_.inputs.push_back(signature_value(input, loaded_.model().variables[input.variable]));
    for (const cntk::Output& output : loaded_.walk().outputs) {
      SignatureValue value;
      value.name = output.name;
      value.shape = any_shape();
      facts_.outputs.push_back(std::move(value));
    }
    facts_.ops = file.ops;
    facts_.parameters = file.parameters;
    facts_.weight_bytes = file.weight_bytes;
    set_output_types(facts_, *this);
  }

  std::string format() const override { return "cntk"; }
  const ModelFacts& facts() const override { return facts_; }
  std::vector<ErrorDetail> unsupported() const override { return cntk::unsupported_operators(loaded_); }
  FileGraph file_graph() const override { return cntk::file_graph(loaded_.model(), loaded_.walk()); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    return with_facts(facts_, [&] {
      // What is not there is told before any shape is asked for.
      cntk::check_operators(loaded_);
      return cntk::import_graph(loaded_, graph_request(facts_, options), ops);
    });
  }

  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    with_facts(facts_, [&] { cntk::check_operators(loaded_); });
    return import_at_shapes(*this, options, buckets, ops, takes_symbolic);
  }

private:
  const cntk::LoadedModel loaded_;
  ModelFacts facts_;
};

}  // namespace

bool is_cntk(std::string_view bytes) { return detect_format(bytes) == FileFormat::kCntk; }

std::unique_ptr<Importer> make_cntk_importer(ModelSource source) {
  return made_importer<CntkImporter>("CNTK model", std::move(source));
}

}  // namespace tensormill::frontend
