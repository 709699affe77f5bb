#include "compiler/frontend/importer/tflite_importer.h"

#include <algorithm>
#include <cmath>

#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/tensorflow/single_node.h"
#include "compiler/frontend/tflite/facts.h"
#include "compiler/frontend/tflite/file_graph.h"
#include "compiler/frontend/tflite/import.h"
#include "compiler/frontend/tflite/notes.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

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

/// Labels are those of no language, where there are several files of them.
std::vector<std::string> labels_of(const tflite::TensorNotes& tensor, const tflite::AppendedFiles& files) {
  const tflite::AssociatedFile* chosen = nullptr;
  for (const tflite::AssociatedFile& file : tensor.files) {
    const bool is_labels =
        file.kind == tflite::FileKind::kAxisLabels || file.kind == tflite::FileKind::kValueLabels;
    if (is_labels && (chosen == nullptr || (!chosen->locale.empty() && file.locale.empty()))) chosen = &file;
  }
  if (chosen == nullptr) return {};
  for (const auto& [name, text] : files) {
    if (name != chosen->name) continue;
    if (!is_utf8(text) || text.find('\0') != std::string::npos)
      throw Error(ErrorCode::kInvalidModel, "file \"" + name + "\" of labels is no text of UTF-8");
    std::vector<std::string> labels = tflite::label_lines(text);
    if (labels.size() > kMostNotedLabels || text.size() > kMostNotedBytes)
      throw Error(ErrorCode::kTooLarge, "file \"" + name + "\" has more than " +
                                            std::to_string(kMostNotedLabels) + " labels or 1 MiB");
    return labels;
  }
  throw Error(ErrorCode::kInvalidModel, "the model has no file \"" + std::string(chosen->name) +
                                            "\" of labels, which its metadata names");
}

/// What the description of the main subgraph says of its inputs or outputs.
void add_notes(const std::vector<tflite::TensorNotes>& notes, const tflite::AppendedFiles& files,
               tflite::Ints tensors, const std::vector<tflite::Port>& ports, NotesByName& to) {
  for (size_t i = 0; i < std::min(notes.size(), tensors.size()); ++i) {
    const auto port = std::find_if(ports.begin(), ports.end(),
                                   [&](const tflite::Port& each) { return each.tensor == tensors[i]; });
    if (port == ports.end()) continue;
    ValueNotes said;
    said.labels = labels_of(notes[i], files);
    const tflite::Floats mean = notes[i].mean, std = notes[i].std;
    const auto is_channels = [](tflite::Floats all) { return all.size() == 1 || all.size() == 3; };
    // Of other things than pictures, nothing here asks for them.
    const bool is_picture = is_channels(mean) && is_channels(std);
    for (const float each : std) {
      if (is_picture && !(each > 0 && std::isfinite(each)))
        throw Error(ErrorCode::kInvalidModel, "metadata: a std of " + std::to_string(each));
    }
    if (is_picture) {
      said.mean.assign(mean.begin(), mean.end());
      said.std.assign(std.begin(), std.end());
    }
    if (!said.empty()) to.emplace(port->name, std::move(said));
  }
}

NotesByName notes_of(const tflite::Model& model, const tflite::EntryPoint& entry, std::string_view bytes) {
  NotesByName all;
  const std::optional<tflite::ModelNotes> notes = tflite::read_notes(model);
  if (!notes || entry.subgraph != 0) return all;
  const tflite::AppendedFiles files = tflite::associated_files(bytes);
  const tflite::Subgraph& main = model.subgraphs.front();
  add_notes(notes->inputs, files, main.inputs, entry.inputs, all);
  add_notes(notes->outputs, files, main.outputs, entry.outputs, all);
  return all;
}

std::vector<SignatureValue> signature_of(const tflite::Model& model, const tflite::EntryPoint& entry,
                                         const std::vector<tflite::Port>& ports) {
  std::vector<SignatureValue> values;
  for (const tflite::Port& port : ports) {
    const tflite::Tensor& tensor = model.subgraphs[entry.subgraph].tensors[static_cast<size_t>(port.tensor)];
    values.push_back(signature_value(port.name, tflite::dtype_of(tensor.type), dim_shape(tensor.signature)));
    values.back().quantization = quantization_of(tensor);
  }
  return values;
}

/// Operators of TensorFlow are added as those of its own files.
constexpr tflite::FlexOperators kFlex = {&tensorflow::is_single_node, &tensorflow::add_single_node};

class TfliteImporter final : public Importer {
public:
  TfliteImporter(ModelSource source, const std::string& signature)
      : Importer(std::move(source), signature),
        loaded_(this->source().model),
        entry_(tflite::entry_point(loaded_.model(), signature)),
        notes_(notes_of(loaded_.model(), entry_, this->source().model->text())) {
    facts_ = model_facts("TFLite ", tflite::read_facts(this->source().model->text()));
    facts_.inputs = signature_of(loaded_.model(), entry_, entry_.inputs);
    facts_.outputs = signature_of(loaded_.model(), entry_, entry_.outputs);
  }

  std::string format() const override { return "tflite"; }
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
    return tflite::missing_operators(loaded_.model(), entry_, kFlex).details();
  }
  FileGraph file_graph() const override { return tflite::file_graph(loaded_.model(), entry_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const tflite::ImportRequest request{graph_request(facts_, options), entry_, options.is_exact, kFlex};
    return with_facts(facts_, [&] { return tflite::import_graph(loaded_, request, ops); });
  }

  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    ir::Variants variants = Importer::import_for_package(options, buckets, ops, takes_symbolic);
    variants.quantizations = quantizations_of(facts_);
    variants.notes = notes_;
    return variants;
  }

private:
  const tflite::LoadedModel loaded_;
  const tflite::EntryPoint entry_;
  const NotesByName notes_;
};

}  // namespace

bool is_tflite(std::string_view bytes) { return bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3"; }

std::unique_ptr<Importer> make_tflite_importer(ModelSource source, const std::string& signature) {
  return made_importer<TfliteImporter>("TFLite model", std::move(source), signature);
}

}  // namespace tensormill::frontend
