#include "compiler/frontend/importer/keras_importer.h"

#include <mutex>

#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/importer/source_files.h"
#include "compiler/frontend/importer/tensorflow_importer.h"
#include "compiler/frontend/keras/file_graph.h"
#include "compiler/frontend/keras/import.h"
#include "compiler/frontend/keras/kept_form.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

constexpr std::string_view kHdf5Mark = "\x89HDF\r\n\x1a\n";

bool is_keras_zip(std::string_view bytes) {
  if (!wire::begins_as_zip(bytes)) return false;
  try {
    const wire::ZipFile zip(bytes);
    return zip.has("config.json") && zip.has("metadata.json");
  } catch (const Error&) {
    // Who reads archives says what is broken.
    return false;
  }
}

/// A layers model of TensorFlow.js: its JSON, or an archive of that and its weights.
bool is_layers_model(std::string_view bytes) {
  return wire::is_archive(bytes) ? detect_format(bytes) == FileFormat::kTfjsLayers
                                 : is_tfjs_file(bytes) && detect_format(bytes) == FileFormat::kTfjsLayers;
}

std::string format_of(std::string_view bytes) {
  if (bytes.starts_with(kHdf5Mark)) return "keras-h5";
  return keras::is_kept_form(bytes) || is_keras_zip(bytes) ? "keras" : "tfjs-layers";
}

std::shared_ptr<const keras::LoadedModel> load(const ModelSource& source, std::string_view format) {
  const std::string_view bytes = source.model->text();
  const auto loaded = std::make_shared<keras::LoadedModel>();
  loaded->file = source.model;
  if (format == "tfjs-layers") {
    const SourceFiles files = files_of(source, wire::kTfjsFile);
    loaded->model = keras::read_layers_model(files.files);
    loaded->model.kept.push_back(files.owner);
  } else if (keras::is_kept_form(bytes)) {
    loaded->model = keras::read_kept_form(bytes);
  } else {
    loaded->model = format == "keras-h5" ? keras::read_hdf5(bytes) : keras::read_archive(bytes);
  }
  return loaded;
}

class KerasImporter final : public Importer {
public:
  explicit KerasImporter(ModelSource source)
      : Importer(std::move(source)),
        format_(format_of(this->source().model->text())),
        loaded_(load(this->source(), format_)) {
    const keras::Model& model = loaded_->model;
    facts_ = model_facts("", keras::facts_of(model, format_));
    for (const keras::Port& port : keras::input_ports(model))
      facts_.inputs.push_back(signature_value(port.name, dtype_from_long_name(port.type), port.shape));
    for (const std::string& name : keras::output_names(model))
      facts_.outputs.push_back(signature_value(name, DType::kFloat32, {}));
    set_output_types(facts_, *this);
  }

  std::string format() const override { return format_; }
  std::vector<ErrorDetail> unsupported() const override {
    return keras::missing_layers(loaded_->model).details();
  }

  FileGraph file_graph() const override { return keras::file_graph(loaded_->model); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    return with_facts(facts_,
                      [&] { return keras::import_graph(loaded_, graph_request(facts_, options), ops); });
  }

  /// In the form without HDF5: its library is for confined children alone, and a package is served elsewhere.
  const ModelSource& kept_source() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!kept_) {
      ModelSource kept = source();
      if (!keras::is_kept_form(kept.model->text())) {
        const auto bytes = std::make_shared<const std::string>(keras::kept_form(loaded_->model));
        kept.model = MappedFile::part_of(bytes, std::as_bytes(std::span(*bytes)), "model");
        kept.external.clear();
      }
      kept_ = std::move(kept);
    }
    return *kept_;
  }

private:
  const std::string format_;
  const std::shared_ptr<const keras::LoadedModel> loaded_;
  mutable std::mutex mutex_;
  mutable std::optional<ModelSource> kept_;
};

}  // namespace

bool is_keras(std::string_view bytes) {
  return bytes.starts_with(kHdf5Mark) || keras::is_kept_form(bytes) || is_keras_zip(bytes) ||
         is_layers_model(bytes);
}

std::unique_ptr<Importer> make_keras_importer(ModelSource source) {
  return made_importer<KerasImporter>("Keras model", std::move(source));
}

}  // namespace tensormill::frontend
