#include "compiler/frontend/importer/tflite_importer.h"

#include <cmath>

#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/trim_counted.h"
#include "compiler/frontend/tflite/facts.h"
#include "compiler/frontend/tflite/import.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

/// Of a tensor of integers with one scale; a scale an axis has no input or output.
std::optional<Quantization> quantization_of(const tflite::Tensor& tensor) {
  const tflite::Quantization& given = tensor.quantization;
  const std::optional<DType> dtype = tflite::dtype_of(tensor.type);
  if (!dtype || !is_integer(*dtype) || given.scale.size() != 1 || given.details.index() != 0 ||
      !(given.scale[0] > 0) || !std::isfinite(given.scale[0]))
    return std::nullopt;
  return Quantization{given.scale[0], given.zero_point.empty() ? 0 : given.zero_point[0]};
}

Quantizations quantizations_of(const ModelFacts& facts) {
  Quantizations all;
  for (const auto* values : {&facts.inputs, &facts.outputs}) {
    for (const SignatureValue& value : *values)
      if (value.quantization) all.emplace(value.name, *value.quantization);
  }
  return all;
}

std::vector<SignatureValue> signature_of(const tflite::Model& model, const tflite::EntryPoint& entry,
                                         const std::vector<tflite::Port>& ports) {
  std::vector<SignatureValue> values;
  for (const tflite::Port& port : ports) {
    const tflite::Tensor& tensor = model.subgraphs[entry.subgraph].tensors[static_cast<size_t>(port.tensor)];
    const std::optional<DType> dtype = tflite::dtype_of(tensor.type);
    SignatureValue value;
    value.name = port.name;
    value.kind = dtype ? ValueKind::kTensor : ValueKind::kOther;
    value.dtype = dtype.value_or(DType::kUInt8);
    value.quantization = quantization_of(tensor);
    for (const int32_t extent : tensor.signature)
      value.shape.push_back(extent < 0 ? Dim(std::string()) : Dim(int64_t{extent}));
    values.push_back(std::move(value));
  }
  return values;
}

ModelFacts facts_of(const tflite::Model& model, const tflite::EntryPoint& entry, std::string_view bytes) {
  const FileFacts file = tflite::read_facts(bytes);
  ModelFacts facts;
  facts.producer = "TFLite " + file.version;
  facts.inputs = signature_of(model, entry, entry.inputs);
  facts.outputs = signature_of(model, entry, entry.outputs);
  facts.ops = file.ops;
  facts.parameters = file.parameters;
  facts.weight_bytes = file.weight_bytes;
  return facts;
}

class TfliteImporter final : public Importer {
public:
  TfliteImporter(ModelSource source, const std::string& signature)
      : Importer(std::move(source)),
        signature_(signature),
        loaded_(this->source().model),
        entry_(tflite::entry_point(loaded_.model(), signature)),
        facts_(facts_of(loaded_.model(), entry_, this->source().model->text())) {}

  std::string format() const override { return "tflite"; }
  const ModelFacts& facts() const override { return facts_; }
  std::vector<NamedSignature> signatures() const override {
    std::vector<NamedSignature> all;
    for (const tflite::Signature& each : loaded_.model().signatures) {
      const tflite::EntryPoint entry = tflite::entry_point(loaded_.model(), each.key);
      if (entry.key.empty()) continue;
      all.push_back({entry.key, signature_of(loaded_.model(), entry, entry.inputs),
                     signature_of(loaded_.model(), entry, entry.outputs)});
    }
    return all;
  }
  std::vector<ErrorDetail> unsupported() const override {
    return tflite::unsupported_operators(loaded_.model(), entry_);
  }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const tflite::ImportRequest request{graph_request(facts_, options), entry_};
    return with_facts(facts_, [&] { return trim_counted(tflite::import_graph(loaded_, request, ops)); });
  }

  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    ir::Variants variants = import_at_shapes(*this, options, buckets, ops, takes_symbolic);
    variants.quantizations = quantizations_of(facts_);
    keep_signature(variants, signature_);
    return variants;
  }

private:
  const std::string signature_;  ///< as it was asked for
  const tflite::LoadedModel loaded_;
  const tflite::EntryPoint entry_;
  const ModelFacts facts_;
};

}  // namespace

bool is_tflite(std::string_view bytes) { return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3"; }

std::unique_ptr<Importer> make_tflite_importer(ModelSource source, const std::string& signature) {
  try {
    return std::make_unique<TfliteImporter>(std::move(source), signature);
  } catch (Error& error) {
    error.add_context("TFLite model");
    throw;
  }
}

}  // namespace tensormill::frontend
