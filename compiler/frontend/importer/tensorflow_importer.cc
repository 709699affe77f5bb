#include "compiler/frontend/importer/tensorflow_importer.h"

#include <algorithm>
#include <filesystem>

#include "compiler/frontend/formats/protobuf_format.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/importer/source_files.h"
#include "compiler/frontend/tensorflow/file_graph.h"
#include "compiler/frontend/tensorflow/import.h"
#include "compiler/frontend/tensorflow/tfjs.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend {

namespace {

constexpr const char* kSavedModel = "saved_model.pb";

/// What a model was read from, with what its views need.
struct Opened {
  std::unique_ptr<tensorflow::LoadedModel> model;
  FileFacts facts;
};

const char* main_file(FileFormat format) {
  return format == FileFormat::kTfjsGraph ? wire::kTfjsFile : kSavedModel;
}

Opened open(const ModelSource& source) {
  const FileFormat format = detect_format(source.model->text());
  if (format == FileFormat::kFrozenGraph) {
    tensorflow::SavedModel model;
    model.graph = tensorflow::read_graph(source.model->text());
    FileFacts facts = tensorflow::facts_of(model.graph);
    return {std::make_unique<tensorflow::LoadedModel>(std::make_shared<const ModelSource>(source),
                                                      std::move(model)),
            std::move(facts)};
  }
  const SourceFiles files = files_of(source, main_file(format));
  if (format == FileFormat::kTfjsGraph) {
    tensorflow::TfjsModel made = tensorflow::read_tfjs_model(files.files);
    FileFacts facts = tensorflow::facts_of(made);
    const auto both =
        std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
            files.owner, made.owner);
    return {std::make_unique<tensorflow::LoadedModel>(both, std::move(made.model)), std::move(facts)};
  }
  tensorflow::SavedModel model = tensorflow::read_saved_model(files.files);
  FileFacts facts = tensorflow::facts_of(model);
  return {std::make_unique<tensorflow::LoadedModel>(files.owner, std::move(model)), std::move(facts)};
}

std::vector<SignatureValue> values_of(const std::vector<tensorflow::Port>& ports) {
  std::vector<SignatureValue> values;
  for (const tensorflow::Port& port : ports) {
    const std::optional<DType> dtype = tensorflow::dtype_of(port.dtype);
    SignatureValue value;
    value.name = port.name;
    value.kind =
        dtype || port.dtype == tensorflow::DataType::kInvalid ? ValueKind::kTensor : ValueKind::kOther;
    value.dtype = dtype.value_or(DType::kFloat32);
    value.shape = dim_shape(port.shape.dims);
    values.push_back(std::move(value));
  }
  return values;
}

class TensorflowImporter final : public Importer {
public:
  TensorflowImporter(ModelSource source, const std::string& signature)
      : Importer(std::move(source), signature), opened_(open(this->source())) {
    const tensorflow::SavedModel& model = opened_.model->model();
    const FileFacts& file = opened_.facts;
    // A SavedModel without a signature has nothing that could be called; another graph is called as it is.
    const bool has_signatures = file.format == "saved-model" || !model.signatures.empty();
    if (!has_signatures && !signature.empty())
      throw Error(ErrorCode::kInvalidArgument, "signature \"" + signature + "\" was asked for; this " +
                                                   (file.format == "tfjs-graph" ? "model" : "frozen graph") +
                                                   " has none");
    entry_ =
        has_signatures ? tensorflow::entry_point(model, signature) : tensorflow::graph_entry(model.graph);
    facts_ = model_facts("TensorFlow ", file);
    facts_.inputs = values_of(entry_.inputs);
    facts_.outputs = values_of(entry_.outputs);
    add_output_types();
  }

  std::string format() const override { return opened_.facts.format; }
  std::vector<NamedSignature> signatures() const override {
    std::vector<NamedSignature> all;
    const tensorflow::SavedModel& model = opened_.model->model();
    for (const std::string& name : tensorflow::signature_names(model)) {
      const tensorflow::EntryPoint entry = tensorflow::entry_point(model, name);
      all.push_back({name, values_of(entry.inputs), values_of(entry.outputs)});
    }
    return all;
  }
  std::vector<ErrorDetail> unsupported() const override {
    return tensorflow::missing_operators(opened_.model->model(), entry_).details();
  }
  FileGraph file_graph() const override { return tensorflow::file_graph(opened_.model->model(), entry_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    for (const tensorflow::Port& port : entry_.inputs)
      if (!port.shape.has_rank)
        throw Error(ErrorCode::kNotSupported, "input \"" + port.name +
                                                  "\" has no number of dims: save the model with the shape "
                                                  "that it has, None for each dim that is free");
    const tensorflow::ImportRequest request{graph_request(facts_, options), entry_};
    return with_facts(facts_, [&] { return tensorflow::import_graph(*opened_.model, request, ops); });
  }

private:
  /// What the nodes say of a graph's outputs, where they can be imported.
  void add_output_types() {
    const bool is_said = std::all_of(
        entry_.outputs.begin(), entry_.outputs.end(),
        [](const tensorflow::Port& port) { return port.dtype != tensorflow::DataType::kInvalid; });
    if (!is_said) set_output_types(facts_, *this);
  }

  const Opened opened_;
  tensorflow::EntryPoint entry_;
};

}  // namespace

bool is_tensorflow(std::string_view bytes) {
  if (wire::is_archive(bytes)) {
    const FileFormat format = detect_format(bytes);
    return format == FileFormat::kSavedModel || format == FileFormat::kTfjsGraph;
  }
  const FileFormat format = protobuf_format(bytes);
  return format == FileFormat::kFrozenGraph || format == FileFormat::kSavedModel ||
         (is_tfjs_file(bytes) && detect_format(bytes) == FileFormat::kTfjsGraph);
}

bool is_saved_model_file(std::string_view bytes) {
  return !wire::is_archive(bytes) && protobuf_format(bytes) == FileFormat::kSavedModel;
}

bool is_tfjs_file(std::string_view bytes) {
  const size_t first = bytes.substr(0, 4096).find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{' && is_tfjs(detect_format(bytes));
}

ModelSource open_tfjs_model(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given(path);
  const fs::path file = fs::is_directory(given) ? given / wire::kTfjsFile : given;
  ModelSource source;
  source.model = MappedFile::open(file.string());
  for (const std::string& name : wire::tfjs_weight_files(wire::read_tfjs_json(source.model->text())))
    source.external[name] = MappedFile::open((file.parent_path() / name).string());
  source.digest = digest_of(source, "TensorFlow.js");
  return source;
}

ModelSource open_saved_model(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  ModelSource source;
  source.model = MappedFile::open((folder / kSavedModel).string());
  const auto add_files = [&](const std::string& below, const std::string& prefix) {
    std::error_code ignored;
    if (!fs::is_directory(folder / below, ignored)) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / below)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file() && name.starts_with(prefix))
        source.external[below + "/" + name] = MappedFile::open(entry.path().string());
    }
  };
  add_files("variables", "variables.");
  add_files("assets", "");
  source.digest = digest_of(source, "SavedModel");
  return source;
}

std::unique_ptr<Importer> make_tensorflow_importer(ModelSource source, const std::string& signature) {
  return made_importer<TensorflowImporter>("TensorFlow model", std::move(source), signature);
}

}  // namespace tensormill::frontend
