#include "compiler/frontend/importer/coreml_importer.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/frontend/coreml/import.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/formats/protobuf_format.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/importer/source_files.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

/// What a model's own file is called among those beside it.
constexpr const char* kOwnFile = "model.mlmodel";

std::unique_ptr<coreml::LoadedModel> load_coreml(const ModelSource& source) {
  const bool is_package = wire::is_archive(source.model->text());
  const SourceFiles files = files_of(source, is_package ? coreml::kManifest : kOwnFile);
  const coreml::Package package =
      is_package ? coreml::open_package(files.files) : coreml::Package{source.model->text(), files.files};
  return std::make_unique<coreml::LoadedModel>(files.owner, coreml::read_model(package.model),
                                               package.weights);
}

/// Of a classifier: probabilities by their labels, which stand for them in order.
bool is_dictionary(const coreml::ValueType* type) {
  return type != nullptr && type->kind == coreml::ValueKind::kDictionary;
}

SignatureValue value_of(std::string_view name, const coreml::ValueType* type) {
  SignatureValue value;
  value.name = name;
  const std::optional<DType> dtype = type == nullptr ? std::nullopt : coreml::dtype_of(type->tensor.dtype);
  const bool is_tensor =
      (dtype && (type->kind == coreml::ValueKind::kTensor || type->kind == coreml::ValueKind::kState)) ||
      is_dictionary(type);
  value.kind = is_tensor ? ValueKind::kTensor : ValueKind::kOther;
  value.dtype = dtype.value_or(DType::kFloat32);
  if (type != nullptr) value.shape = dim_shape(type->tensor.dims);
  return value;
}

std::vector<SignatureValue> inputs_of(const coreml::Function& function) {
  std::vector<SignatureValue> values;
  for (const coreml::NamedType& input : function.inputs) values.push_back(value_of(input.name, &input.type));
  return values;
}

std::vector<SignatureValue> outputs_of(const coreml::Function& function) {
  std::vector<SignatureValue> values;
  for (const std::string& name : coreml::output_names(function))
    values.push_back(value_of(name, coreml::type_of(function, name)));
  return values;
}

/// The files beside the model that its program names; none where it cannot be read, which its importer says.
std::set<std::string> named_weights(const ModelSource& source) {
  try {
    return coreml::weight_files(coreml::read_model(source.model->text()));
  } catch (const Error&) {
    return {};
  }
}

class CoremlImporter final : public Importer {
public:
  CoremlImporter(ModelSource source, const std::string& signature)
      : Importer(std::move(source), signature),
        loaded_(load_coreml(this->source())),
        function_(coreml::entry_function(loaded_->model(), signature)) {
    facts_ = model_facts("Core ML ", coreml::facts_of(loaded_->model(), format()));
    facts_.inputs = inputs_of(function_);
    facts_.outputs = outputs_of(function_);
    add_output_types();
  }

  std::string format() const override {
    const bool is_package =
        wire::is_archive(source().model->text()) || source().external.contains(coreml::kManifest);
    return is_package ? "mlpackage" : "coreml";
  }
  std::vector<NamedSignature> signatures() const override {
    std::vector<NamedSignature> all;
    if (loaded_->model().functions.size() == 1) return all;
    for (const coreml::Function& function : loaded_->model().functions)
      all.push_back({std::string(function.name), inputs_of(function), outputs_of(function)});
    return all;
  }
  std::vector<ErrorDetail> unsupported() const override {
    return coreml::missing_operations(function_).details();
  }
  FileGraph file_graph() const override { return coreml::file_graph(function_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const coreml::ImportRequest request{graph_request(facts_, options), &function_};
    return with_facts(facts_, [&] { return coreml::import_graph(*loaded_, request, ops); });
  }

private:
  /// How the extents of outputs follow from those of the inputs, where the operations can be imported.
  void add_output_types() {
    const auto is_free = [](const Dim& dim) { return std::holds_alternative<std::string>(dim); };
    const bool is_said =
        std::all_of(facts_.outputs.begin(), facts_.outputs.end(), [&](const SignatureValue& output) {
          return output.kind == ValueKind::kTensor &&
                 !is_dictionary(coreml::type_of(function_, output.name)) &&
                 std::none_of(output.shape.begin(), output.shape.end(), is_free);
        });
    if (!is_said) set_output_types(facts_, *this);
  }

  const std::unique_ptr<const coreml::LoadedModel> loaded_;
  const coreml::Function& function_;
};

}  // namespace

bool is_coreml(std::string_view bytes) {
  return wire::is_archive(bytes) ? detect_format(bytes) == FileFormat::kMlPackage : is_mlmodel_file(bytes);
}

bool is_mlmodel_file(std::string_view bytes) {
  return !wire::is_archive(bytes) && protobuf_format(bytes) == FileFormat::kCoreMl;
}

ModelSource open_mlpackage(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path file(path);
  ModelSource source;
  if (fs::is_directory(file)) {
    const auto manifest = MappedFile::open((file / coreml::kManifest).string());
    file /= coreml::model_path(manifest->text());
    source.external[coreml::kManifest] = manifest;
  }
  source.model = MappedFile::open(file.string());
  std::error_code ignored;
  for (const std::string& name : named_weights(source))
    if (const fs::path weights = file.parent_path() / name; fs::is_regular_file(weights, ignored))
      source.external[name] = MappedFile::open(weights.string());
  source.digest = source.external.empty() ? Digest::of(source.model->bytes()) : digest_of(source, "Core ML");
  return source;
}

std::unique_ptr<Importer> make_coreml_importer(ModelSource source, const std::string& signature) {
  return made_importer<CoremlImporter>("Core ML model", std::move(source), signature);
}

}  // namespace tensormill::frontend
